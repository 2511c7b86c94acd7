//! Addresses on this machine at which clients reach a server. They stay the same, because they stand in configurations.

use firedoor_model::{
    EntryId,
    endpoint::{Endpoint, MAX_ENDPOINTS},
};
use rusqlite::params;

use crate::{Store, StoreError, row};

impl Store {
    /// Keeps an endpoint. Of an entry that has one only the target changes: its address stands in a configuration.
    pub fn put_endpoint(&mut self, endpoint: &Endpoint) -> Result<(), StoreError> {
        const DOING: &str = "keep an endpoint";
        let (entry, target) = (endpoint.entry.to_string(), row::json(&endpoint.target)?);
        self.write(DOING, |tx, path| {
            let failed = |e| StoreError::sqlite(path, DOING, e);
            let sql = "SELECT count(*) FROM endpoint WHERE entry <> ?1";
            let others: i64 = tx.query_row(sql, [&entry], |r| r.get(0)).map_err(failed)?;
            if others >= MAX_ENDPOINTS as i64 {
                return Err(StoreError::Refused {
                    doing: DOING,
                    why: "there are as many as Firedoor keeps: remove one",
                });
            }
            let sql = "INSERT INTO endpoint (entry, port, key, target) VALUES (?1, ?2, ?3, ?4)
                       ON CONFLICT (entry) DO UPDATE SET target = excluded.target";
            tx.execute(sql, params![entry, endpoint.port, endpoint.key, target]).map(drop).map_err(failed)
        })
    }

    /// Keeps the port that was found for an endpoint that had none.
    pub fn set_endpoint_port(&mut self, entry: &EntryId, port: u16) -> Result<(), StoreError> {
        const DOING: &str = "keep an endpoint's port";
        self.write(DOING, |tx, path| {
            let sql = "UPDATE endpoint SET port = ?2 WHERE entry = ?1 AND port = 0";
            tx.execute(sql, params![entry.to_string(), port]).map(drop).map_err(|e| StoreError::sqlite(path, DOING, e))
        })
    }

    /// Removes an endpoint. True when there was one.
    pub fn remove_endpoint(&mut self, entry: &EntryId) -> Result<bool, StoreError> {
        const DOING: &str = "remove an endpoint";
        self.write(DOING, |tx, path| {
            let done = tx.execute("DELETE FROM endpoint WHERE entry = ?1", [entry.to_string()]);
            done.map(|count| count > 0).map_err(|e| StoreError::sqlite(path, DOING, e))
        })
    }
}

impl<A> Store<A> {
    /// Every endpoint, by entry.
    pub fn endpoints(&self) -> Result<Vec<Endpoint>, StoreError> {
        const DOING: &str = "read the endpoints";
        let sql = "SELECT rowid, entry, port, key, target FROM endpoint ORDER BY entry";
        let mut statement = self.sql(DOING, self.db.prepare_cached(sql))?;
        let rows = statement.query_map([], |r| Ok((r.get(0)?, r.get(1)?, r.get(2)?, r.get(3)?, r.get(4)?)));
        let rows: Vec<(i64, String, u16, String, String)> = self.sql(DOING, rows.and_then(Iterator::collect))?;
        let read = |(number, entry, port, key, target): (i64, String, u16, String, String)| {
            let at = row::At { path: &self.path, table: "endpoint", row: &number };
            Ok(Endpoint { entry: at.parsed("entry", &entry)?, port, key, target: at.json("target", &target)? })
        };
        rows.into_iter().map(read).collect()
    }
}
