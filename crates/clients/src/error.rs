//! What can go wrong with one configuration file, in words that say what to do.

use std::{io, path::PathBuf};

use serde::Serialize;

use crate::sys;

/// Why a configuration file was not read or not changed. The file is untouched in every case.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// Not what the client's parser takes.
    #[error(
        "{path:?}, line {line}, column {column}: {what}. The file was left untouched: correct it there and try again"
    )]
    Syntax {
        /// Which file.
        path: PathBuf,
        /// Counted from 1.
        line: usize,
        /// In characters, counted from 1.
        column: usize,
        /// What the parser says.
        what: String,
    },
    /// Larger than any configuration of this client.
    #[error(
        "{path:?} is larger than {max} bytes, and no larger file of this client is read: with the client closed, take out what is no \
         setting (old projects and their history, say). It was left untouched"
    )]
    TooLarge {
        /// Which file.
        path: PathBuf,
        /// The bound.
        max: u64,
    },
    /// A pipe, socket, device or directory.
    #[error("{path:?} is {kind}, not a regular file: replace it by one")]
    NotRegular {
        /// Which file.
        path: PathBuf,
        /// What it is.
        kind: &'static str,
    },
    /// Text in another encoding.
    #[error("{path:?} is not UTF-8{hint}: save it as UTF-8. It was left untouched")]
    NotUtf8 {
        /// Which file.
        path: PathBuf,
        /// A guess at the encoding.
        hint: &'static str,
    },
    /// A symbolic link to nothing.
    #[error("{path:?} is a symbolic link to nothing: create its target or remove the link")]
    Dangling {
        /// Which link.
        path: PathBuf,
    },
    /// Symbolic links in a circle.
    #[error("{path:?} is a loop of symbolic links: remove one of them")]
    Loop {
        /// Which link.
        path: PathBuf,
    },
    /// More than one name for the file: replacing it would cut the others off.
    #[error("{path:?} has {links} hard links, and replacing it would separate them: copy it to a file of its own")]
    HardLinks {
        /// Which file.
        path: PathBuf,
        /// How many names.
        links: u64,
    },
    /// Somebody else's file.
    #[error("{path:?} belongs to another user (uid {uid}): run this as that user")]
    Foreign {
        /// Which file.
        path: PathBuf,
        /// Its owner.
        uid: u32,
    },
    /// Marked as not to be written.
    #[error("{path:?} is read-only: make it writable ({}), or change it where it is generated", sys::MAKE_WRITABLE)]
    ReadOnly {
        /// Which file.
        path: PathBuf,
    },
    /// Refused by the system.
    #[error("cannot {doing} {path:?}: {source}{remedy}")]
    Io {
        /// What was tried.
        doing: &'static str,
        /// On which file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
        /// What to do, if that is known.
        remedy: &'static str,
    },
    /// Another process holds our lock.
    #[error("another Firedoor command is changing {path:?}: wait for it and try again")]
    Busy {
        /// Which file.
        path: PathBuf,
    },
    /// The client holds its own lock.
    #[error("the client is saving {path:?} (it holds a lock beside it): try again in ten seconds, or close the client")]
    ClientBusy {
        /// Which file.
        path: PathBuf,
    },
    /// The client kept writing.
    #[error(
        "{path:?} was changed by another program each of the {tries} times we tried: close the client and try again"
    )]
    Changing {
        /// Which file.
        path: PathBuf,
        /// How often.
        tries: u32,
    },
    /// What was written is not what is there now.
    #[error("{path:?} was changed by another program right after it was written: run firedoor scan to see its state")]
    ChangedAfter {
        /// Which file.
        path: PathBuf,
    },
    /// An edit that would not be exactly reversible is not made.
    #[error("{path:?} cannot be edited reversibly at {entry}: it was left untouched; please report this file's shape")]
    Irreversible {
        /// Which file.
        path: PathBuf,
        /// Which entry.
        entry: String,
    },
    /// The file was removed since it was looked at.
    #[error("{path:?} is no longer there: nothing to change")]
    Gone {
        /// Which file.
        path: PathBuf,
    },
}

/// A problem with one file, as `scan` shows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Problem {
    /// What is wrong and what to do.
    pub message: String,
    /// Line of a syntax error, counted from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<usize>,
    /// Column of a syntax error, counted from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub column: Option<usize>,
}

impl From<&FileError> for Problem {
    fn from(error: &FileError) -> Self {
        let (line, column) = match error {
            FileError::Syntax { line, column, .. } => (Some(*line), Some(*column)),
            _ => (None, None),
        };
        Self { message: error.to_string(), line, column }
    }
}

impl FileError {
    pub(crate) fn io(doing: &'static str, path: impl Into<PathBuf>, source: io::Error) -> Self {
        let remedy = match source.kind() {
            // Whoever only looks need not be told how to write.
            io::ErrorKind::PermissionDenied if doing == "read" => ". Make it readable for you, and its directory too",
            io::ErrorKind::PermissionDenied => sys::DENIED,
            io::ErrorKind::ReadOnlyFilesystem => ". The file system is mounted read-only",
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => ". Free some space and try again",
            io::ErrorKind::ResourceBusy => ". It is a mount point: change it where it is mounted from",
            io::ErrorKind::FileTooLarge => ". Raise the file size limit (ulimit -f)",
            _ => "",
        };
        Self::Io { doing, path: path.into(), source, remedy }
    }
}
