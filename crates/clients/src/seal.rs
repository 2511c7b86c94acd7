//! Sealing backups that hold secrets: with a key that only the keychain has.

use std::fmt;

use chacha20poly1305::{
    KeyInit as _, XChaCha20Poly1305, XNonce,
    aead::{Aead as _, Payload},
};
use data_encoding::HEXLOWER;
use firedoor_model::{Digest, Keychain, KeychainError};

/// The keychain's item with the key. No reference has this form.
pub(crate) const KEY_ITEM: &str = "backups";
/// What a sealed backup begins with.
const MARK: &[u8] = b"firedoor sealed 1\n";
const NONCE: usize = 24;

/// The key of this user's backups.
#[derive(Clone)]
pub(crate) struct SealKey([u8; 32]);

impl fmt::Debug for SealKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SealKey")
    }
}

fn failed(doing: &'static str, why: &str) -> KeychainError {
    KeychainError::Failed { doing, item: KEY_ITEM.into(), why: why.into() }
}

fn random(out: &mut [u8]) -> Result<(), KeychainError> {
    getrandom::fill(out).map_err(|e| failed("make", &format!("the system gives no random numbers: {e}")))
}

impl SealKey {
    /// The key that is there; `None` when there is none.
    pub fn known(keychain: &dyn Keychain) -> Result<Option<Self>, KeychainError> {
        let Some(text) = keychain.get(KEY_ITEM)? else { return Ok(None) };
        let key = HEXLOWER.decode(&text).ok().and_then(|bytes| bytes.try_into().ok());
        key.map(|key| Some(Self(key))).ok_or_else(|| {
            failed("use", "it is not a key of Firedoor's; remove it in the system's password manager if it is not")
        })
    }

    /// The key, made now if there is none. That it could be written, and read again, also proves that the keychain
    /// works: a locked one answers that there is no such item (seen with gnome-keyring 42 without a display).
    pub fn known_or_new(keychain: &dyn Keychain) -> Result<Self, KeychainError> {
        if let Some(key) = Self::known(keychain)? {
            return Ok(key);
        }
        let mut key = [0; 32];
        random(&mut key)?;
        keychain.set(KEY_ITEM, HEXLOWER.encode(&key).as_bytes())?;
        Self::known(keychain)?.filter(|k| k.0 == key).ok_or(KeychainError::Locked)
    }

    /// Seals bytes that are known by this hash.
    pub fn seal(&self, digest: Digest, bytes: &[u8]) -> Result<Vec<u8>, KeychainError> {
        let mut nonce = [0; NONCE];
        random(&mut nonce)?;
        let payload = Payload { msg: bytes, aad: &digest.0 };
        let sealed = XChaCha20Poly1305::new(&self.0.into()).encrypt(&XNonce::from(nonce), payload);
        let sealed = sealed.map_err(|_| failed("use", "the backup cannot be sealed"))?;
        Ok([MARK, nonce.as_slice(), &sealed].concat())
    }

    /// Opens what was sealed under this hash; `None` when it is anything else.
    pub fn open(&self, digest: Digest, sealed: &[u8]) -> Option<Vec<u8>> {
        let (nonce, sealed) = sealed.strip_prefix(MARK)?.split_first_chunk::<NONCE>()?;
        let payload = Payload { msg: sealed, aad: &digest.0 };
        XChaCha20Poly1305::new(&self.0.into()).decrypt(&XNonce::from(*nonce), payload).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use firedoor_model::keychain::MemoryKeychain;

    #[test]
    fn only_what_was_sealed_opens() {
        let keychain = MemoryKeychain::default();
        assert!(SealKey::known(&keychain).unwrap().is_none());
        let key = SealKey::known_or_new(&keychain).unwrap();
        assert_eq!(SealKey::known_or_new(&keychain).unwrap().0, key.0);
        let (text, other) = (b"a secret".as_slice(), Digest::of(b"other"));
        let digest = Digest::of(text);
        let sealed = key.seal(digest, text).unwrap();
        assert!(!sealed.windows(text.len()).any(|w| w == text));
        assert_eq!(key.open(digest, &sealed).as_deref(), Some(text));
        assert_eq!(key.open(other, &sealed), None);
        assert_eq!(SealKey([7; 32]).open(digest, &sealed), None);
        for at in 0..sealed.len() {
            let mut bad = sealed.clone();
            bad[at] ^= 1;
            assert_eq!(key.open(digest, &bad), None, "{at}");
            assert_eq!(key.open(digest, &sealed[..at]), None, "{at}");
        }
    }

    #[test]
    fn a_keychain_that_cannot_be_used_is_found_out() {
        let keychain = MemoryKeychain::default();
        keychain.lock(true);
        assert_eq!(SealKey::known_or_new(&keychain).unwrap_err(), KeychainError::Locked);
        keychain.lock(false);
        keychain.set(KEY_ITEM, b"nonsense").unwrap();
        assert!(SealKey::known_or_new(&keychain).unwrap_err().to_string().contains("backups"));
    }
}
