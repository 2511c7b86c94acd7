//! Secrets in an encrypted file, for machines without a keychain: one age file, written anew at each change.
//!
//! In `Paths::secrets` lie `kept.json`, which says that secrets are kept so; `secrets.age`, encrypted for one identity; and, unless
//! the user has named a file of his own with it, that identity under a passphrase, `identity.age`.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

use firedoor_model::{
    KeychainError,
    keychain::{FileKey, KeptInFile},
    paths::Paths,
};
use serde::{Deserialize, Serialize};

use crate::{
    age::{self, AgeError, Identity},
    private::{self, Links, Lock, fault},
};

/// Longest file of secrets, in bytes.
const MAX_FILE: usize = 16 << 20;
/// Longest of the small files beside it.
const MAX_SMALL: u64 = 64 << 10;
/// Most items.
const MAX_ITEMS: usize = 4096;
/// Longest item. Logins are the longest.
const MAX_ITEM: usize = 1 << 20;
/// How often a person may mistype the passphrase.
const TRIES: u32 = 3;
/// Shortest passphrase for a new file, in characters.
const MIN_PASSPHRASE: usize = 8;

/// Asks a person for the passphrase of a file; `true` when what was said before was wrong. `None` when there is nobody.
pub type Ask = Arc<dyn Fn(&Path, bool) -> Option<String> + Send + Sync>;

/// What opens the file, while this process has it. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct Keys(Arc<Mutex<Option<Identity>>>);

impl Keys {
    fn get(&self) -> Option<Identity> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn set(&self, identity: Option<Identity>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = identity;
    }

    /// For another process of the user's that is to have it as well.
    pub fn key(&self) -> Option<FileKey> {
        self.get().map(|identity| FileKey(identity.text()))
    }

    /// Forgets it.
    pub fn forget(&self) {
        self.set(None);
    }
}

/// What is to open a new file.
#[derive(Clone, PartialEq, Eq)]
pub enum Opener {
    /// Somebody who knows this.
    Passphrase(String),
    /// Whoever can read this file, which has an identity or is made.
    Identity(PathBuf),
}

/// What the file holds.
pub(crate) type Items = BTreeMap<String, String>;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Content {
    format: u32,
    items: Items,
}

/// The file.
pub(crate) struct SecretsFile {
    directory: PathBuf,
    kept: PathBuf,
    pub(crate) keys: Keys,
    pub(crate) ask: Option<Ask>,
}

impl SecretsFile {
    pub(crate) fn new(paths: &Paths, keys: Keys) -> Self {
        Self { directory: paths.secrets(), kept: paths.kept_in_file(), keys, ask: None }
    }

    /// Where the secrets are.
    pub(crate) fn path(&self) -> PathBuf {
        self.directory.join("secrets.age")
    }

    /// The identity that is under a passphrase.
    fn own_identity(&self) -> PathBuf {
        self.directory.join("identity.age")
    }

    /// Whether secrets are kept in the file, and how it opens.
    pub(crate) fn kept(&self) -> Result<Option<KeptInFile>, KeychainError> {
        let Some(bytes) = private::read(&self.kept, MAX_SMALL, Links::Refuse)? else { return Ok(None) };
        private::checked_directory(&self.directory)?;
        let kept: KeptInFile = serde_json::from_slice(&bytes).map_err(|_| {
            fault(&self.kept, "this is damaged, so nobody knows what opens the file of secrets: put a copy of it back, or write `{}` into it if that took a passphrase")
        })?;
        Ok(Some(kept))
    }

    /// Whoever changes anything holds this.
    pub(crate) fn lock(&self) -> Result<Lock, KeychainError> {
        Lock::take(&self.directory)
    }

    fn locked(&self) -> KeychainError {
        KeychainError::FileLocked { path: self.path().display().to_string() }
    }

