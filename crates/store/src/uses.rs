//! How often rules settled something.

use std::collections::BTreeMap;

use firedoor_model::{Millis, rule::Use};
use rusqlite::params;

use crate::{Store, StoreError, row};

impl Store {
    /// Adds to what was counted before. Rules that are gone by now are left out.
    pub fn count_uses(&mut self, more: &BTreeMap<i64, Use>) -> Result<(), StoreError> {
        const DOING: &str = "count the uses of rules";
        if more.is_empty() {
            return Ok(());
        }
        self.write(DOING, |tx, path| {
            let failed = |e| StoreError::sqlite(path, DOING, e);
            // A managed rule has a number below zero and no row.
            let sql = "INSERT INTO rule_use (rule, hits, last)
                       SELECT ?1, ?2, ?3 WHERE ?1 < 0 OR EXISTS (SELECT 1 FROM rule WHERE id = ?1)
                       ON CONFLICT (rule) DO UPDATE SET hits = hits + excluded.hits, last = max(last, excluded.last)";
            let mut add = tx.prepare_cached(sql).map_err(failed)?;
            for (rule, Use { hits, last }) in more {
                let hits = i64::from(u32::try_from(*hits).unwrap_or(u32::MAX));
                add.execute(params![rule, hits, row::sql_time(*last)]).map_err(failed)?;
            }
            Ok(())
        })
    }
}

impl<A> Store<A> {
    /// The uses of every rule that was ever used.
    pub fn rule_uses(&self) -> Result<BTreeMap<i64, Use>, StoreError> {
        const DOING: &str = "read the uses of rules";
        let mut statement = self.sql(DOING, self.db.prepare_cached("SELECT rule, hits, last FROM rule_use"))?;
        let rows = statement.query_map([], |r| {
            let number = |column| Ok::<_, rusqlite::Error>(u64::try_from(r.get::<_, i64>(column)?).unwrap_or(0));
            Ok((r.get(0)?, Use { hits: number(1)?, last: Millis(number(2)?) }))
        });
        self.sql(DOING, rows.and_then(Iterator::collect))
    }
}
