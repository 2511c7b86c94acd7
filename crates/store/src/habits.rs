//! What the tools of each server were called with in earlier sessions.

use std::collections::HashMap;

use firedoor_model::{EntryId, Habit, Millis, habit::MAX_TOOLS};
use rusqlite::{OptionalExtension as _, params};

use crate::{Store, StoreError, row};

impl Store {
    /// Adds what one session called of a server's tools to what is known of them. Of one server the [`MAX_TOOLS`] tools
    /// that were called last are kept.
    pub fn learn_habits(
        &mut self,
        entry: &EntryId,
        session: &[(String, Habit)],
        now: Millis,
    ) -> Result<(), StoreError> {
        const DOING: &str = "keep what tools were called with";
        if session.is_empty() {
            return Ok(());
        }
        let name = entry.to_string();
        self.write(DOING, |tx, path| {
            let failed = |e| StoreError::sqlite(path, DOING, e);
            for (tool, seen) in session {
                let sql = "SELECT rowid, habit FROM habit WHERE entry = ?1 AND tool = ?2";
                let found =
                    tx.query_row(sql, params![name, tool], |r| Ok((r.get::<_, i64>(0)?, r.get::<_, String>(1)?)));
                let mut habit = match found.optional().map_err(failed)? {
                    Some((number, text)) => row::At { path, table: "habit", row: &number }.json("habit", &text)?,
                    None => Habit::default(),
                };
                habit.learn(seen);
                let text = row::json(&habit)?;
                let sql = "INSERT INTO habit (entry, tool, habit, at) VALUES (?1, ?2, ?3, ?4)
                           ON CONFLICT (entry, tool) DO UPDATE SET habit = excluded.habit, at = excluded.at";
                tx.execute(sql, params![name, tool, text, row::sql_time(now)]).map_err(failed)?;
            }
            let sql = "DELETE FROM habit WHERE entry = ?1 AND tool IN
                       (SELECT tool FROM habit WHERE entry = ?1 ORDER BY at DESC, tool LIMIT -1 OFFSET ?2)";
            tx.execute(sql, params![name, MAX_TOOLS as i64]).map(|_| ()).map_err(failed)
        })
    }
}

impl<A> Store<A> {
    /// What is known of a server's tools, by name.
    pub fn habits(&self, entry: &EntryId) -> Result<HashMap<String, Habit>, StoreError> {
        const DOING: &str = "read what tools were called with";
        let sql = "SELECT rowid, tool, habit FROM habit WHERE entry = ?1";
        let mut statement = self.sql(DOING, self.db.prepare_cached(sql))?;
        let rows = statement.query_map([entry.to_string()], |r| Ok((r.get(0)?, r.get(1)?, r.get(2)?)));
        let rows: Vec<(i64, String, String)> = self.sql(DOING, rows.and_then(Iterator::collect))?;
        let one = |(number, tool, text): (i64, String, String)| {
            Ok((tool, row::At { path: &self.path, table: "habit", row: &number }.json("habit", &text)?))
        };
        rows.into_iter().map(one).collect()
    }
}
