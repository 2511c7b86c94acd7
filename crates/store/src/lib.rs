//! All state that Firedoor writes: SQLite with a hash-chained audit log, rules, pins, grants, settings; and the system's
//! keychain, or an encrypted file in its place.
//!
//! Architecture invariants: nothing else writes the database; no clock, times are passed in; no secret is stored in the
//! database; a row that cannot be read is an error that names it and is never skipped.

mod age;
mod audit;
mod broker;
mod declined;
mod endpoints;
mod error;
mod files;
mod grants;
mod habits;
mod keychain;
mod observations;
mod page;
mod pins;
mod private;
mod row;
mod rules;
mod schema;
mod secrets;
mod secrets_file;
mod settings;
mod uses;
mod verify;

use std::{
    fs::File,
    io,
    path::{Path, PathBuf},
};

use firedoor_model::Millis;
use rusqlite::{Connection, OpenFlags, Transaction, TransactionBehavior};

pub use audit::{MAX_EVENT, MAX_EVENTS, Query, StoredEvent};
pub use error::StoreError;
pub use grants::EntryGrants;
pub use keychain::SystemKeychain;
pub use observations::Observation;
pub use page::{Count, Page};
pub use pins::{Accepted, Definition, Observed, Pin, PinKey, PinKind, PinState};
pub use rules::MAX_RULES;
pub use secrets::{Moved, Place, Secrets};
pub use secrets_file::{Ask, Keys, Opener};
pub use settings::{MAX_LOG_DAYS, MIN_LOG_DAYS};
pub use verify::{Bad, Head, Verified, Why};

/// Reading and writing, as the one engine of this user. Holds the lock until it is dropped.
pub struct ReadWrite {
    _lock: File,
}

/// Reading only, also while an engine runs.
pub struct ReadOnly(());

/// The database. `Store<ReadOnly>` has no method that writes.
pub struct Store<A = ReadWrite> {
    // Before `_access`: the connection is closed before the lock is given up.
    db: Connection,
    path: PathBuf,
    _access: A,
}

/// An opened database.
pub struct Opened {
    /// The database.
    pub store: Store,
    /// Where a damaged database was moved, when a new one had to be started. Rules, pins and grants in it are not in
    /// force: the user has to be told.
    pub set_aside: Option<PathBuf>,
}

impl Store {
    /// Opens the database at `path`, creating it (mode 0600) and its directory (0700) when absent.
    ///
    /// A file that is damaged or no database is renamed to `<path>.corrupt-<now>` with its `-wal` and `-shm`, and a new
    /// one is started. A database of a newer version or of another program is an error and stays untouched, as is one
    /// that another engine holds.
    pub fn open(path: &Path, now: Millis) -> Result<Opened, StoreError> {
        files::private_directory(path)?;
        let lock = files::lock(path)?;
        let attempt = || {
            files::private_file(path)?;
            schema::examine(path, OpenFlags::SQLITE_OPEN_READ_WRITE)
        };
        let (found, set_aside) = match attempt() {
            Err(StoreError::Corrupt { .. }) => {
                let aside = files::set_aside(path, now)?;
                (attempt()?, Some(aside))
            }
            other => (other?, None),
        };
        let db = schema::prepare(path, found.0, found.1)?;
        Ok(Opened { store: Self { db, path: path.to_owned(), _access: ReadWrite { _lock: lock } }, set_aside })
    }

    /// Runs `work` in one transaction that is committed, on disk, before this returns.
    fn write<T>(
        &mut self,
        doing: &'static str,
        work: impl FnOnce(&Transaction<'_>, &Path) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let failed = |e| StoreError::sqlite(&self.path, doing, e);
        let transaction = self.db.transaction_with_behavior(TransactionBehavior::Immediate).map_err(failed)?;
        let done = work(&transaction, &self.path)?;
        transaction.commit().map_err(failed)?;
        Ok(done)
    }
}

impl Store<ReadOnly> {
    /// Opens an existing database for reading, also while an engine writes it. A damaged one is an error here; only
    /// the engine sets it aside.
    pub fn open_read_only(path: &Path) -> Result<Self, StoreError> {
        match path.metadata() {
            Ok(found) if !found.is_file() => return Err(StoreError::NotAFile { path: path.to_owned() }),
            Ok(_) => {}
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Err(StoreError::Missing { path: path.to_owned() }),
            Err(e) => return Err(StoreError::io(path, "look at")(e)),
        }
        let (db, version) = schema::examine(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
        match version {
            // An engine is creating it right now, or was stopped while it did.
            0 => Err(StoreError::Missing { path: path.to_owned() }),
            v if v < schema::newest() => Err(StoreError::Older { path: path.to_owned(), found: v }),
            _ => Ok(Self { db, path: path.to_owned(), _access: ReadOnly(()) }),
        }
    }
}

impl<A> Store<A> {
    /// The database's file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn sql<T>(&self, doing: &'static str, result: rusqlite::Result<T>) -> Result<T, StoreError> {
        result.map_err(|e| StoreError::sqlite(&self.path, doing, e))
    }
}

#[cfg(test)]
mod tests;
