//! Pins: what every definition of a server looked like when it was first seen or last accepted.

use std::collections::BTreeMap;

use firedoor_model::{Digest, EntryId, Millis, Untrusted};
use rusqlite::{Connection, OptionalExtension, Row, Transaction, params};
use serde::{Deserialize, Serialize};

use crate::{Store, StoreError, row};

/// Most pins of one entry. A server that defines more is refused.
const MAX_PINS: u32 = 10_000;

/// Longest stored pin, in bytes of JSON.
const MAX_PIN: usize = 1 << 20;

/// What kind of definition is pinned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PinKind {
    /// A tool of `tools/list`.
    Tool,
    /// A prompt of `prompts/list`.
    Prompt,
    /// A resource of `resources/list`.
    Resource,
    /// A template of `resources/templates/list`.
    ResourceTemplate,
    /// The server's instructions. The name is empty.
    Instructions,
}

impl PinKind {
    /// Its name in the database and in JSON.
    pub fn word(self) -> &'static str {
        match self {
            Self::Tool => "tool",
            Self::Prompt => "prompt",
            Self::Resource => "resource",
            Self::ResourceTemplate => "resource_template",
            Self::Instructions => "instructions",
        }
    }
}

/// Which definition.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PinKey {
    /// Of which server.
    pub entry: EntryId,
    /// What it defines.
    pub kind: PinKind,
    /// Its name or URI, as the server spells it.
    pub name: Untrusted,
}

/// A definition's fingerprint. Two are the same when `whole` is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Definition {
    /// Digest of the definition.
    pub whole: Digest,
    /// Digest of each of its fields.
    pub fields: BTreeMap<String, Digest>,
    /// Its text, for showing what changed. Absent when it is too long to keep.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<Untrusted>,
}

impl Definition {
    /// Names of the fields that differ: changed, added or removed.
    pub fn changed_fields(&self, other: &Self) -> Vec<String> {
        let mut names: Vec<&String> = self.fields.keys().chain(other.fields.keys()).collect();
        names.sort();
        names.dedup();
        names.into_iter().filter(|name| self.fields.get(*name) != other.fields.get(*name)).cloned().collect()
    }
}

/// One pinned definition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pin {
    /// Which definition.
    pub key: PinKey,
    /// What it looked like when first seen or last accepted.
    pub accepted: Definition,
    /// When it was first seen.
    pub first_seen: Millis,
    /// Whether it still looks like that.
    pub state: PinState,
    /// The changed definition that the user has seen and keeps from agents, by its digest.
    pub kept: Option<Digest>,
}

/// Whether a definition is still as it was accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PinState {
    /// As accepted.
    Pinned,
    /// Changed and not accepted yet: quarantined, also when the server shows the accepted definition again, because
    /// an agent may have read the changed one.
    Changed {
        /// The last definition seen that was not the accepted one.
        to: Definition,
        /// When it was first seen.
        since: Millis,
    },
}

/// What a look at one definition found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Observed {
    /// Never seen: it is pinned now.
    New,
    /// As accepted.
    Same,
    /// Not as accepted, or a change that the user has not accepted yet. Names the fields.
    Changed {
        /// The fields that differ.
        fields: Vec<String>,
        /// Whether this very change was recorded by an earlier look.
        known: bool,
    },
}

/// What accepting, or keeping back, did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Accepted {
    /// The definition is pinned, and the quarantine over; or it is kept back.
    Done,
    /// The definition is no longer the one the user saw: show the difference again.
    Moved,
    /// There is no such pin.
    Unknown,
}

