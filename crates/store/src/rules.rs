//! The user's rules.

use firedoor_model::{
    rule::{Draft, Match, Origin, Rule},
    text::Untrusted,
};
use rusqlite::params;

use crate::{Store, StoreError, row};

/// Most rules. Every judgement reads all of them.
pub const MAX_RULES: u32 = 10_000;

impl Store {
    /// Keeps a rule. A managed rule comes from an administrator's file and is never kept here, where the user's own
    /// programs can write.
    pub fn add_rule(&mut self, draft: &Draft) -> Result<Rule, StoreError> {
        const DOING: &str = "add a rule";
        let refused = |why| Err(StoreError::Refused { doing: DOING, why });
        if draft.origin == Origin::Managed {
            return refused("a managed rule belongs into the administrator's file");
        }
        if draft.matches.detector.as_deref() == Some("") {
            return refused("the detector's name is empty; leave it out to mean every detector");
        }
        if draft.matches.tool.as_ref().map(Untrusted::raw) == Some("") {
            return refused("the tool's name is empty; leave it out to mean every tool");
        }
        let matches = row::json(&draft.matches)?;
        let (effect, origin) = (row::word(&draft.effect)?, row::word(&draft.origin)?);
        let (created, expires) = (row::sql_time(draft.created), draft.expires.map(row::sql_time));
        self.write(DOING, |tx, path| {
            let failed = |e| StoreError::sqlite(path, DOING, e);
            let count: u32 = tx.query_row("SELECT count(*) FROM rule", [], |r| r.get(0)).map_err(failed)?;
            if count >= MAX_RULES {
                return Err(StoreError::Refused { doing: DOING, why: "there are 10,000 rules; remove some first" });
            }
            tx.execute(
                "INSERT INTO rule (effect, matches, origin, created, expires) VALUES (?1, ?2, ?3, ?4, ?5)",
                params![effect, matches, origin, created, expires],
            )
            .map_err(failed)?;
            Ok(draft.clone().numbered(tx.last_insert_rowid()))
        })
    }

    /// Removes a rule; false when there is none of that number.
    pub fn remove_rule(&mut self, id: i64) -> Result<bool, StoreError> {
        const DOING: &str = "remove a rule";
        self.write(DOING, |tx, path| {
            let failed = |e| StoreError::sqlite(path, DOING, e);
            tx.execute("DELETE FROM rule_use WHERE rule = ?1", [id]).map_err(failed)?;
            tx.execute("DELETE FROM rule WHERE id = ?1", [id]).map(|n| n > 0).map_err(failed)
        })
    }
}

impl<A> Store<A> {
    /// Every rule, in the order made. One that cannot be read is an error: it may be the one that blocks.
    pub fn rules(&self) -> Result<Vec<Rule>, StoreError> {
        const DOING: &str = "read the rules";
        let sql = "SELECT id, effect, matches, origin, created, expires FROM rule ORDER BY id";
        let mut statement = self.sql(DOING, self.db.prepare_cached(sql))?;
        let mut rows = self.sql(DOING, statement.query([]))?;
        let mut rules = Vec::new();
        while let Some(found) = self.sql(DOING, rows.next())? {
            let id: i64 = self.sql(DOING, found.get(0))?;
            let at = row::At { path: &self.path, table: "rule", row: &id };
            let text = |column| found.get::<_, String>(column).map_err(|_| at.bad("a column is not UTF-8"));
            let matches: Match = at.json("matches", &text(2)?)?;
            let origin: Origin = at.word("origin", &text(3)?)?;
            if origin == Origin::Managed {
                return Err(at.bad("it claims to be a managed rule, which are not kept here"));
            }
            let expires: Option<i64> = self.sql(DOING, found.get(5))?;
            rules.push(Rule {
                id,
                effect: at.word("effect", &text(1)?)?,
                matches,
                origin,
                created: at.millis(self.sql(DOING, found.get(4))?)?,
                expires: expires.map(|t| at.millis(t)).transpose()?,
            });
        }
        Ok(rules)
    }
}
