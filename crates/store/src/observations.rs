//! Observe mode: which entries are to be observed, and what was seen.

use firedoor_model::{
    EntryId, Millis,
    observation::{Basis, Record},
};
use rusqlite::{OptionalExtension, params};

use crate::{Store, StoreError, row};

/// Longest text of a record, in bytes: below what one value may have.
const MAX_RECORD: usize = 3 << 20;

/// What was seen of an entry's last observed run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Observation {
    /// When the run began.
    pub at: Millis,
    /// What was seen.
    pub record: Record,
    /// What a proposal is measured by.
    pub basis: Basis,
}

impl Store {
    /// An entry's next start is to be observed, if it comes by then; `None`: it is not.
    pub fn observe_next(&mut self, entry: &EntryId, until: Option<Millis>) -> Result<(), StoreError> {
        const DOING: &str = "switch observing on or off";
        let entry = entry.to_string();
        self.write(DOING, |tx, path| {
            let done = match until {
                Some(until) => tx.execute(
                    "INSERT INTO observe_next (entry, until) VALUES (?1, ?2)
                     ON CONFLICT (entry) DO UPDATE SET until = excluded.until",
                    params![entry, row::sql_time(until)],
                ),
                None => tx.execute("DELETE FROM observe_next WHERE entry = ?1", [entry]),
            };
            done.map(drop).map_err(|e| StoreError::sqlite(path, DOING, e))
        })
    }

    /// Keeps what was seen of an entry, in place of what was seen before. Of a record that is too long a part is kept.
    pub fn set_observed(&mut self, entry: &EntryId, seen: &Observation) -> Result<(), StoreError> {
        const DOING: &str = "keep what was observed";
        let mut kept = seen.record.clone();
        let mut record = row::json(&kept)?;
        while record.len() > MAX_RECORD {
            kept.halve();
            record = row::json(&kept)?;
        }
        let values = (entry.to_string(), row::sql_time(seen.at), record, row::json(&seen.basis)?);
        self.write(DOING, |tx, path| {
            let sql = "INSERT OR REPLACE INTO observed (entry, at, record, basis) VALUES (?1, ?2, ?3, ?4)";
            tx.execute(sql, values).map(drop).map_err(|e| StoreError::sqlite(path, DOING, e))
        })
    }
}

impl<A> Store<A> {
    /// Entries whose next start is to be observed, at this time.
    pub fn to_observe(&self, now: Millis) -> Result<Vec<EntryId>, StoreError> {
        const DOING: &str = "read what is to be observed";
        let mut statement =
            self.sql(DOING, self.db.prepare_cached("SELECT entry, until FROM observe_next ORDER BY entry"))?;
        let mut rows = self.sql(DOING, statement.query([]))?;
        let mut entries = Vec::new();
        while let Some(found) = self.sql(DOING, rows.next())? {
            let at = row::At { path: &self.path, table: "observe_next", row: &"entry" };
            let entry: String = found.get(0).map_err(|_| at.bad("a column is not UTF-8"))?;
            let until = at.millis(self.sql(DOING, found.get(1))?)?;
            if now < until {
                entries.push(at.parsed("entry", &entry)?);
            }
        }
        Ok(entries)
    }

    /// What was seen of an entry's last observed run.
    pub fn observed(&self, entry: &EntryId) -> Result<Option<Observation>, StoreError> {
        const DOING: &str = "read what was observed";
        let text = entry.to_string();
        let found: Option<(i64, String, String)> = self.sql(
            DOING,
            self.db
                .query_row("SELECT at, record, basis FROM observed WHERE entry = ?1", [&text], |r| {
                    Ok((r.get(0)?, r.get(1)?, r.get(2)?))
                })
                .optional(),
        )?;
        let at = row::At { path: &self.path, table: "observed", row: &text };
        found
            .map(|(when, record, basis)| {
                Ok(Observation {
                    at: at.millis(when)?,
                    record: at.json("record", &record)?,
                    basis: at.json("basis", &basis)?,
                })
            })
            .transpose()
    }
}
