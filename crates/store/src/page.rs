//! Reading the audit log backwards, a bounded piece at a time, and counting calls.

use firedoor_model::{
    EntryId, Millis, Verdict,
    audit::{Event, Filter},
};
use rusqlite::params;

use crate::{Store, StoreError, StoredEvent, row};

/// Rows looked at in one piece: a filter that nothing passes must not hold anybody up.
const LOOKED_AT: u32 = 5_000;
/// Most counts of one answer.
const MAX_COUNTS: u32 = 20_000;

/// A piece of the log, newest first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Page {
    /// Rows that pass the filter, newest first.
    pub rows: Vec<StoredEvent>,
    /// Where the next, older piece begins: rows below this number. Absent at the log's beginning.
    pub next: Option<u64>,
}

/// Tool calls of one server in one span of time that went the same way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Count {
    /// The beginning of the span.
    pub at: Millis,
    /// The server.
    pub entry: EntryId,
    /// Which way.
    pub verdict: Verdict,
    /// Whether something was found.
    pub found: bool,
    /// How many.
    pub calls: u64,
}

impl<A> Store<A> {
    /// At most `limit` rows that pass, from below `before` (or the newest) down to above `after`.
    pub fn page(&self, filter: &Filter, before: Option<u64>, after: u64, limit: u32) -> Result<Page, StoreError> {
        const DOING: &str = "read the audit log";
        let sql = "SELECT seq, body, hash FROM event WHERE seq < ?1 AND seq > ?2 ORDER BY seq DESC LIMIT ?3";
        let number = |seq: u64| i64::try_from(seq).unwrap_or(i64::MAX);
        let mut statement = self.sql(DOING, self.db.prepare_cached(sql))?;
        let bounds = params![before.map_or(i64::MAX, number), number(after), LOOKED_AT];
        let mut rows = self.sql(DOING, statement.query(bounds))?;
        let mut page = Page::default();
        let (mut looked, mut last) = (0, 0);
        while let Some(found) = self.sql(DOING, rows.next())? {
            let row = self.stored(DOING, found)?;
            (looked, last) = (looked + 1, row.seq);
            // Times follow the numbers, but for a clock that was set back: those rows are passed over one by one.
            if filter.passes(&row.event) {
                page.rows.push(row);
            }
            if page.rows.len() >= limit as usize {
                break;
            }
        }
        let full = looked == LOOKED_AT || page.rows.len() >= limit as usize;
        page.next = full.then_some(last).filter(|seq| *seq > after.saturating_add(1));
        Ok(page)
    }

    /// One row.
    pub fn event(&self, seq: u64) -> Result<Option<StoredEvent>, StoreError> {
        let page = self.page(&Filter::default(), seq.checked_add(1), seq.saturating_sub(1), 1)?;
        Ok(page.rows.into_iter().next())
    }

    /// Judged rows that have a reference and answers to them, oldest first: what the user was asked.
    pub fn asked(&self, since: Millis) -> Result<Vec<Event>, StoreError> {
        const DOING: &str = "read the answers in the audit log";
        let sql = "SELECT seq, body FROM event WHERE at >= ?1 AND json_extract(body, '$.what.ref') IS NOT NULL
                   ORDER BY seq DESC LIMIT ?2";
        let mut statement = self.sql(DOING, self.db.prepare_cached(sql))?;
        let mut rows = self.sql(DOING, statement.query(params![row::sql_time(since), crate::MAX_EVENTS]))?;
        let mut events = Vec::new();
        while let Some(found) = self.sql(DOING, rows.next())? {
            let seq: i64 = self.sql(DOING, found.get(0))?;
            let at = row::At { path: &self.path, table: "event", row: &seq };
            let body: String = found.get(1).map_err(|_| at.bad("its text is not UTF-8"))?;
            events.push(at.json("body", &body)?);
        }
        events.reverse();
        Ok(events)
    }

    /// When the oldest row that is kept was written.
    pub fn oldest(&self) -> Result<Option<Millis>, StoreError> {
        let sql = "SELECT at FROM event ORDER BY seq LIMIT 1";
        let mut statement = self.sql("read the audit log", self.db.prepare_cached(sql))?;
        let mut rows = self.sql("read the audit log", statement.query([]))?;
        let Some(found) = self.sql("read the audit log", rows.next())? else { return Ok(None) };
        let at: i64 = self.sql("read the audit log", found.get(0))?;
        Ok(Some(Millis(u64::try_from(at).unwrap_or(0))))
    }

    /// Tool calls since a time, in spans of `step` milliseconds.
    pub fn counts(&self, since: Millis, step: u64) -> Result<Vec<Count>, StoreError> {
        const DOING: &str = "count calls in the audit log";
        let sql = "SELECT at / ?2 * ?2, entry, json_extract(body, '$.what.verdict'),
                          json_extract(body, '$.what.findings') IS NOT NULL, count(*)
                   FROM event
                   WHERE at >= ?1 AND entry IS NOT NULL AND json_extract(body, '$.what.kind') = 'judged'
                     AND json_extract(body, '$.what.method') = 'tools/call'
                   GROUP BY 1, 2, 3, 4 ORDER BY 1, 2 LIMIT ?3";
        let step = i64::try_from(step.max(1)).unwrap_or(i64::MAX);
        let mut statement = self.sql(DOING, self.db.prepare_cached(sql))?;
        let mut rows = self.sql(DOING, statement.query(params![row::sql_time(since), step, MAX_COUNTS]))?;
        let mut counts = Vec::new();
        while let Some(found) = self.sql(DOING, rows.next())? {
            let time: i64 = self.sql(DOING, found.get(0))?;
            let at = row::At { path: &self.path, table: "event", row: &time };
            let text = |column| found.get::<_, String>(column).map_err(|_| at.bad("a column is not UTF-8"));
            counts.push(Count {
                at: at.millis(time)?,
                entry: at.parsed("entry", &text(1)?)?,
                verdict: at.word("verdict", &text(2)?)?,
                found: self.sql(DOING, found.get(3))?,
                calls: u64::try_from(self.sql(DOING, found.get::<_, i64>(4))?).unwrap_or(0),
            });
        }
        Ok(counts)
    }