    /// What the file holds, and what opens it.
    pub(crate) fn open(&self, kept: &KeptInFile) -> Result<(Identity, Items), KeychainError> {
        let bytes = self.bytes()?;
        if let Some(path) = &kept.identity {
            let identity = named(path)?.ok_or_else(|| {
                fault(
                    path,
                    "this file is missing, with the identity that opens Firedoor's file of secrets: put it back",
                )
            })?;
            let items = match self.opened(&identity, bytes.as_deref()) {
                Err(KeychainError::FileLocked { .. }) => {
                    let file = self.path();
                    let why =
                        format!("this is not the identity that {} is encrypted for: put that one back", file.display());
                    return Err(fault(path, why));
                }
                other => other?,
            };
            return Ok((identity, items));
        }
        if let Some(identity) = self.keys.get() {
            match self.opened(&identity, bytes.as_deref()) {
                // Another file than the one that this was for.
                Err(KeychainError::FileLocked { .. }) => self.keys.forget(),
                other => return other.map(|items| (identity, items)),
            }
        }
        let path = self.own_identity();
        let wrapped = private::read(&path, MAX_SMALL, Links::Refuse)?.ok_or_else(|| {
            fault(&path, "this file is missing, without which Firedoor's file of secrets does not open: put it back")
        })?;
        let ask = self.ask.as_ref().ok_or_else(|| self.locked())?;
        for tried in 0..TRIES {
            let passphrase = ask(&self.path(), tried > 0).ok_or_else(|| self.locked())?;
            match age::open_with_passphrase(&passphrase, &wrapped) {
                Err(AgeError::Passphrase) => {}
                Err(e) => return Err(fault(&path, format!("{e}; put a copy of it back"))),
                Ok(text) => {
                    let identity = str::from_utf8(&text).ok().and_then(Identity::read);
                    let identity =
                        identity.ok_or_else(|| fault(&path, "it has no identity in it; put a copy of it back"))?;
                    let items = match self.opened(&identity, bytes.as_deref()) {
                        Err(KeychainError::FileLocked { .. }) => {
                            return Err(fault(
                                &path,
                                format!(
                                    "this is not what {} is encrypted for: put the two files back that belong together",
                                    self.path().display()
                                ),
                            ));
                        }
                        other => other?,
                    };
                    self.keys.set(Some(identity.clone()));
                    return Ok((identity, items));
                }
            }
        }
        Err(fault(&path, "that was not its passphrase; nothing was changed"))
    }

    fn bytes(&self) -> Result<Option<Vec<u8>>, KeychainError> {
        private::read(&self.path(), MAX_FILE as u64, Links::Refuse)
    }

    /// A file that is not there holds nothing. One for another identity is locked.
    fn opened(&self, identity: &Identity, bytes: Option<&[u8]>) -> Result<Items, KeychainError> {
        let Some(bytes) = bytes else { return Ok(Items::new()) };
        let damaged = |why: String| {
            fault(
                &self.path(),
                format!(
                    "{why}; put a copy of it back, or rename it, and Firedoor begins a new one without what it held. Nothing was changed"
                ),
            )
        };
        let plain = match age::open(identity, bytes) {
            Err(AgeError::NotFor) => return Err(self.locked()),
            other => other.map_err(|e| damaged(e.to_string()))?,
        };
        match serde_json::from_slice::<Content>(&plain) {
            Ok(Content { format: 1, items }) => Ok(items),
            Ok(_) => Err(fault(&self.path(), "a newer Firedoor has written this: install that again")),
            // The parser's words may hold a secret.
            Err(_) => Err(damaged("what is in it cannot be read".into())),
        }
    }

    /// Writes all of it. The lock is held.
    pub(crate) fn write(&self, identity: &Identity, items: Items, _: &Lock) -> Result<(), KeychainError> {
        let path = self.path();
        let too_much = |what: String| fault(&path, format!("{what}: remove some (`firedoor secrets remove --unused`)"));
        if items.len() > MAX_ITEMS {
            return Err(too_much(format!("it takes {MAX_ITEMS} secrets and no more")));
        }
        let plain = serde_json::to_vec(&Content { format: 1, items }).map_err(|e| fault(&path, e.to_string()))?;
        let bytes = age::seal(identity, &plain).map_err(|e| fault(&path, e.to_string()))?;
        if bytes.len() > MAX_FILE {
            return Err(too_much(format!("it takes {MAX_FILE} bytes and no more")));
        }
        private::replace(&path, &bytes)
    }

    /// An item's text.
    pub(crate) fn text(&self, item: &str, content: &[u8]) -> Result<String, KeychainError> {
        let failed = |why: &str| KeychainError::Failed { doing: "write", item: item.to_owned(), why: why.into() };
        if content.len() > MAX_ITEM {
            return Err(failed("it is longer than the file of secrets takes"));
        }
        str::from_utf8(content).map(str::to_owned).map_err(|_| failed("it is not text"))
    }

    /// Refuses what lies there from before, and may be all that is left of something.
    pub(crate) fn unused(&self, _: &Lock) -> Result<(), KeychainError> {
        for path in [self.path(), self.own_identity()] {
            if path.symlink_metadata().is_ok() {
                let why = format!(
                    "this is there from before, without {}, which would say that it is in use: put that back, or move this away",
                    self.kept.display()
                );
                return Err(fault(&path, why));
            }
        }
        Ok(())
    }

