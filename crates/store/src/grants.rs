//! Single grants that the user gave to entries.

use std::{
    collections::BTreeMap,
    path::{Component, Path, PathBuf},
};

use firedoor_model::{
    EntryId,
    audit::Event,
    launch::{Access, Grant},
    network::HostGrant,
};
use rusqlite::{Transaction, params};

use crate::{Store, StoreError, StoredEvent, audit::append, row};

/// Longest path or variable name, in bytes.
const MAX_NAME: usize = 4096;

/// What the user granted to one entry beyond its profile.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EntryGrants {
    /// Paths, sorted; each once.
    pub grants: Vec<Grant>,
    /// Names of environment variables that are passed on, sorted. Never their values.
    pub env: Vec<String>,
    /// Hosts, sorted.
    pub hosts: Vec<HostGrant>,
    /// Paths of Unix sockets, sorted.
    pub sockets: Vec<PathBuf>,
}

const ADDING: &str = "add grants";
const REMOVING: &str = "remove grants";

impl EntryGrants {
    /// Whether nothing is granted.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// What of `other` is here, whatever the access is there.
    pub fn common(mut self, other: &Self) -> Self {
        self.grants.retain(|g| other.grants.iter().any(|o| o.path == g.path));
        self.env.retain(|name| other.env.contains(name));
        self.hosts.retain(|host| other.hosts.contains(host));
        self.sockets.retain(|path| other.sockets.contains(path));
        self
    }
}

impl Store {
    /// Adds grants to an entry. For a path that has one already, the new access takes the old one's place.
    pub fn add_grants(&mut self, entry: &EntryId, more: &EntryGrants) -> Result<(), StoreError> {
        acceptable(more)?;
        self.write(ADDING, |tx, path| add(tx, path, entry, more))
    }

    /// The same, and the events that tell of it: both or neither.
    pub fn add_grants_on_record(
        &mut self,
        entry: &EntryId,
        more: &EntryGrants,
        events: &[Event],
    ) -> Result<Vec<StoredEvent>, StoreError> {
        acceptable(more)?;
        self.write(ADDING, |tx, path| {
            add(tx, path, entry, more)?;
            append(tx, path, events)
        })
    }

    /// Takes grants away, whatever the access was. Gives how many there were.
    pub fn remove_grants(&mut self, entry: &EntryId, less: &EntryGrants) -> Result<usize, StoreError> {
        self.write(REMOVING, |tx, path| remove(tx, path, entry, less))
    }

    /// The same, and the events that tell of it: both or neither.
    pub fn remove_grants_on_record(
        &mut self,
        entry: &EntryId,
        less: &EntryGrants,
        events: &[Event],
    ) -> Result<(usize, Vec<StoredEvent>), StoreError> {
        self.write(REMOVING, |tx, path| Ok((remove(tx, path, entry, less)?, append(tx, path, events)?)))
    }
}

fn acceptable(grants: &EntryGrants) -> Result<(), StoreError> {
    let refused = |why| StoreError::Refused { doing: ADDING, why };
    grants
        .grants
        .iter()
        .map(|g| &g.path)
        .chain(&grants.sockets)
        .try_for_each(|path| acceptable_path(path).map_err(refused))?;
    grants.env.iter().try_for_each(|name| acceptable_variable(name).map_err(refused))
}

fn add(tx: &Transaction<'_>, path: &Path, entry: &EntryId, more: &EntryGrants) -> Result<(), StoreError> {
    let failed = |e| StoreError::sqlite(path, ADDING, e);
    let entry = entry.to_string();
    for Grant { path, access } in &more.grants {
        tx.execute(
            "INSERT INTO grant_path (entry, path, access) VALUES (?1, ?2, ?3)
             ON CONFLICT (entry, path) DO UPDATE SET access = excluded.access",
            params![entry, path.as_os_str().as_encoded_bytes(), row::word(access)?],
        )
        .map_err(failed)?;
    }
    for name in &more.env {
        let sql = "INSERT OR IGNORE INTO grant_env (entry, name) VALUES (?1, ?2)";
        tx.execute(sql, params![entry, name]).map_err(failed)?;
    }
    for host in &more.hosts {
        let sql = "INSERT OR IGNORE INTO grant_host (entry, host) VALUES (?1, ?2)";
        tx.execute(sql, params![entry, host.to_string()]).map_err(failed)?;
    }
    for socket in &more.sockets {
        let sql = "INSERT OR IGNORE INTO grant_socket (entry, path) VALUES (?1, ?2)";
        tx.execute(sql, params![entry, socket.as_os_str().as_encoded_bytes()]).map_err(failed)?;
    }
    Ok(())
}

fn remove(tx: &Transaction<'_>, path: &Path, entry: &EntryId, less: &EntryGrants) -> Result<usize, StoreError> {
    let failed = |e| StoreError::sqlite(path, REMOVING, e);
    let entry = entry.to_string();
    let mut removed = 0;
    for Grant { path, .. } in &less.grants {
        let sql = "DELETE FROM grant_path WHERE entry = ?1 AND path = ?2";
        removed += tx.execute(sql, params![entry, path.as_os_str().as_encoded_bytes()]).map_err(failed)?;
    }
    for name in &less.env {
        let sql = "DELETE FROM grant_env WHERE entry = ?1 AND name = ?2";
        removed += tx.execute(sql, params![entry, name]).map_err(failed)?;
    }
    for host in &less.hosts {
        let sql = "DELETE FROM grant_host WHERE entry = ?1 AND host = ?2";
        removed += tx.execute(sql, params![entry, host.to_string()]).map_err(failed)?;
    }
    for socket in &less.sockets {
        let sql = "DELETE FROM grant_socket WHERE entry = ?1 AND path = ?2";
        removed += tx.execute(sql, params![entry, socket.as_os_str().as_encoded_bytes()]).map_err(failed)?;
    }
    Ok(removed)
}

