//! What the engine is doing.

use firedoor_model::{EntryId, Millis, Mode, Untrusted, notice::Noticed};
use serde::{Deserialize, Serialize};

use super::Withheld;

/// What the engine is doing.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Status {
    /// Firedoor's version.
    pub version: String,
    /// The engine's process.
    pub pid: u32,
    /// When it started.
    pub since: Millis,
    /// The mode in force.
    pub mode: Mode,
    /// Until when nothing is asked; absent when there is no pause.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paused_until: Option<Millis>,
    /// Servers about which nothing is asked any more in some session, because their questions were left unanswered: what
    /// would be asked is refused.
    #[serde(default)]
    pub quieted: Vec<EntryId>,
    /// Open questions.
    pub pending: usize,
    /// Running servers.
    pub sessions: Vec<Session>,
    /// Entries whose next start is observed.
    #[serde(default)]
    pub observe_next: Vec<EntryId>,
    /// Servers that have appeared, changed or lost Firedoor, and that could be protected. Oldest first.
    #[serde(default)]
    pub offers: Vec<Offer>,
    /// Definitions that are kept from agents and that the user has not decided about. Oldest first.
    #[serde(default)]
    pub withheld: Vec<Withheld>,
    /// How many directories are watched for changes of clients' configurations; none while they are not.
    #[serde(default)]
    pub watched: Option<usize>,
    /// What does not work as it should, one sentence each. Empty when all is well.
    pub problems: Vec<String>,
}

/// A server that could be protected.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Offer {
    /// Which.
    pub entry: EntryId,
    /// The client's name for people, from the catalog.
    pub client: String,
    /// Which file.
    pub path: Untrusted,
    /// The project that the file belongs to, if it belongs to one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<Untrusted>,
    /// Why it is offered.
    pub noticed: Noticed,
    /// What it starts; what looks like a secret is left out.
    pub command: Untrusted,
    /// Since when.
    pub since: Millis,
    /// It is being protected without a question: nobody need be asked unless that fails.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub under_way: bool,
}

/// One running server.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Session {
    /// Number within this run of the engine.
    pub id: u64,
    /// The entry.
    pub entry: EntryId,
    /// The client process.
    pub client: Untrusted,
    /// The server's process.
    pub pid: u32,
    /// The sandbox level really in force.
    pub level: String,
    /// The profile that gave its grants.
    pub profile: String,
    /// When it started.
    pub since: Millis,
    /// Calls so far.
    pub calls: u64,
    /// Whether what it does is written down.
    #[serde(default)]
    pub observed: bool,
}
