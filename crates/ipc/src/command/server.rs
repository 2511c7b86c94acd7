//! What there is to know about one entry's server.

use std::path::PathBuf;

use firedoor_model::{
    Digest, EntryId, Millis, Untrusted,
    launch::{Grant, Launched},
    network::HostGrant,
    observation::{Basis, Record},
};
use serde::{Deserialize, Serialize};

/// One entry's server.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Server {
    /// How it was started last; absent when this engine has not started it.
    pub start: Option<Start>,
    /// What the user has granted is not what the running server was started with: it has to be started again.
    pub restart: bool,
}

/// How a server was started.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Start {
    /// When.
    pub at: Millis,
    /// The sandbox level really in force, and why not more: `full: …`, `offline: …` or `partial: …`.
    pub level: String,
    /// The profile that gave its grants.
    pub profile: String,
    /// Its identity, to which rules are bound.
    pub launch: Digest,
    /// What it is.
    pub launched: Launched,
    /// What its sandbox opens.
    pub basis: Basis,
}

/// What was seen of an observed server.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Observation {
    /// When the run began.
    pub at: Millis,
    /// Whether it goes on.
    pub running: bool,
    /// What was seen.
    pub record: Record,
    /// What a proposal is measured by.
    pub basis: Basis,
}

/// One pinned definition.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Pin {
    /// The server's entry.
    pub entry: EntryId,
    /// `tool`, `prompt`, `resource` or `instructions`.
    pub kind: String,
    /// Its name.
    pub name: Untrusted,
    /// When it was first seen.
    pub first_seen: Millis,
    /// Hash of the pinned definition.
    pub digest: Digest,
    /// Fields that differ now, when it waits to be accepted.
    pub changed: Vec<String>,
    /// The pinned definition's text, if it was short enough to keep.
    pub accepted: Option<Untrusted>,
    /// The text that waits to be accepted.
    pub now: Option<Untrusted>,
    /// Hash of the definition that waits to be accepted.
    pub seen: Option<Digest>,
}

/// What the user granted to one entry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EntryGrants {
    /// The entry.
    pub entry: EntryId,
    /// Paths.
    pub grants: Vec<Grant>,
    /// Environment names.
    pub env: Vec<String>,
    /// Hosts.
    pub hosts: Vec<HostGrant>,
    /// Paths of Unix sockets.
    pub sockets: Vec<PathBuf>,
}

/// An address at which clients reach a server.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct EndpointView {
    /// Whose server.
    pub entry: EntryId,
    /// The address; absent until a port was found.
    pub address: Option<String>,
    /// What it starts, or where it is.
    pub server: Untrusted,
    /// The server's own address, of one that is reached over HTTP.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// Whether it is given an `Authorization` header of its own.
    #[serde(default)]
    pub authorized: bool,
    /// Whether it listens there now.
    pub listens: bool,
    /// Why it does not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}
