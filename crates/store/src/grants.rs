//! Single grants that the user gave to entries.

use std::{
    collections::BTreeMap,
    path::{Component, Path, PathBuf},
};

use firedoor_model::{
    EntryId,
    launch::{Access, Grant},
    network::HostGrant,
};
use rusqlite::params;

use crate::{Store, StoreError, row};

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

impl Store {
    /// Adds grants to an entry. For a path that has one already, the new access takes the old one's place.
    pub fn add_grants(&mut self, entry: &EntryId, more: &EntryGrants) -> Result<(), StoreError> {
        const DOING: &str = "add grants";
        for path in more.grants.iter().map(|g| &g.path).chain(&more.sockets) {
            acceptable_path(path).map_err(|why| StoreError::Refused { doing: DOING, why })?;
        }
        for name in &more.env {
            acceptable_variable(name).map_err(|why| StoreError::Refused { doing: DOING, why })?;
        }
        let entry = entry.to_string();
        self.write(DOING, |tx, path| {
            let failed = |e| StoreError::sqlite(path, DOING, e);
            for Grant { path, access } in &more.grants {
                tx.execute(
                    "INSERT INTO grant_path (entry, path, access) VALUES (?1, ?2, ?3)
                     ON CONFLICT (entry, path) DO UPDATE SET access = excluded.access",
                    params![entry, path.as_os_str().as_encoded_bytes(), row::word(access)?],
                )
                .map_err(failed)?;
            }
            for name in &more.env {
                tx.execute("INSERT OR IGNORE INTO grant_env (entry, name) VALUES (?1, ?2)", params![entry, name])
                    .map_err(failed)?;
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
        })
    }

    /// Takes grants away, whatever the access was. Gives how many there were.
    pub fn remove_grants(&mut self, entry: &EntryId, less: &EntryGrants) -> Result<usize, StoreError> {
        const DOING: &str = "remove grants";
        let entry = entry.to_string();
        self.write(DOING, |tx, path| {
            let failed = |e| StoreError::sqlite(path, DOING, e);
            let mut removed = 0;
            for Grant { path, .. } in &less.grants {
                removed += tx
                    .execute(
                        "DELETE FROM grant_path WHERE entry = ?1 AND path = ?2",
                        params![entry, path.as_os_str().as_encoded_bytes()],
                    )
                    .map_err(failed)?;
            }
            for name in &less.env {
                removed += tx
                    .execute("DELETE FROM grant_env WHERE entry = ?1 AND name = ?2", params![entry, name])
                    .map_err(failed)?;
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
        })
    }
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
