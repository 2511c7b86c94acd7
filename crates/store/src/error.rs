//! What can go wrong with the database, said so that the user can act on it.

use std::{
    io,
    path::{Path, PathBuf},
};

use rusqlite::ErrorCode;

/// Why an operation on the database failed. Texts name the file, never a value from it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// Another engine holds the database. It has the same state but another socket, or whoever asks had found it. What to do
    /// comes first: on its way to a person who looks at one entry the text is cut.
    #[error("your engine listens elsewhere: give this program its XDG_RUNTIME_DIR (an entry: in env), or end that engine; it has {path}", path = .path.display())]
    Locked {
        /// The database.
        path: PathBuf,
    },
    /// Another process kept the database locked for longer than the store waits.
    #[error("cannot {doing}: {path} is locked by another process; close programs that have it open and try again", path = .path.display())]
    Busy {
        /// The database.
        path: PathBuf,
        /// The action that failed.
        doing: &'static str,
    },
    /// Written by a later version.
    #[error("{path} has schema version {found}, this Firedoor knows up to {known}: install the newer Firedoor again; nothing was changed", path = .path.display())]
    Newer {
        /// The database.
        path: PathBuf,
        /// Its schema version.
        found: i64,
        /// The newest version this program knows.
        known: i64,
    },
    /// Written by an earlier version, and opened for reading only.
    #[error("{path} has the older schema version {found} and is open for reading only: start the engine once to bring it up to date", path = .path.display())]
    Older {
        /// The database.
        path: PathBuf,
        /// Its schema version.
        found: i64,
    },
    /// A SQLite database, but not Firedoor's.
    #[error("{path} is the database of another program: move it away; nothing was changed", path = .path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
    },
    /// Something else than a file stands where the database should be.
    #[error("{path} is not a regular file: move it away and start the engine again", path = .path.display())]
    NotAFile {
        /// The path.
        path: PathBuf,
    },
    /// There is no database yet.
    #[error("{path} does not exist: start the engine once to create it", path = .path.display())]
    Missing {
        /// The path.
        path: PathBuf,
    },
    /// The database is damaged, or is no database.
    #[error("cannot {doing}: {path} is damaged ({why}); the engine sets a damaged database aside when it starts", path = .path.display())]
    Corrupt {
        /// The database.
        path: PathBuf,
        /// The action that failed.
        doing: &'static str,
        /// What is wrong with it.
        why: String,
    },
    /// No space left. Nothing was changed.
    #[error("cannot {doing}: no space left for {path}; free some disk space, nothing was changed", path = .path.display())]
    Full {
        /// The database.
        path: PathBuf,
        /// The action that failed.
        doing: &'static str,
    },
    /// The file or its file system cannot be written. Nothing was changed.
    #[error("cannot {doing}: {path} is read-only; check its permissions and the file system, nothing was changed", path = .path.display())]
    ReadOnly {
        /// The database.
        path: PathBuf,
        /// The action that failed.
        doing: &'static str,
    },
    /// A row that this program cannot read. It is never skipped: it may be a rule that blocks.
    #[error("row {row} of table {table} in {path} cannot be read: {why}", path = .path.display())]
    Row {
        /// The database.
        path: PathBuf,
        /// The table.
        table: &'static str,
        /// Its key.
        row: String,
        /// What is wrong with it.
        why: String,
    },
    /// The audit chain is broken where it would have to be continued or shortened.
    #[error("the audit log in {path} was tampered with ({why}): run `firedoor log verify`, then move the file aside", path = .path.display())]
    Chain {
        /// The database.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// What should have been written is not acceptable.
    #[error("cannot {doing}: {why}")]
    Refused {
        /// The action that failed.
        doing: &'static str,
        /// Why it is not acceptable.
        why: &'static str,
    },
    /// The file system refused.
    #[error("cannot {doing} {path}", path = .path.display())]
    Io {
        /// The action that failed.
        doing: &'static str,
        /// On which file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// Any other error of SQLite.
    #[error("cannot {doing} in {path}", path = .path.display())]
    Sqlite {
        /// The database.
        path: PathBuf,
        /// The action that failed.
        doing: &'static str,
        /// SQLite's error.
        source: rusqlite::Error,
    },
}

impl StoreError {
    /// Sorts an error of SQLite. `doing` completes "cannot …".
    pub(crate) fn sqlite(path: &Path, doing: &'static str, source: rusqlite::Error) -> Self {
        let path = path.to_owned();
        match source.sqlite_error_code() {
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Self::Busy { path, doing },
            Some(ErrorCode::DiskFull) => Self::Full { path, doing },
            Some(ErrorCode::ReadOnly) => Self::ReadOnly { path, doing },
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => {
                Self::Corrupt { path, doing, why: source.to_string() }
            }
            _ => Self::Sqlite { path, doing, source },
        }
    }

    /// Wraps an error of the file system. `doing` completes "cannot … PATH".
    pub(crate) fn io(path: &Path, doing: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Io { doing, path: path.to_owned(), source }
    }
}