impl Store {
    /// Looks at all definitions that one list of a server gave, in one transaction. The results are in their order.
    pub fn observe(
        &mut self,
        entry: &EntryId,
        definitions: &[(PinKind, Untrusted, Definition)],
        now: Millis,
    ) -> Result<Vec<Observed>, StoreError> {
        const DOING: &str = "pin definitions";
        self.write(DOING, |tx, path| {
            let failed = |e| StoreError::sqlite(path, DOING, e);
            let mut count: u32 = tx
                .query_row("SELECT count(*) FROM pin WHERE entry = ?1", [entry.to_string()], |r| r.get(0))
                .map_err(failed)?;
            let mut observed = Vec::with_capacity(definitions.len());
            for (kind, name, definition) in definitions {
                let key = PinKey { entry: entry.clone(), kind: *kind, name: name.clone() };
                let found = read_one(tx, path, &key)?;
                let outcome = match found {
                    None => {
                        if count >= MAX_PINS {
                            return Err(StoreError::Refused { doing: DOING, why: "a server has more than 10,000" });
                        }
                        count += 1;
                        let pin = Pin {
                            key,
                            accepted: definition.clone(),
                            first_seen: now,
                            state: PinState::Pinned,
                            kept: None,
                        };
                        write_one(tx, path, &pin)?;
                        Observed::New
                    }
                    Some(pin) => look_again(tx, path, pin, definition, now)?,
                };
                observed.push(outcome);
            }
            Ok(observed)
        })
    }

    /// Accepts the definition with the digest `whole`, which is the one the user saw: the changed one, or the one
    /// accepted before, which drops the change.
    pub fn accept_pin(&mut self, key: &PinKey, whole: Digest) -> Result<Accepted, StoreError> {
        self.write("accept a definition", |tx, path| {
            let Some(mut pin) = read_one(tx, path, key)? else { return Ok(Accepted::Unknown) };
            match pin.state {
                PinState::Changed { to, .. } if to.whole == whole => pin.accepted = to,
                _ if pin.accepted.whole == whole => {}
                _ => return Ok(Accepted::Moved),
            }
            (pin.state, pin.kept) = (PinState::Pinned, None);
            write_one(tx, path, &pin)?;
            Ok(Accepted::Done)
        })
    }

    /// Remembers that the user has seen the changed definition with the digest `whole` and does not accept it.
    pub fn keep_back(&mut self, key: &PinKey, whole: Digest) -> Result<Accepted, StoreError> {
        self.write("keep a definition back", |tx, path| {
            let Some(mut pin) = read_one(tx, path, key)? else { return Ok(Accepted::Unknown) };
            match &pin.state {
                PinState::Changed { to, .. } if to.whole == whole => {}
                _ => return Ok(Accepted::Moved),
            }
            pin.kept = Some(whole);
            write_one(tx, path, &pin)?;
            Ok(Accepted::Done)
        })
    }

    /// Forgets every pin of an entry, such as when it is removed. Gives how many there were.
    pub fn forget_pins(&mut self, entry: &EntryId) -> Result<usize, StoreError> {
        const DOING: &str = "forget pins";
        self.write(DOING, |tx, path| {
            tx.execute("DELETE FROM pin WHERE entry = ?1", [entry.to_string()])
                .map_err(|e| StoreError::sqlite(path, DOING, e))
        })
    }
}

impl<A> Store<A> {
    /// Every pin, or those of one entry. One that cannot be read is an error.
    pub fn pins(&self, entry: Option<&EntryId>) -> Result<Vec<Pin>, StoreError> {
        const DOING: &str = "read the pins";
        let sql = format!("{SELECT} WHERE ?1 IS NULL OR entry = ?1 ORDER BY entry, kind, name");
        let mut statement = self.sql(DOING, self.db.prepare_cached(&sql))?;
        let mut rows = self.sql(DOING, statement.query([entry.map(ToString::to_string)]))?;
        let mut pins = Vec::new();
        while let Some(found) = self.sql(DOING, rows.next())? {
            pins.push(raw(found).map_err(|e| StoreError::sqlite(&self.path, DOING, e))?.read(&self.path)?);
        }
        Ok(pins)
    }

    /// One pin.
    pub fn pin(&self, key: &PinKey) -> Result<Option<Pin>, StoreError> {
        read_one(&self.db, &self.path, key)
    }
}