    /// Size of the database, in bytes.
    pub fn size(&self) -> Result<u64, StoreError> {
        const DOING: &str = "measure the database";
        let number = |pragma| self.sql(DOING, self.db.pragma_query_value(None, pragma, |r| r.get::<_, i64>(0)));
        Ok(u64::try_from(number("page_count")?.saturating_mul(number("page_size")?)).unwrap_or(0))
    }
}

#[cfg(test)]
mod tests {
    use firedoor_model::{
        Untrusted,
        audit::{Outcome, What},
    };

    use super::*;

    fn event(at: u64, entry: &str, subject: &str, verdict: Verdict) -> Event {
        let what = What::Judged {
            method: "tools/call".into(),
            subject: Some(Untrusted::new(subject)),
            verdict,
            reference: None,
            rule: None,
            findings: Vec::new(),
        };
        Event { at: Millis(at), entry: entry.parse().ok(), session: None, client: None, what }
    }

    #[test]
    fn pages_lead_through_the_whole_log_and_each_row_comes_once() {
        let dir = tempfile::tempdir().unwrap();
        let mut store = Store::open(&dir.path().join("state/firedoor.db"), Millis(1)).unwrap().store;
        assert_eq!(store.page(&Filter::default(), None, 0, 10).unwrap(), Page::default());
        assert_eq!(store.oldest().unwrap(), None);
        let events: Vec<_> = (0..12_345)
            .map(|n| {
                let (entry, subject) = if n % 1000 == 7 { ("c/u/rare", "needle") } else { ("c/u/often", "hay") };
                event(n, entry, subject, if n % 5 == 0 { Verdict::Block } else { Verdict::Allow })
            })
            .collect();
        store.append(&events).unwrap();
        let all = |filter: &Filter, limit| {
            let (mut seqs, mut before, mut pieces) = (Vec::new(), None, 0);
            loop {
                let page = store.page(filter, before, 0, limit).unwrap();
                seqs.extend(page.rows.iter().map(|r| r.seq));
                pieces += 1;
                match page.next {
                    Some(next) => before = Some(next),
                    None => return (seqs, pieces),
                }
            }
        };
        let (seqs, _) = all(&Filter::default(), 500);
        assert!(seqs.len() == 12_345 && seqs.windows(2).all(|w| w[0] == w[1] + 1));
        let text = Filter { text: Some("NEEDLE".into()), ..Filter::default() };
        let (found, pieces) = all(&text, 500);
        assert_eq!((found.len(), pieces), (13, 3));
        let blocked = Filter { outcome: Some(Outcome::Blocked), server: Some("often".into()), ..Filter::default() };
        assert_eq!(all(&blocked, 100).0.len(), 2469);
        // Only what is new.
        let fresh = store.page(&Filter::default(), None, 12_340, 500).unwrap();
        assert_eq!((fresh.rows.len(), fresh.next), (5, None));
        assert_eq!(store.event(8).unwrap().map(|r| r.event.at), Some(Millis(7)));
        assert_eq!((store.event(0).unwrap(), store.event(99_999).unwrap()), (None, None));
        assert_eq!(store.oldest().unwrap(), Some(Millis(0)));

        let counts = store.counts(Millis(10_000), 1000).unwrap();
        assert_eq!(counts.iter().map(|c| c.calls).sum::<u64>(), 2345);
        assert_eq!(counts.first().map(|c| (c.at, c.entry.server().to_owned())), Some((Millis(10_000), "often".into())));
        assert!(store.size().unwrap() > 1 << 20);
    }

    #[test]
    fn uses_are_added_up_and_go_with_their_rule() {
        use std::collections::BTreeMap;

        use firedoor_model::{
            question::Choice,
            rule::{Draft, Match, Origin, Use},
        };
        let dir = tempfile::tempdir().unwrap();
        let mut store = Store::open(&dir.path().join("state/firedoor.db"), Millis(1)).unwrap().store;
        let draft = Draft {
            effect: Choice::Block,
            matches: Match::default(),
            origin: Origin::User,
            created: Millis(1),
            expires: None,
        };
        let id = store.add_rule(&draft).unwrap().id;
        let used = |hits, last| Use { hits, last: Millis(last) };
        store.count_uses(&BTreeMap::from([(id, used(2, 9)), (-1, used(1, 3)), (77, used(1, 1))])).unwrap();
        store.count_uses(&BTreeMap::from([(id, used(3, 5))])).unwrap();
        assert_eq!(store.rule_uses().unwrap(), BTreeMap::from([(id, used(5, 9)), (-1, used(1, 3))]));
        store.remove_rule(id).unwrap();
        assert_eq!(store.rule_uses().unwrap(), BTreeMap::from([(-1, used(1, 3))]));
    }
}
