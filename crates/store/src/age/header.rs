//! The head of a file: for whom it is encrypted, in lines of text.

use data_encoding::BASE64_NOPAD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;

use super::{AgeError, FileKey, VERSION, derived};

/// Longest head. age.md sets no bound; a stanza of one recipient has about 100 bytes.
const MAX_HEADER: usize = 16 * 1024;
/// Signs in a line of a body; a shorter one is its last.
const COLUMNS: usize = 64;

/// For one recipient, with the file's key wrapped for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Stanza {
    X25519 {
        share: [u8; 32],
        wrapped: [u8; 32],
    },
    Scrypt {
        salt: [u8; 16],
        /// The power of two.
        work: u8,
        wrapped: [u8; 32],
    },
    /// For somebody else, as their programs may add.
    Other,
}

/// What stands before the content.
pub(super) struct Header<'a> {
    pub(super) stanzas: Vec<Stanza>,
    /// What its code is about: everything up to that code's mark.
    signed: &'a [u8],
    code: [u8; 32],
}

fn mac(file_key: &FileKey, signed: &[u8]) -> Option<Hmac<Sha256>> {
    let mut mac = Hmac::<Sha256>::new_from_slice(&derived(file_key, &[], b"header")).ok()?;
    mac.update(signed);
    Some(mac)
}

/// Exactly so many bytes, in the one spelling that they have.
fn bytes<const N: usize>(text: &str) -> Option<[u8; N]> {
    BASE64_NOPAD.decode(text.as_bytes()).ok()?.try_into().ok()
}

/// A power of two as age.md wants it: no sign, no zero before it.
fn power(text: &str) -> Option<u8> {
    let plain = !text.starts_with('0') && text.bytes().all(|b| b.is_ascii_digit());
    text.parse().ok().filter(|_| plain)
}

impl Stanza {
    /// `None` when it is not as its type has to be.
    fn read(words: &[&str], body: &str) -> Option<Self> {
        match *words {
            ["X25519", share] => Some(Self::X25519 { share: bytes(share)?, wrapped: bytes(body)? }),
            ["scrypt", salt, work] => {
                Some(Self::Scrypt { salt: bytes(salt)?, work: power(work)?, wrapped: bytes(body)? })
            }
            ["X25519" | "scrypt", ..] | [] => None,
            [_, ..] => Some(Self::Other),
        }
    }

    fn write(&self) -> String {
        let text = |bytes: &[u8]| BASE64_NOPAD.encode(bytes);
        match self {
            Self::X25519 { share, wrapped } => format!("-> X25519 {}\n{}\n", text(share), text(wrapped)),
            Self::Scrypt { salt, work, wrapped } => format!("-> scrypt {} {work}\n{}\n", text(salt), text(wrapped)),
            Self::Other => String::new(),
        }
    }
}

impl<'a> Header<'a> {
    /// The head of a file, and its content.
    pub(super) fn read(file: &'a [u8]) -> Result<(Self, &'a [u8]), AgeError> {
        const BAD: AgeError = AgeError::Damaged("its head cannot be read");
        let mut at = file.strip_prefix(VERSION).map(|_| VERSION.len()).ok_or(AgeError::NotAge)?;
        let mut line = || {
            let rest = file.get(at..)?;
            let length = rest.iter().take(MAX_HEADER.checked_sub(at)?).position(|b| *b == b'\n')?;
            let text = str::from_utf8(&rest[..length]).ok().filter(|t| t.bytes().all(|b| (0x20..0x7f).contains(&b)))?;
            at += length + 1;
            Some((text, at))
        };
        let mut stanzas = Vec::new();
        loop {
            let (text, end) = line().ok_or(BAD)?;
            if let Some(code) = text.strip_prefix("--- ") {
                let signed = end - 1 - text.len() + "---".len();
                let code = bytes(code).ok_or(BAD)?;
                if stanzas.is_empty() {
                    return Err(BAD);
                }
                return Ok((Self { stanzas, signed: &file[..signed], code }, &file[end..]));
            }
            let words: Vec<&str> = text.strip_prefix("-> ").ok_or(BAD)?.split(' ').collect();
            if words.iter().any(|word| word.is_empty()) {
                return Err(BAD);
            }
            let mut body = String::new();
            loop {
                let (part, _) = line().ok_or(BAD)?;
                body.push_str(part);
                match part.len() {
                    ..COLUMNS => break,
                    COLUMNS => {}
                    _ => return Err(BAD),
                }
            }
            BASE64_NOPAD.decode(body.as_bytes()).map_err(|_| BAD)?;
            stanzas.push(Stanza::read(&words, &body).ok_or(BAD)?);
        }
    }

    /// The head of a new file.
    pub(super) fn write(stanza: &Stanza, file_key: &FileKey) -> Vec<u8> {
        let mut out = [VERSION, stanza.write().as_bytes(), b"---"].concat();
        // HMAC takes keys of every length.
        let code = mac(file_key, &out).map(|m| m.finalize().into_bytes()).unwrap_or_default();
        out.extend_from_slice(format!(" {}\n", BASE64_NOPAD.encode(&code)).as_bytes());
        out
    }

    /// Whether nobody who does not know the file's key has written it.
    pub(super) fn is_of(&self, file_key: &FileKey) -> bool {
        mac(file_key, self.signed).is_some_and(|m| m.verify_slice(&self.code).is_ok())
    }
}
