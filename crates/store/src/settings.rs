//! Settings.

use std::str::FromStr;

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
        self.set(DOING, "log_days", &days.to_string())
    }

    /// Sets whether servers that appear are protected without a question.
    pub fn set_protect_new(&mut self, on: bool) -> Result<(), StoreError> {
        self.set("set whether new servers are protected", "protect_new", &on.to_string())
    }

    /// Sets how eagerly Firedoor interrupts.
    pub fn set_mode(&mut self, mode: Mode) -> Result<(), StoreError> {
        self.set("set the mode", "mode", &mode.to_string())
    }

    fn set(&mut self, doing: &'static str, name: &str, value: &str) -> Result<(), StoreError> {
        self.write(doing, |tx, path| {
            let sql = "INSERT INTO setting (name, value) VALUES (?1, ?2)
                       ON CONFLICT (name) DO UPDATE SET value = excluded.value";
            tx.execute(sql, [name, value]).map(|_| ()).map_err(|e| StoreError::sqlite(path, doing, e))
        })
    }
}

impl<A> Store<A> {
    /// For how many days audit rows are kept, when that was set.
    pub fn log_days(&self) -> Result<Option<u32>, StoreError> {
        self.get("read how long the log is kept", "log_days")
    }

    /// Whether servers that appear are protected without a question, when that was set.
    pub fn protect_new(&self) -> Result<Option<bool>, StoreError> {
        self.get("read whether new servers are protected", "protect_new")
    }

    /// How eagerly Firedoor interrupts; Balanced when never set.
    pub fn mode(&self) -> Result<Mode, StoreError> {
        Ok(self.get("read the mode", "mode")?.unwrap_or_default())
    }

    fn get<T: FromStr>(&self, doing: &'static str, name: &'static str) -> Result<Option<T>, StoreError> {
        let found = self.db.query_row("SELECT value FROM setting WHERE name = ?1", [name], |r| r.get(0)).optional();
        let found: Option<String> = self.sql(doing, found)?;
        let at = row::At { path: &self.path, table: "setting", row: &name };
        found.map(|word| at.parsed("value", &word)).transpose()
    }
}
