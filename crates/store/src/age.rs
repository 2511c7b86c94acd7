//! The age file format, version 1 (C2SP, `age.md`), as far as a file of secrets needs it: one recipient of the native type
//! (X25519), or a passphrase (scrypt). So what Firedoor keeps in a file opens with every implementation of age, without
//! Firedoor.
//!
//! Bytes in, bytes out: this module reads no file. Why it is not the `age` crate stands in ARCHITECTURE.md.

mod header;

use std::fmt;

use bech32::{Bech32, Hrp, primitives::decode::CheckedHrpstring};
use chacha20poly1305::{ChaCha20Poly1305, KeyInit as _, Nonce, aead::Aead as _};
use hkdf::Hkdf;
use sha2::Sha256;
use x25519_dalek::{PublicKey, StaticSecret};

use header::{Header, Stanza};

/// What every file begins with.
const VERSION: &[u8] = b"age-encryption.org/v1\n";
/// Encrypted at once, in bytes.
const CHUNK: usize = 64 * 1024;
/// What is added to each of them.
const TAG: usize = 16;
/// Of an identity's text.
const IDENTITY: &str = "AGE-SECRET-KEY-";
/// Of a recipient's text.
const RECIPIENT: Hrp = Hrp::parse_unchecked("age");

/// 2^17 blocks of 1 KiB: 128 MiB, the first choice of the OWASP Password Storage Cheat Sheet. age's own is 2^18, which is
/// much for the small machines that have no keychain.
const WORK: u8 = 17;
/// Most that is done for a file that says how much work it takes: 1 GiB.
const MAX_WORK: u8 = 20;

/// Why bytes do not open.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum AgeError {
    /// Something else.
    #[error("it is no age file")]
    NotAge,
    /// An age file that was changed or cut off.
    #[error("it is damaged: {0}")]
    Damaged(&'static str),
    /// Not encrypted to this identity.
    #[error("it is encrypted for another identity")]
    NotFor,
    /// Not with this passphrase.
    #[error("this is not its passphrase")]
    Passphrase,
    /// It would take too much memory.
    #[error("it asks for 2^{0} KiB of memory to open; at most 2^{MAX_WORK} are given")]
    Work(u8),
    /// The system.
    #[error("the system gives no random numbers")]
    Random,
}

type Key = [u8; 32];
type FileKey = [u8; 16];

fn random<const N: usize>() -> Result<[u8; N], AgeError> {
    let mut out = [0; N];
    getrandom::fill(&mut out).map_err(|_| AgeError::Random)?;
    Ok(out)
}

fn derived(from: &[u8], salt: &[u8], info: &[u8]) -> Key {
    let mut key = [0; 32];
    // RFC 5869 gives up to 255 times what is asked for here, which is the only error there is.
    let _ = Hkdf::<Sha256>::new(Some(salt), from).expand(info, &mut key);
    key
}

/// Whoever has it can open what was sealed for it.
#[derive(Clone)]
pub struct Identity(StaticSecret);

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Identity")
    }
}

impl Identity {
    /// A new one.
    pub(crate) fn generate() -> Result<Self, AgeError> {
        Ok(Self(StaticSecret::from(random::<32>()?)))
    }

    /// Reads an identity file as `age-keygen` writes it: lines, of which those with `#` are comments. `None` when it has not
    /// exactly one identity, of the type that is meant here.
    pub fn read(text: &str) -> Option<Self> {
        let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
        let (line, None) = (lines.next()?, lines.next()) else { return None };
        let checked = CheckedHrpstring::new::<Bech32>(line).ok()?;
        let is_one =
            line.chars().all(|c| !c.is_ascii_lowercase()) && checked.hrp().to_string().eq_ignore_ascii_case(IDENTITY);
        let bytes: Key = checked.byte_iter().collect::<Vec<u8>>().try_into().ok()?;
        is_one.then(|| Self(StaticSecret::from(bytes)))
    }

    /// Its text.
    pub fn text(&self) -> String {
        let hrp = Hrp::parse_unchecked(IDENTITY);
        bech32::encode_upper::<Bech32>(hrp, &self.0.to_bytes()).unwrap_or_default()
    }

    /// What to encrypt for, for whoever has the identity.
    pub(crate) fn recipient(&self) -> String {
        bech32::encode::<Bech32>(RECIPIENT, PublicKey::from(&self.0).as_bytes()).unwrap_or_default()
    }
}

/// Whether a file is of this format.
pub(crate) fn is_age(bytes: &[u8]) -> bool {
    bytes.starts_with(VERSION)
}

/// Seals for an identity.
pub(crate) fn seal(identity: &Identity, plain: &[u8]) -> Result<Vec<u8>, AgeError> {
    let file_key = random()?;
    let ephemeral = StaticSecret::from(random::<32>()?);
    let (share, recipient) = (PublicKey::from(&ephemeral), PublicKey::from(&identity.0));
    let key = x25519_key(&ephemeral, &recipient, &share, &recipient).ok_or(AgeError::Random)?;
    let stanza = Stanza::X25519 { share: share.to_bytes(), wrapped: wrap(&key, file_key)? };
    sealed(file_key, stanza, plain)
}

/// Opens what was sealed for an identity.
pub(crate) fn open(identity: &Identity, bytes: &[u8]) -> Result<Vec<u8>, AgeError> {
    let (header, payload) = Header::read(bytes)?;
    let recipient = PublicKey::from(&identity.0);
    let unwrapped = header.stanzas.iter().find_map(|stanza| {
        let Stanza::X25519 { share, wrapped } = stanza else { return None };
        let share = PublicKey::from(*share);
        unwrap(&x25519_key(&identity.0, &share, &share, &recipient)?, wrapped)
    });
    opened(unwrapped.ok_or(AgeError::NotFor)?, &header, payload)
}

