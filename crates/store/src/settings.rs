//! Settings.

use firedoor_model::Mode;
use rusqlite::OptionalExtension;

use crate::{Store, StoreError, row};

impl Store {
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
