//! Does a protected server still offer what it offered before?

use std::{fmt, time::Duration};

use firedoor_clients::{
    Clients, Env,
    verify::{Difference, VerifyError, compare, list_tools},
};
use firedoor_model::{EntryId, Untrusted};
use serde::Serialize;

use crate::changes::own_environment;

/// For a server started directly: what clients wait, too.
const DIRECT: Duration = Duration::from_secs(60);
/// Through us, where it may have to be installed into its own cache first.
const THROUGH: Duration = Duration::from_secs(180);

/// What became of one entry.
#[derive(Serialize)]
pub struct Outcome {
    entry: EntryId,
    #[serde(flatten)]
    kind: Kind,
}

#[derive(Serialize)]
#[serde(tag = "verified", rename_all = "snake_case")]
enum Kind {
    /// It offers the same.
    Same { tools: usize },
    /// It cannot be compared; it stays protected.
    Unverified { reason: String },
    /// It does not offer the same; the entry was given back.
    RolledBack { reason: String },
    /// It does not offer the same, and the entry could not be given back.
    Stuck { reason: String },
}

impl Outcome {
    /// Whether the entry is not protected now, although it was asked for.
    pub fn rolled_back(&self) -> bool {
        matches!(self.kind, Kind::RolledBack { .. } | Kind::Stuck { .. })
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "  {}: ", Untrusted::new(self.entry.to_string()).visible(200))?;
        match &self.kind {
            Kind::Same { tools } => write!(f, "protected, answers as before ({tools} tools)"),
            Kind::Unverified { reason } => write!(f, "protected, not verified: {reason}"),
            Kind::RolledBack { reason } => write!(f, "given back: {reason}"),
            Kind::Stuck { reason } => write!(f, "protected, but {reason}"),
        }
    }
}

/// Starts each server directly and through its entry, and gives back what does not answer alike.
pub fn run(clients: &Clients, env: &Env<'_>, entries: &[EntryId]) -> Vec<Outcome> {
    entries.iter().map(|entry| Outcome { entry: entry.clone(), kind: one(clients, env, entry) }).collect()
}

fn one(clients: &Clients, env: &Env<'_>, entry: &EntryId) -> Kind {
    let unverified = |e: &dyn fmt::Display| Kind::Unverified { reason: e.to_string() };
    let invocations = match clients.invocations(env, entry, &own_environment()) {
        Ok(invocations) => invocations,
        Err(e) => return unverified(&e),
    };
    let Some(through) = invocations.through else { return unverified(&"the entry changed meanwhile") };
    let direct = match list_tools(&invocations.direct, DIRECT) {
        Ok(seen) => seen,
        // A server that does not answer by itself says nothing about us.
        Err(e) => return unverified(&format!("started directly, {e}")),
    };
    let reason = match list_tools(&through, THROUGH) {
        Ok(seen) => match compare(&direct, &seen).as_slice() {
            [] => return Kind::Same { tools: seen.tools.len() },
            differences => differences.iter().map(in_words).collect::<Vec<_>>().join(", "),
        },
        Err(VerifyError::Unverifiable { reason }) => return Kind::Unverified { reason },
        Err(e) => format!("through Firedoor, {e}"),
    };
    match clients.rollback_entry(env, entry) {
        Ok(()) => Kind::RolledBack { reason },
        Err(e) => Kind::Stuck { reason: format!("{reason}, and it could not be given back: {e}") },
    }
}

fn in_words(difference: &Difference) -> String {
    match difference {
        Difference::Server => "the server describes itself differently".into(),
        Difference::Missing { tool } => format!("tool {} is missing", tool.visible(80)),
        Difference::Added { tool } => format!("tool {} is new", tool.visible(80)),
        Difference::Changed { tool } => format!("tool {} is described differently", tool.visible(80)),
    }
}