/// Seals under a passphrase. Takes a while, and [`WORK`] of memory.
pub(crate) fn seal_with_passphrase(passphrase: &str, plain: &[u8]) -> Result<Vec<u8>, AgeError> {
    seal_with_work(passphrase, plain, WORK)
}

fn seal_with_work(passphrase: &str, plain: &[u8], work: u8) -> Result<Vec<u8>, AgeError> {
    let (file_key, salt) = (random()?, random()?);
    let key = scrypt_key(passphrase, &salt, work)?;
    sealed(file_key, Stanza::Scrypt { salt, work, wrapped: wrap(&key, file_key)? }, plain)
}

/// Opens what was sealed under a passphrase.
pub(crate) fn open_with_passphrase(passphrase: &str, bytes: &[u8]) -> Result<Vec<u8>, AgeError> {
    let (header, payload) = Header::read(bytes)?;
    // age.md: such a stanza is the only one, so that whoever knows one of two passphrases is no stranger.
    let [Stanza::Scrypt { salt, work, wrapped }] = header.stanzas.as_slice() else { return Err(AgeError::NotFor) };
    if *work > MAX_WORK {
        return Err(AgeError::Work(*work));
    }
    let unwrapped = unwrap(&scrypt_key(passphrase, salt, *work)?, wrapped);
    opened(unwrapped.ok_or(AgeError::Passphrase)?, &header, payload)
}

/// `None` for the few shares that give the same key to everybody (RFC 7748, section 6.1).
fn x25519_key(secret: &StaticSecret, with: &PublicKey, share: &PublicKey, recipient: &PublicKey) -> Option<Key> {
    let shared = secret.diffie_hellman(with);
    let salt = [share.to_bytes(), recipient.to_bytes()].concat();
    shared.was_contributory().then(|| derived(shared.as_bytes(), &salt, b"age-encryption.org/v1/X25519"))
}

fn scrypt_key(passphrase: &str, salt: &[u8; 16], work: u8) -> Result<Key, AgeError> {
    let params = scrypt::Params::new(work, 8, 1).map_err(|_| AgeError::Work(work))?;
    let salt = [b"age-encryption.org/v1/scrypt".as_slice(), salt].concat();
    let mut key = [0; 32];
    scrypt::scrypt(passphrase.as_bytes(), &salt, &params, &mut key).map_err(|_| AgeError::Work(work))?;
    Ok(key)
}

/// The key is used for this alone, so its nonce is zero.
fn wrap(key: &Key, file_key: FileKey) -> Result<[u8; 32], AgeError> {
    let wrapped = ChaCha20Poly1305::new(&(*key).into()).encrypt(&Nonce::default(), file_key.as_slice());
    wrapped.ok().and_then(|w| w.try_into().ok()).ok_or(AgeError::Damaged("its key cannot be wrapped"))
}

fn unwrap(key: &Key, wrapped: &[u8; 32]) -> Option<FileKey> {
    let opened = ChaCha20Poly1305::new(&(*key).into()).decrypt(&Nonce::default(), wrapped.as_slice());
    opened.ok()?.try_into().ok()
}

fn sealed(file_key: FileKey, stanza: Stanza, plain: &[u8]) -> Result<Vec<u8>, AgeError> {
    let mut out = Header::write(&stanza, &file_key);
    let salt: [u8; 16] = random()?;
    out.extend_from_slice(&salt);
    let cipher = ChaCha20Poly1305::new(&derived(&file_key, &salt, b"payload").into());
    let mut chunks = plain.chunks(CHUNK).peekable();
    let mut place = 0;
    loop {
        // Also of nothing there is one chunk.
        let chunk = chunks.next().unwrap_or_default();
        let last = chunks.peek().is_none();
        let sealed = cipher.encrypt(&nonce(place, last), chunk);
        out.extend(sealed.map_err(|_| AgeError::Damaged("it cannot be sealed"))?);
        if last {
            return Ok(out);
        }
        place += 1;
    }
}

fn opened(file_key: FileKey, header: &Header<'_>, payload: &[u8]) -> Result<Vec<u8>, AgeError> {
    if !header.is_of(&file_key) {
        return Err(AgeError::Damaged("its head was changed"));
    }
    let (salt, mut rest) = payload.split_first_chunk::<16>().ok_or(AgeError::Damaged("it ends early"))?;
    let cipher = ChaCha20Poly1305::new(&derived(&file_key, salt, b"payload").into());
    let mut plain = Vec::with_capacity(rest.len());
    let mut place = 0;
    loop {
        let (chunk, after) = rest.split_at(rest.len().min(CHUNK + TAG));
        let last = after.is_empty();
        let opened = cipher.decrypt(&nonce(place, last), chunk);
        let opened = opened.map_err(|_| AgeError::Damaged("its content was changed or cut off"))?;
        if opened.is_empty() && place > 0 {
            return Err(AgeError::Damaged("it has an empty end"));
        }
        plain.extend(opened);
        if last {
            return Ok(plain);
        }
        (rest, place) = (after, place + 1);
    }
}

/// Eleven bytes count, the last one says whether it is the last.
fn nonce(place: u64, last: bool) -> Nonce {
    let mut nonce = [0; 12];
    nonce[3..11].copy_from_slice(&place.to_be_bytes());
    nonce[11] = u8::from(last);
    nonce.into()
}

#[cfg(test)]
mod tests;
