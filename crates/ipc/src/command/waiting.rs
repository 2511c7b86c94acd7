//! What waits for a person besides calls and connections.

use firedoor_model::{Digest, EntryId, Finding, Millis, Untrusted};
use serde::{Deserialize, Serialize};

/// A command that weakens protection and waits until it is confirmed on the desktop.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Confirmation {
    /// Its number within this run of the engine.
    pub id: u64,
    /// What would be done, in words. Parts of it may be a server's or a client's.
    pub action: Untrusted,
    /// The command line that asks for it.
    pub command: Untrusted,
    /// The process that asks and those above it, nearest first: name and process id.
    pub asked_by: Vec<Untrusted>,
    /// Since when it waits.
    pub asked: Millis,
    /// Until when.
    pub until: Millis,
}

/// A definition that is kept from agents until the user has accepted it, and that a server has shown in this run of the engine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Withheld {
    /// The server's entry.
    pub entry: EntryId,
    /// `tool`, `prompt`, `resource` or `instructions`.
    pub kind: String,
    /// Its name.
    pub name: Untrusted,
    /// Hash of the definition that waits: what accepting names ([`super::Pin::seen`]).
    pub seen: Digest,
    /// Since when the definition is another one.
    pub since: Millis,
    /// Why it is kept back.
    pub findings: Vec<Finding>,
}