impl<A> Store<A> {
    /// What was granted to one entry.
    pub fn grants(&self, entry: &EntryId) -> Result<EntryGrants, StoreError> {
        Ok(self.all_grants()?.remove(entry).unwrap_or_default())
    }

    /// Every entry that was granted something.
    pub fn all_grants(&self) -> Result<BTreeMap<EntryId, EntryGrants>, StoreError> {
        const DOING: &str = "read the grants";
        let mut all: BTreeMap<EntryId, EntryGrants> = BTreeMap::new();

        let sql = "SELECT rowid, entry, path, access FROM grant_path ORDER BY entry, path";
        let mut statement = self.sql(DOING, self.db.prepare_cached(sql))?;
        let mut rows = self.sql(DOING, statement.query([]))?;
        while let Some(found) = self.sql(DOING, rows.next())? {
            let id: i64 = self.sql(DOING, found.get(0))?;
            let at = row::At { path: &self.path, table: "grant_path", row: &id };
            let text = |column| found.get::<_, String>(column).map_err(|_| at.bad("a column is not UTF-8"));
            let entry: EntryId = at.parsed("entry", &text(1)?)?;
            let bytes: Vec<u8> = self.sql(DOING, found.get(2))?;
            let path = path_from(bytes).ok_or_else(|| at.bad("the path does not read"))?;
            acceptable_path(&path).map_err(|why| at.bad(why))?;
            let access: Access = at.word("access", &text(3)?)?;
            all.entry(entry).or_default().grants.push(Grant { path, access });
        }

        let sql = "SELECT rowid, entry, name FROM grant_env ORDER BY entry, name";
        let mut statement = self.sql(DOING, self.db.prepare_cached(sql))?;
        let mut rows = self.sql(DOING, statement.query([]))?;
        while let Some(found) = self.sql(DOING, rows.next())? {
            let id: i64 = self.sql(DOING, found.get(0))?;
            let at = row::At { path: &self.path, table: "grant_env", row: &id };
            let text = |column| found.get::<_, String>(column).map_err(|_| at.bad("a column is not UTF-8"));
            let entry: EntryId = at.parsed("entry", &text(1)?)?;
            let name = text(2)?;
            acceptable_variable(&name).map_err(|why| at.bad(why))?;
            all.entry(entry).or_default().env.push(name);
        }

        let sql = "SELECT rowid, entry, host FROM grant_host ORDER BY entry, host";
        let mut statement = self.sql(DOING, self.db.prepare_cached(sql))?;
        let mut rows = self.sql(DOING, statement.query([]))?;
        while let Some(found) = self.sql(DOING, rows.next())? {
            let id: i64 = self.sql(DOING, found.get(0))?;
            let at = row::At { path: &self.path, table: "grant_host", row: &id };
            let text = |column| found.get::<_, String>(column).map_err(|_| at.bad("a column is not UTF-8"));
            let entry: EntryId = at.parsed("entry", &text(1)?)?;
            let host: HostGrant = text(2)?.parse().map_err(|_| at.bad("the host does not read"))?;
            all.entry(entry).or_default().hosts.push(host);
        }

        let sql = "SELECT rowid, entry, path FROM grant_socket ORDER BY entry, path";
        let mut statement = self.sql(DOING, self.db.prepare_cached(sql))?;
        let mut rows = self.sql(DOING, statement.query([]))?;
        while let Some(found) = self.sql(DOING, rows.next())? {
            let id: i64 = self.sql(DOING, found.get(0))?;
            let at = row::At { path: &self.path, table: "grant_socket", row: &id };
            let entry: String = found.get(1).map_err(|_| at.bad("a column is not UTF-8"))?;
            let entry: EntryId = at.parsed("entry", &entry)?;
            let bytes: Vec<u8> = self.sql(DOING, found.get(2))?;
            let path = path_from(bytes).ok_or_else(|| at.bad("the path does not read"))?;
            acceptable_path(&path).map_err(|why| at.bad(why))?;
            all.entry(entry).or_default().sockets.push(path);
        }
        for grants in all.values_mut() {
            grants.grants.sort();
            grants.env.sort();
            grants.hosts.sort();
            grants.sockets.sort();
        }
        Ok(all)
    }
}

#[cfg(unix)]
fn path_from(bytes: Vec<u8>) -> Option<PathBuf> {
    Some(PathBuf::from(<std::ffi::OsString as std::os::unix::ffi::OsStringExt>::from_vec(bytes)))
}

#[cfg(not(unix))]
fn path_from(bytes: Vec<u8>) -> Option<PathBuf> {
    String::from_utf8(bytes).ok().map(PathBuf::from)
}

fn acceptable_path(path: &Path) -> Result<(), &'static str> {
    let bytes = path.as_os_str().as_encoded_bytes();
    if !path.is_absolute() {
        Err("a granted path must be absolute")
    } else if path.components().any(|part| part == Component::ParentDir) {
        Err("a granted path must not contain \"..\"")
    } else if bytes.len() > MAX_NAME || bytes.contains(&0) {
        Err("a granted path has at most 4096 bytes and no NUL")
    } else {
        Ok(())
    }
}

fn acceptable_variable(name: &str) -> Result<(), &'static str> {
    if name.is_empty() || name.len() > MAX_NAME || name.contains(['=', '\0']) {
        // Also keeps NAME=VALUE, and with it a secret, out of the database.
        Err("a variable is granted by its name alone: not empty, without \"=\", at most 4096 bytes")
    } else {
        Ok(())
    }
}
