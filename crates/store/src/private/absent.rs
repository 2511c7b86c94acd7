//! Where Firedoor cannot tell whether a file is its user's alone, which takes reading its access list: there is no such file. That
//! nothing lies at a path can be told.

use std::{
    io::ErrorKind::{NotADirectory, NotFound},
    path::Path,
};

use firedoor_model::{KeychainError, Unavailable};

use super::{Links, fault};

fn unavailable<T>(path: &Path) -> Result<T, KeychainError> {
    let what = Unavailable("keeping secrets in a file");
    Err(KeychainError::Unavailable { path: path.display().to_string(), what })
}

/// See the module.
pub(crate) fn directory(path: &Path) -> Result<(), KeychainError> {
    unavailable(path)
}

/// See the module.
pub(crate) fn checked_directory(path: &Path) -> Result<(), KeychainError> {
    unavailable(path)
}

/// `None` when there is no file.
pub(crate) fn read(path: &Path, _: u64, _: Links) -> Result<Option<Vec<u8>>, KeychainError> {
    match path.symlink_metadata() {
        Ok(_) => unavailable(path),
        Err(e) if matches!(e.kind(), NotFound | NotADirectory) => Ok(None),
        Err(e) => Err(fault(path, format!("cannot look at it: {e}"))),
    }
}

/// See the module.
pub(crate) fn create(path: &Path, _: &[u8]) -> Result<(), KeychainError> {
    unavailable(path)
}

/// See the module.
pub(crate) fn replace(path: &Path, _: &[u8]) -> Result<(), KeychainError> {
    unavailable(path)
}

/// See the module.
pub(crate) fn remove(path: &Path) -> Result<bool, KeychainError> {
    unavailable(path)
}

/// Nobody has one.
pub(crate) enum Lock {}

impl Lock {
    /// See the module.
    pub(crate) fn take(directory: &Path) -> Result<Self, KeychainError> {
        unavailable(directory)
    }
}
