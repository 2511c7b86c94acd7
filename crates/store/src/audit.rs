//! The audit log: appending, reading, retention.

use std::path::Path;

use firedoor_model::{EntryId, Millis, audit::Event};
use rusqlite::{Connection, Row, Transaction, params, params_from_iter, types::Value};

use crate::{
    Store, StoreError, row,
    verify::{Head, follow, mark},
};

/// Longest text of one event, in bytes. Longer ones are refused.
pub const MAX_EVENT: usize = 1 << 20;

/// Most events that one query gives.
pub const MAX_EVENTS: u32 = 10_000;

const WRITING: &str = "write the audit log";

/// An event in its place in the chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredEvent {
    /// Its number, from 1, without gaps.
    pub seq: u64,
    /// Its hash, which covers every earlier event.
    pub hash: firedoor_model::Digest,
    /// The event.
    pub event: Event,
}

/// Which events to read. The default is the oldest [`MAX_EVENTS`].
#[derive(Clone, Debug, Default)]
pub struct Query {
    /// Only with a higher number.
    pub after_seq: u64,
    /// Only about this entry.
    pub entry: Option<EntryId>,
    /// Only about servers of this name, in any client and scope.
    pub server: Option<String>,
    /// Only at or after this time.
    pub since: Option<Millis>,
    /// At most so many; [`MAX_EVENTS`] when absent or larger.
    pub limit: Option<u32>,
    /// The newest of them instead of the oldest. They come oldest first in both cases.
    pub newest: bool,
}

impl Store {
    /// Appends events in one transaction: all of them or none. They are on disk when this returns.
    pub fn append(&mut self, events: &[Event]) -> Result<Vec<StoredEvent>, StoreError> {
        if events.is_empty() {
            return Ok(Vec::new());
        }
        self.write(WRITING, |tx, path| append(tx, path, events))
    }

    /// Removes events older than `before`, and the oldest above `keep`. The chain stays verifiable from the last
    /// removed row, which is kept as a mark. What is removed is verified first, so that retention cannot wash away the
    /// traces of tampering. Gives the number of removed events.
    pub fn prune(&mut self, before: Millis, keep: Option<u64>) -> Result<u64, StoreError> {
        const DOING: &str = "shorten the audit log";
        self.write(DOING, |tx, path| {
            let failed = |e| StoreError::sqlite(path, DOING, e);
            let head = end(tx, path)?;
            // Only a prefix can go: up to the row before the first young one.
            let young: Option<i64> = tx
                .query_row("SELECT min(seq) FROM event WHERE at >= ?1", [row::sql_time(before)], |r| r.get(0))
                .map_err(failed)?;
            let by_age = young.map_or(head.seq, |seq| u64::try_from(seq).unwrap_or(0).saturating_sub(1));
            let by_count = keep.map_or(0, |keep| head.seq.saturating_sub(keep));
            let last = by_age.max(by_count);
            let report = follow(tx, path, Some(last))?;
            if let Some(bad) = report.first_bad {
                return Err(StoreError::Chain { path: path.to_owned(), why: format!("row {}: {}", bad.seq, bad.why) });
            }
            if report.rows == 0 {
                return Ok(0);
            }
            let hash: Vec<u8> =
                tx.query_row("SELECT hash FROM event WHERE seq = ?1", [sql_seq(last)], |r| r.get(0)).map_err(failed)?;
            let at = row::At { path, table: "event", row: &last };
            let hash = row::digest(&hash).ok_or_else(|| at.bad("its hash has the wrong length"))?;
            tx.execute("DELETE FROM event WHERE seq <= ?1", [sql_seq(last)]).map_err(failed)?;
            set_mark(tx, "base", Head { seq: last, hash }).map_err(failed)?;
            Ok(report.rows)
        })
    }
}

/// The same, in a transaction that does what the events tell of.
pub(crate) fn append(tx: &Transaction<'_>, path: &Path, events: &[Event]) -> Result<Vec<StoredEvent>, StoreError> {
    let failed = |e| StoreError::sqlite(path, WRITING, e);
    let mut head = end(tx, path)?;
    let mut stored = Vec::with_capacity(events.len());
    let mut insert = tx.prepare_cached("INSERT INTO event (seq, body, hash) VALUES (?1, ?2, ?3)").map_err(failed)?;
    for event in events {
        let body = row::json(event)?;
        if body.len() > MAX_EVENT {
            return Err(StoreError::Refused { doing: WRITING, why: "an event is longer than 1 MiB" });
        }
        head = head.next(event.at, body.as_bytes());
        insert.execute(params![sql_seq(head.seq), body, head.hash.0]).map_err(failed)?;
        stored.push(StoredEvent { seq: head.seq, hash: head.hash, event: event.clone() });
    }
    set_mark(tx, "head", head).map_err(failed)?;
    Ok(stored)
}

