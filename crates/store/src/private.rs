//! Small files that are ours alone: read with a bound, replaced at once, changed by one process at a time.
//!
//! Whatever stands at such a path is looked at through what was opened, never through its name, and a link is not followed:
//! somebody else may have put it there.

use std::path::Path;

use firedoor_model::KeychainError;

#[cfg(unix)]
#[path = "private/unix.rs"]
mod system;
#[cfg(not(unix))]
#[path = "private/absent.rs"]
mod system;

pub(crate) use system::*;

/// Whether a link at the end of a path is followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Links {
    /// It is refused: the path is ours.
    Refuse,
    /// It is: the path is the user's.
    Follow,
}

/// What is wrong with a file, and the remedy.
pub(crate) fn fault(path: &Path, why: impl Into<String>) -> KeychainError {
    KeychainError::File { path: path.display().to_string(), why: why.into() }
}