fn look_again(
    tx: &Transaction<'_>,
    path: &std::path::Path,
    mut pin: Pin,
    seen: &Definition,
    now: Millis,
) -> Result<Observed, StoreError> {
    let same = seen.whole == pin.accepted.whole;
    match &pin.state {
        PinState::Pinned if same => Ok(Observed::Same),
        PinState::Changed { to, .. } if same || to.whole == seen.whole => {
            Ok(Observed::Changed { fields: pin.accepted.changed_fields(to), known: true })
        }
        state => {
            let since = if let PinState::Changed { since, .. } = state { *since } else { now };
            let fields = pin.accepted.changed_fields(seen);
            pin.state = PinState::Changed { to: seen.clone(), since };
            write_one(tx, path, &pin)?;
            Ok(Observed::Changed { fields, known: false })
        }
    }
}

const SELECT: &str = "SELECT rowid, entry, kind, name, accepted, first_seen, changed, changed_at, kept FROM pin";

/// A row as it stands.
struct RawPin {
    id: i64,
    entry: String,
    kind: String,
    name: String,
    accepted: String,
    first_seen: i64,
    changed: Option<(String, i64)>,
    kept: Option<String>,
}

fn raw(row: &Row<'_>) -> rusqlite::Result<RawPin> {
    let changed: Option<String> = row.get(6)?;
    let changed_at: Option<i64> = row.get(7)?;
    Ok(RawPin {
        id: row.get(0)?,
        entry: row.get(1)?,
        kind: row.get(2)?,
        name: row.get(3)?,
        accepted: row.get(4)?,
        first_seen: row.get(5)?,
        changed: changed.zip(changed_at),
        kept: row.get(8)?,
    })
}

impl RawPin {
    fn read(self, path: &std::path::Path) -> Result<Pin, StoreError> {
        let at = row::At { path, table: "pin", row: &self.id };
        let state = match self.changed {
            None => PinState::Pinned,
            Some((to, since)) => PinState::Changed { to: at.json("changed", &to)?, since: at.millis(since)? },
        };
        Ok(Pin {
            key: PinKey {
                entry: at.parsed("entry", &self.entry)?,
                kind: at.word("kind", &self.kind)?,
                name: Untrusted::new(self.name),
            },
            accepted: at.json("accepted", &self.accepted)?,
            first_seen: at.millis(self.first_seen)?,
            state,
            kept: self.kept.map(|digest| at.parsed("kept", &digest)).transpose()?,
        })
    }
}

fn read_one(db: &Connection, path: &std::path::Path, key: &PinKey) -> Result<Option<Pin>, StoreError> {
    let sql = format!("{SELECT} WHERE entry = ?1 AND kind = ?2 AND name = ?3");
    let found = db
        .prepare_cached(&sql)
        .and_then(|mut s| s.query_row(params![key.entry.to_string(), key.kind.word(), key.name.raw()], raw).optional())
        .map_err(|e| StoreError::sqlite(path, "read a pin", e))?;
    found.map(|raw| raw.read(path)).transpose()
}

fn write_one(tx: &Transaction<'_>, path: &std::path::Path, pin: &Pin) -> Result<(), StoreError> {
    const DOING: &str = "write a pin";
    let (changed, changed_at) = match &pin.state {
        PinState::Pinned => (None, None),
        PinState::Changed { to, since } => (Some(row::json(to)?), Some(row::sql_time(*since))),
    };
    let accepted = row::json(&pin.accepted)?;
    if accepted.len().max(changed.as_ref().map_or(0, String::len)) > MAX_PIN || pin.key.name.raw().len() > MAX_PIN {
        return Err(StoreError::Refused { doing: DOING, why: "a definition or its name is longer than 1 MiB" });
    }
    tx.prepare_cached(
        "INSERT INTO pin (entry, kind, name, accepted, first_seen, changed, changed_at, kept)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)
         ON CONFLICT (entry, kind, name) DO UPDATE SET
         accepted = excluded.accepted, changed = excluded.changed, changed_at = excluded.changed_at, kept = excluded.kept",
    )
    .and_then(|mut s| {
        s.execute(params![
            pin.key.entry.to_string(),
            pin.key.kind.word(),
            pin.key.name.raw(),
            accepted,
            row::sql_time(pin.first_seen),
            changed,
            changed_at,
            pin.kept.map(|digest| digest.to_string())
        ])
    })
    .map(|_| ())
    .map_err(|e| StoreError::sqlite(path, DOING, e))
}