impl<A> Store<A> {
    /// A row of `seq`, `body` and `hash`.
    pub(crate) fn stored(&self, doing: &'static str, found: &Row<'_>) -> Result<StoredEvent, StoreError> {
        let seq = u64::try_from(self.sql(doing, found.get::<_, i64>(0))?).unwrap_or(0);
        let at = row::At { path: &self.path, table: "event", row: &seq };
        let body: String = found.get(1).map_err(|_| at.bad("its text is not UTF-8"))?;
        let hash: Vec<u8> = self.sql(doing, found.get(2))?;
        let hash = row::digest(&hash).ok_or_else(|| at.bad("its hash has the wrong length"))?;
        Ok(StoredEvent { seq, hash, event: at.json("body", &body)? })
    }

    /// Events that match all of `query`, oldest first. A row that cannot be read is an error that names it.
    pub fn events(&self, query: &Query) -> Result<Vec<StoredEvent>, StoreError> {
        const DOING: &str = "read the audit log";
        let Query { after_seq, entry, server, since, limit, newest } = query;
        let mut sql = String::from("SELECT seq, body, hash FROM event WHERE seq > ?");
        let mut values = vec![Value::from(sql_seq(*after_seq))];
        if let Some(entry) = entry {
            sql.push_str(" AND entry = ?");
            values.push(entry.to_string().into());
        }
        if let Some(server) = server {
            // "/" is escaped inside a part of an entry id, so this is exactly the last part.
            let Ok(id) = EntryId::new("c", "s", server) else { return Ok(Vec::new()) };
            let suffix = id.to_string().split_off(3);
            sql.push_str(" AND substr(entry, -length(?)) = ?");
            values.extend([suffix.clone().into(), suffix.into()]);
        }
        if let Some(since) = since {
            sql.push_str(" AND at >= ?");
            values.push(row::sql_time(*since).into());
        }
        sql.push_str(if *newest { " ORDER BY seq DESC LIMIT ?" } else { " ORDER BY seq LIMIT ?" });
        values.push(i64::from(limit.unwrap_or(MAX_EVENTS).min(MAX_EVENTS)).into());

        let mut statement = self.sql(DOING, self.db.prepare_cached(&sql))?;
        let mut rows = self.sql(DOING, statement.query(params_from_iter(values)))?;
        let mut events = Vec::new();
        while let Some(found) = self.sql(DOING, rows.next())? {
            events.push(self.stored(DOING, found)?);
        }
        if *newest {
            events.reverse();
        }
        Ok(events)
    }
}

/// The head, when the rows agree that it is the end: else the next row would not fit in.
fn end(db: &Connection, path: &std::path::Path) -> Result<Head, StoreError> {
    let last: Option<i64> = db
        .prepare_cached("SELECT max(seq) FROM event")
        .and_then(|mut s| s.query_row([], |r| r.get(0)))
        .map_err(|e| StoreError::sqlite(path, "read the audit log", e))?;
    let last = last.and_then(|seq| u64::try_from(seq).ok()).unwrap_or(0);
    let head = mark(db, path, "head")?.unwrap_or(Head::genesis());
    if last > head.seq {
        return Err(StoreError::Chain {
            path: path.to_owned(),
            why: format!("row {last} stands after the head {}", head.seq),
        });
    }
    Ok(head)
}

fn set_mark(tx: &Transaction<'_>, name: &str, place: Head) -> rusqlite::Result<()> {
    tx.prepare_cached(
        "INSERT INTO mark (name, seq, hash) VALUES (?1, ?2, ?3)
         ON CONFLICT (name) DO UPDATE SET seq = excluded.seq, hash = excluded.hash",
    )?
    .execute(params![name, sql_seq(place.seq), place.hash.0])
    .map(|_| ())
}

fn sql_seq(seq: u64) -> i64 {
    i64::try_from(seq).unwrap_or(i64::MAX)
}
