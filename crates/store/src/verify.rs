//! The audit chain, and checking it.
//!
//! hash(n) = SHA-256 over the length-prefixed fields (hash(n-1), n, time, stored text). Found are: a row that was
//! edited, deleted, inserted, or exchanged with another; and, through the separately kept head, rows cut off the end.
//!
//! What this cannot prove: who can write the file can also recompute every hash, or put back an older copy of the whole
//! file. Only a head that was noted down elsewhere ([`Verified::head`]) shows that.

use std::path::Path;

use firedoor_model::{Digest, Millis};
use rusqlite::{Connection, OptionalExtension, types::ValueRef};
use serde::Deserialize;

use crate::{Store, StoreError, row};

/// A place in the chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// Number of the row; 0 before the first.
    pub seq: u64,
    /// Its hash.
    pub hash: Digest,
}

impl Head {
    /// Where every chain starts.
    pub(crate) fn genesis() -> Self {
        Self { seq: 0, hash: Digest::of(b"Firedoor audit chain 1") }
    }

    /// The place after a row with this text.
    pub(crate) fn next(self, at: Millis, body: &[u8]) -> Self {
        let seq = self.seq.saturating_add(1);
        let fields = [self.hash.0.as_slice(), &seq.to_le_bytes(), &at.0.to_le_bytes(), body];
        Self { seq, hash: Digest::of_fields(fields) }
    }
}

/// What a check of the chain found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verified {
    /// Rows checked.
    pub rows: u64,
    /// Rows up to this one were removed by retention; 0 when none was.
    pub pruned: u64,
    /// The head on record. Noted down elsewhere, it proves later that nothing before it was rewritten.
    pub head: Head,
    /// The first place where the chain does not hold.
    pub first_bad: Option<Bad>,
}

/// One place where the chain does not hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bad {
    /// The row: the first one that is wrong or missing.
    pub seq: u64,
    /// What is wrong.
    pub why: Why,
}

/// What is wrong with a row of the chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Why {
    /// It is not there, but later ones are.
    #[error("it was deleted")]
    Missing,
    /// Its text or hash is not what was written, or it stands in another row's place.
    #[error("it was edited or exchanged")]
    Edited,
    /// It stands before the chain's beginning or after its head.
    #[error("it was inserted")]
    Inserted,
    /// It and all later ones up to the head are not there.
    #[error("it and what followed were cut off")]
    CutOff,
    /// The head on record does not belong to the last row.
    #[error("the record of the head was edited or removed")]
    Head,
}

#[derive(Deserialize)]
struct Stamp {
    at: Millis,
}

/// A mark; `None` when absent.
pub(crate) fn mark(db: &Connection, path: &Path, name: &'static str) -> Result<Option<Head>, StoreError> {
    let found = db
        .prepare_cached("SELECT seq, hash FROM mark WHERE name = ?1")
        .and_then(|mut s| s.query_row([name], |r| Ok((r.get::<_, i64>(0)?, r.get::<_, Vec<u8>>(1)?))))
        .optional()
        .map_err(|e| StoreError::sqlite(path, "read the audit log's marks", e))?;
    let Some((seq, hash)) = found else { return Ok(None) };
    let at = row::At { path, table: "mark", row: &name };
    let seq = u64::try_from(seq).map_err(|_| at.bad("its number is negative"))?;
    let hash = row::digest(&hash).ok_or_else(|| at.bad("its hash has the wrong length"))?;
    Ok(Some(Head { seq, hash }))
}

/// Follows the chain from its beginning to row `until`, or to its end. Memory does not grow with its length.
pub(crate) fn follow(db: &Connection, path: &Path, until: Option<u64>) -> Result<Verified, StoreError> {
    let failed = |e| StoreError::sqlite(path, "read the audit log", e);
    let base = mark(db, path, "base")?.unwrap_or(Head::genesis());
    let recorded = mark(db, path, "head")?;
    let head = recorded.unwrap_or(Head::genesis());
    let mut report = Verified { rows: 0, pruned: base.seq, head, first_bad: None };
    let bad = |report: Verified, seq, why| Ok(Verified { first_bad: Some(Bad { seq, why }), ..report });

    let mut last = base;
    let mut statement = db.prepare("SELECT seq, body, hash FROM event ORDER BY seq").map_err(failed)?;
    let mut rows = statement.query([]).map_err(failed)?;
    while let Some(row) = rows.next().map_err(failed)? {
        let seq = u64::try_from(row.get::<_, i64>(0).map_err(failed)?).unwrap_or(0);
        if until.is_some_and(|until| seq > until) {
            return Ok(report);
        }
        if recorded.is_none() && base.seq == 0 {
            return bad(report, seq, Why::Head);
        }
        if seq <= base.seq || seq > head.seq {
            return bad(report, seq, Why::Inserted);
        }
        if seq != last.seq.saturating_add(1) {
            return bad(report, last.seq.saturating_add(1), Why::Missing);
        }
        let (ValueRef::Text(body), ValueRef::Blob(hash)) =
            (row.get_ref(1).map_err(failed)?, row.get_ref(2).map_err(failed)?)
        else {
            return bad(report, seq, Why::Edited);
        };
        let Ok(Stamp { at }) = serde_json::from_slice(body) else { return bad(report, seq, Why::Edited) };
        last = last.next(at, body);
        if row::digest(hash) != Some(last.hash) {
            return bad(report, seq, Why::Edited);
        }
        report.rows += 1;
    }
    if last.seq < head.seq {
        return bad(report, last.seq.saturating_add(1), Why::CutOff);
    }
    if last != head {
        return bad(report, last.seq, Why::Head);
    }
    Ok(report)
}

impl<A> Store<A> {
    /// Checks the whole audit chain against its hashes and its head. See the module's text for what that proves: edits,
    /// deletions, insertions and cuts by somebody who does not recompute the chain.
    pub fn verify(&self) -> Result<Verified, StoreError> {
        // One snapshot: the engine may append meanwhile.
        let snapshot = self.sql("read the audit log", self.db.unchecked_transaction())?;
        follow(&snapshot, &self.path, None)
    }
}
