//! Settings.

use firedoor_model::Mode;
use rusqlite::OptionalExtension;

use crate::{Store, StoreError, row};

/// Shortest time that audit rows may be kept for, in days: what happened last week must be there.
pub const MIN_LOG_DAYS: u32 = 7;
/// Longest.
pub const MAX_LOG_DAYS: u32 = 3650;

impl Store {
    /// Sets for how many days audit rows are kept.
    pub fn set_log_days(&mut self, days: u32) -> Result<(), StoreError> {
        const DOING: &str = "set how long the log is kept";
        if !(MIN_LOG_DAYS..=MAX_LOG_DAYS).contains(&days) {
            return Err(StoreError::Refused { doing: DOING, why: "it is kept for 7 to 3650 days" });
        }
        self.write(DOING, |tx, path| {
            let sql = "INSERT INTO setting (name, value) VALUES ('log_days', ?1)
                       ON CONFLICT (name) DO UPDATE SET value = excluded.value";
            tx.execute(sql, [days.to_string()]).map(|_| ()).map_err(|e| StoreError::sqlite(path, DOING, e))
        })
    }

    /// Sets how eagerly Firedoor interrupts.
    pub fn set_mode(&mut self, mode: Mode) -> Result<(), StoreError> {
        const DOING: &str = "set the mode";
        self.write(DOING, |tx, path| {
            let sql = "INSERT INTO setting (name, value) VALUES ('mode', ?1)
                       ON CONFLICT (name) DO UPDATE SET value = excluded.value";
            tx.execute(sql, [mode.to_string()]).map(|_| ()).map_err(|e| StoreError::sqlite(path, DOING, e))
        })
    }
}

impl<A> Store<A> {
    /// For how many days audit rows are kept, when that was set.
    pub fn log_days(&self) -> Result<Option<u32>, StoreError> {
        let found: Option<String> = self.sql(
            "read how long the log is kept",
            self.db.query_row("SELECT value FROM setting WHERE name = 'log_days'", [], |r| r.get(0)).optional(),
        )?;
        let at = row::At { path: &self.path, table: "setting", row: &"log_days" };
        found.map(|word| at.parsed("value", &word)).transpose()
    }

    /// How eagerly Firedoor interrupts; Balanced when never set.
    pub fn mode(&self) -> Result<Mode, StoreError> {
        let found: Option<String> = self.sql(
            "read the mode",
            self.db.query_row("SELECT value FROM setting WHERE name = 'mode'", [], |r| r.get(0)).optional(),
        )?;
        let at = row::At { path: &self.path, table: "setting", row: &"mode" };
        found.map_or(Ok(Mode::default()), |word| at.parsed("value", &word))
    }
}
