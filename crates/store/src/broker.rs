//! Secrets in broker mode, by entry. Their names, never their values.

use std::collections::BTreeMap;

use firedoor_model::{
    EntryId,
    broker::{MAX_ROUTES, Route},
};
use rusqlite::params;

use crate::{Store, StoreError, row};

impl Store {
    /// Puts a secret of an entry into broker mode, or leads it elsewhere.
    pub fn put_route(&mut self, entry: &EntryId, route: &Route) -> Result<(), StoreError> {
        const DOING: &str = "keep a secret's broker mode";
        let entry = entry.to_string();
        self.write(DOING, |tx, path| {
            let failed = |e| StoreError::sqlite(path, DOING, e);
            let sql = "SELECT count(*) FROM broker WHERE entry = ?1 AND secret <> ?2";
            let others: i64 = tx.query_row(sql, params![entry, route.secret], |r| r.get(0)).map_err(failed)?;
            if others >= MAX_ROUTES as i64 {
                return Err(StoreError::Refused { doing: DOING, why: "the entry has as many as there may be" });
            }
            let sql = "INSERT OR REPLACE INTO broker (entry, secret, variable, url, header, intercept)
                VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
            let Route { secret, variable, url, header, intercept } = route;
            tx.execute(sql, params![entry, secret, variable, url, header, intercept]).map(drop).map_err(failed)
        })
    }

    /// Takes a secret of an entry out of broker mode. True when it was in it.
    pub fn remove_route(&mut self, entry: &EntryId, secret: &str) -> Result<bool, StoreError> {
        const DOING: &str = "end a secret's broker mode";
        self.write(DOING, |tx, path| {
            let sql = "DELETE FROM broker WHERE entry = ?1 AND secret = ?2";
            let done = tx.execute(sql, params![entry.to_string(), secret]);
            done.map(|count| count > 0).map_err(|e| StoreError::sqlite(path, DOING, e))
        })
    }
}

impl<A> Store<A> {
    /// An entry's secrets in broker mode, by name.
    pub fn routes(&self, entry: &EntryId) -> Result<Vec<Route>, StoreError> {
        Ok(self.all_routes()?.remove(entry).unwrap_or_default())
    }

    /// Every entry that has any.
    pub fn all_routes(&self) -> Result<BTreeMap<EntryId, Vec<Route>>, StoreError> {
        const DOING: &str = "read what is in broker mode";
        let sql = "SELECT rowid, entry, secret, variable, url, header, intercept FROM broker ORDER BY entry, secret";
        let mut statement = self.sql(DOING, self.db.prepare_cached(sql))?;
        let route = |r: &rusqlite::Row<'_>| -> rusqlite::Result<Route> {
            Ok(Route {
                secret: r.get(2)?,
                variable: r.get(3)?,
                url: r.get(4)?,
                header: r.get(5)?,
                intercept: r.get(6)?,
            })
        };
        let rows = statement.query_map([], |r| Ok((r.get(0)?, r.get(1)?, route(r)?)));
        let rows: Vec<(i64, String, Route)> = self.sql(DOING, rows.and_then(Iterator::collect))?;
        let mut all: BTreeMap<EntryId, Vec<Route>> = BTreeMap::new();
        for (number, entry, route) in rows {
            let at = row::At { path: &self.path, table: "broker", row: &number };
            all.entry(at.parsed("entry", &entry)?).or_default().push(route);
        }
        Ok(all)
    }
}
