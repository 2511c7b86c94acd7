//! Servers that the user was offered to protect and did not want to.

use std::collections::BTreeMap;

use firedoor_model::{Digest, EntryId, Millis};
use rusqlite::params;

use crate::{Store, StoreError, row};

/// Most that are remembered; the oldest go first.
const MOST: u32 = 1000;

impl Store {
    /// Remembers that this entry, with a command line of this hash, is to stay as it is.
    pub fn decline(&mut self, entry: &EntryId, line: Digest, at: Millis) -> Result<(), StoreError> {
        const DOING: &str = "remember a declined offer";
        self.write(DOING, |tx, path| {
            let failed = |e| StoreError::sqlite(path, DOING, e);
            let sql = "INSERT INTO declined (entry, line, at) VALUES (?1, ?2, ?3)
                       ON CONFLICT (entry) DO UPDATE SET line = excluded.line, at = excluded.at";
            tx.execute(sql, params![entry.to_string(), line.to_string(), row::sql_time(at)]).map_err(failed)?;
            let sql = "DELETE FROM declined WHERE entry IN
                       (SELECT entry FROM declined ORDER BY at DESC, entry LIMIT -1 OFFSET ?1)";
            tx.execute(sql, [MOST]).map(|_| ()).map_err(failed)
        })
    }

    /// Forgets it: the entry is offered like any other.
    pub fn forget_declined(&mut self, entry: &EntryId) -> Result<(), StoreError> {
        const DOING: &str = "forget a declined offer";
        self.write(DOING, |tx, path| {
            let done = tx.execute("DELETE FROM declined WHERE entry = ?1", [entry.to_string()]);
            done.map(|_| ()).map_err(|e| StoreError::sqlite(path, DOING, e))
        })
    }
}

impl<A> Store<A> {
    /// Every entry that is to stay as it is, the hash of its command line then, and when that was.
    pub fn declined(&self) -> Result<BTreeMap<EntryId, (Digest, Millis)>, StoreError> {
        const DOING: &str = "read declined offers";
        let mut statement = self.sql(DOING, self.db.prepare_cached("SELECT rowid, entry, line, at FROM declined"))?;
        let rows = statement.query_map([], |r| Ok((r.get(0)?, r.get(1)?, r.get(2)?, r.get(3)?)));
        let rows: Vec<(i64, String, String, i64)> = self.sql(DOING, rows.and_then(Iterator::collect))?;
        let read = |(number, entry, line, since): (i64, String, String, i64)| {
            let at = row::At { path: &self.path, table: "declined", row: &number };
            Ok((at.parsed("entry", &entry)?, (at.parsed("line", &line)?, at.millis(since)?)))
        };
        rows.into_iter().map(read).collect()
    }
}