    /// Removes what [`Self::make`] has made.
    pub(crate) fn discard(&self, _: &Lock) {
        self.keys.forget();
        for path in [self.path(), self.own_identity()] {
            // What stays is named at the next attempt.
            let _ = private::remove(&path);
        }
    }

    /// Makes the file with these items. It is in use once [`Self::begin`] has said so.
    pub(crate) fn make(&self, opener: &Opener, items: Items, lock: &Lock) -> Result<KeptInFile, KeychainError> {
        let (identity, kept) = match opener {
            Opener::Passphrase(passphrase) => {
                let path = self.own_identity();
                if passphrase.chars().count() < MIN_PASSPHRASE {
                    return Err(fault(&path, format!("a passphrase must have at least {MIN_PASSPHRASE} characters")));
                }
                let made = Identity::generate().and_then(|identity| {
                    let text = identity_file(&identity);
                    Ok((age::seal_with_passphrase(passphrase, text.as_bytes())?, text, identity))
                });
                let (wrapped, text, identity) = made.map_err(|e| fault(&path, e.to_string()))?;
                private::replace(&path, &wrapped)?;
                // This process has the identity and would not notice that the next one cannot get it.
                let written = private::read(&path, MAX_SMALL, Links::Refuse)?.unwrap_or_default();
                let opens =
                    age::open_with_passphrase(passphrase, &written).is_ok_and(|opened| opened == text.as_bytes());
                if !opens {
                    return Err(fault(&path, "this does not give back what was written"));
                }
                self.keys.set(Some(identity.clone()));
                (identity, KeptInFile { identity: None })
            }
            Opener::Identity(path) => {
                let identity = match named(path)? {
                    Some(identity) => identity,
                    None => {
                        let identity = Identity::generate().map_err(|e| fault(path, e.to_string()))?;
                        private::create(path, identity_file(&identity).as_bytes())?;
                        identity
                    }
                };
                (identity, KeptInFile { identity: Some(path.clone()) })
            }
        };
        self.write(&identity, items, lock)?;
        Ok(kept)
    }

    /// Secrets are in the file from now on.
    pub(crate) fn begin(&self, kept: &KeptInFile, _: &Lock) -> Result<(), KeychainError> {
        let text = serde_json::to_vec(kept).map_err(|_| fault(&self.kept, "its path is not UTF-8: choose another"))?;
        private::replace(&self.kept, &text)
    }

    /// They are not any more, and what was there goes. A file that the user has named stays.
    pub(crate) fn end(&self, _: &Lock) -> Result<(), KeychainError> {
        private::remove(&self.kept)?;
        private::remove(&self.path())?;
        private::remove(&self.own_identity())?;
        self.keys.forget();
        Ok(())
    }

    /// Takes what another process of the user's has opened the file with, if it does open it.
    pub(crate) fn unlock(&self, kept: &KeptInFile, key: &FileKey) -> Result<(), KeychainError> {
        let identity = Identity::read(&key.0).ok_or_else(|| self.locked())?;
        // Anything would open a file that is not there, and what is written next would be for whoever sent this.
        let bytes = self.bytes()?.ok_or_else(|| {
            fault(
                &self.path(),
                "this is missing: put a copy of it back; if there is none, `firedoor secrets set` begins a new one",
            )
        })?;
        self.opened(&identity, Some(&bytes))?;
        if kept.identity.is_none() {
            self.keys.set(Some(identity));
        }
        Ok(())
    }
}

/// The identity in a file of the user's; `None` when there is no file.
fn named(path: &Path) -> Result<Option<Identity>, KeychainError> {
    let Some(bytes) = private::read(path, MAX_SMALL, Links::Follow)? else { return Ok(None) };
    if age::is_age(&bytes) {
        let why = "this is encrypted itself: without --identity Firedoor makes an identity under a passphrase";
        return Err(fault(path, why));
    }
    let identity = str::from_utf8(&bytes).ok().and_then(Identity::read);
    let why = "this is no identity file of age with one X25519 identity (AGE-SECRET-KEY-1…), as `age-keygen` makes it";
    identity.map(Some).ok_or_else(|| fault(path, why))
}

/// As `age-keygen` writes it.
fn identity_file(identity: &Identity) -> String {
    format!("# made by Firedoor\n# public key: {}\n{}\n", identity.recipient(), identity.text())
}
