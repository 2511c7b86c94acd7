//! The audit log: which rows are asked for, and what is told of them.

use firedoor_model::{Digest, EntryId, Millis, audit};
use serde::{Deserialize, Serialize};

/// Which audit rows.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct LogQuery {
    /// Only rows of entries whose server name or id is this.
    pub server: Option<String>,
    /// Only rows at or after this time.
    pub since: Option<Millis>,
    /// Go on with new rows as they are written.
    pub follow: bool,
}

/// Which piece of the log.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct PageQuery {
    /// Which rows.
    pub filter: audit::Filter,
    /// Below this number; the newest when absent.
    pub before: Option<u64>,
    /// Above this number.
    pub after: u64,
    /// At most so many.
    pub limit: u32,
}

/// One audit row.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Row {
    /// Its number.
    pub seq: u64,
    /// Its chained hash.
    pub hash: Digest,
    /// What happened.
    #[serde(flatten)]
    pub event: audit::Event,
}

/// Tool calls of one server in one span of time that went the same way.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Count {
    /// The beginning of the span.
    pub at: Millis,
    /// The server.
    pub entry: EntryId,
    /// Which way.
    pub outcome: audit::Outcome,
    /// How many.
    pub calls: u64,
}
