//! SHA-256 digests: of definitions, launch identities, calls and audit rows.

use std::{fmt, str::FromStr};

use sha2::{Digest as _, Sha256};

/// A SHA-256 digest, written as 64 lower-case hex digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest(pub [u8; 32]);

impl Digest {
    /// Digest of one byte string.
    pub fn of(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }

    /// Digest of several fields. Each is preceded by its length, so that moving a byte from one field to the next
    /// changes the digest.
    pub fn of_fields<'a>(fields: impl IntoIterator<Item = &'a [u8]>) -> Self {
        let mut hash = Sha256::new();
        for field in fields {
            hash.update((field.len() as u64).to_le_bytes());
            hash.update(field);
        }
        Self(hash.finalize().into())
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&data_encoding::HEXLOWER.encode(&self.0))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The text was not 64 lower-case hex digits.
#[derive(Debug, thiserror::Error)]
#[error("a digest is 64 lower-case hex digits")]
pub struct DigestError;

impl FromStr for Digest {
    type Err = DigestError;
    fn from_str(s: &str) -> Result<Self, DigestError> {
        let bytes = data_encoding::HEXLOWER.decode(s.as_bytes()).map_err(|_| DigestError)?;
        Ok(Self(bytes.try_into().map_err(|_| DigestError)?))
    }
}

crate::serde_as_text!(Digest);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_do_not_run_together() {
        let a = Digest::of_fields([b"ab".as_slice(), b"c"]);
        let b = Digest::of_fields([b"a".as_slice(), b"bc"]);
        assert_ne!(a, b);
    }

    #[test]
    fn text_form_round_trips() {
        let d = Digest::of(b"x");
        assert_eq!(d.to_string().parse::<Digest>().unwrap(), d);
        assert!("zz".parse::<Digest>().is_err());
        assert!(d.to_string().to_uppercase().parse::<Digest>().is_err());
    }
}
