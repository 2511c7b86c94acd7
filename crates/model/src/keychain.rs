//! What keeps secrets, and why it may not.

use std::{
    collections::BTreeMap,
    fmt,
    path::PathBuf,
    sync::{Mutex, MutexGuard, PoisonError},
};

use serde::{Deserialize, Serialize};

use crate::Unavailable;

/// Why a keychain did not do what was asked. Names items, never their content.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeychainError {
    /// There is none.
    #[error(
        "no keychain answers here ({why}): log in to a desktop, start a Secret Service such as gnome-keyring on this \
         session's D-Bus, or keep secrets in an encrypted file (`firedoor secrets keep-in-file`)"
    )]
    Absent {
        /// The system's words.
        why: String,
    },
    /// It is locked, and nobody unlocked it.
    #[error("the keychain is locked: unlock it, as logging in to the desktop does, and try again")]
    Locked,
    /// It does not let us.
    #[error("the keychain denies Firedoor access to {item:?}: allow it in the system's password manager")]
    Denied {
        /// Which item.
        item: String,
    },
    /// It did not answer in time; it may be asking the user.
    #[error("the keychain did not answer within {seconds} s: if it asks for its password, answer it and try again")]
    Slow {
        /// The bound.
        seconds: u64,
    },
    /// Secrets are kept in a file, and nobody has given its passphrase.
    #[error(
        "the file of secrets {path} is locked: run `firedoor secrets unlock` for the engine; commands ask for its passphrase on a terminal"
    )]
    FileLocked {
        /// The file, for people.
        path: String,
    },
    /// Secrets are kept in a file, which cannot be used.
    #[error("{path}: {why}")]
    File {
        /// The file at fault, for people.
        path: String,
        /// What is wrong with it, and the remedy.
        why: String,
    },
    /// Secrets are, or were to be, kept in a file, which Firedoor does not do on this system.
    #[error("{path}: {what}")]
    Unavailable {
        /// The file or directory, for people.
        path: String,
        /// What it does not do.
        what: Unavailable,
    },
    /// Anything else.
    #[error("the keychain failed to {doing} {item:?}: {why}")]
    Failed {
        /// What was tried.
        doing: &'static str,
        /// With which item.
        item: String,
        /// The system's words.
        why: String,
    },
}

/// That secrets are kept in a file, as `kept.json` beside that file says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KeptInFile {
    /// The user's own file with the identity that opens it. Without one it lies beside the file, under a passphrase.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub identity: Option<PathBuf>,
}

/// What opens a file of secrets, on its way to the engine. Never shown.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct FileKey(pub String);

impl fmt::Debug for FileKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("FileKey")
    }
}

/// What keeps secrets: the system's keychain, the file of secrets, or a stand-in in tests. Items are found by their name among
/// Firedoor's own.
pub trait Keychain: Send + Sync {
    /// The content of an item; `None` when there is none.
    fn get(&self, item: &str) -> Result<Option<Vec<u8>>, KeychainError>;
    /// Writes an item, also over one that is there.
    fn set(&self, item: &str, content: &[u8]) -> Result<(), KeychainError>;
    /// Removes an item; whether it was there.
    fn remove(&self, item: &str) -> Result<bool, KeychainError>;
    /// The names of all of Firedoor's items, sorted.
    fn items(&self) -> Result<Vec<String>, KeychainError>;
}

/// A keychain in memory, for tests of what uses one. Locked, it behaves as gnome-keyring does without a display: it knows
/// no item, and takes none.
#[derive(Default)]
pub struct MemoryKeychain(Mutex<(BTreeMap<String, Vec<u8>>, bool)>);

impl MemoryKeychain {
    fn state(&self) -> MutexGuard<'_, (BTreeMap<String, Vec<u8>>, bool)> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Locks or unlocks it.
    pub fn lock(&self, locked: bool) {
        self.state().1 = locked;
    }
}

impl Keychain for MemoryKeychain {
    fn get(&self, item: &str) -> Result<Option<Vec<u8>>, KeychainError> {
        let state = self.state();
        Ok(if state.1 { None } else { state.0.get(item).cloned() })
    }

    fn set(&self, item: &str, content: &[u8]) -> Result<(), KeychainError> {
        let mut state = self.state();
        if state.1 {
            return Err(KeychainError::Locked);
        }
        state.0.insert(item.to_owned(), content.to_owned());
        Ok(())
    }

    fn remove(&self, item: &str) -> Result<bool, KeychainError> {
        Ok(self.state().0.remove(item).is_some())
    }

    fn items(&self) -> Result<Vec<String>, KeychainError> {
        Ok(self.state().0.keys().cloned().collect())
    }
}
