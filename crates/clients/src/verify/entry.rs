//! Does a protected entry still offer what its server offered before?

use std::{
    collections::{BTreeMap, BTreeSet},
    ffi::OsString,
    fmt,
    time::Duration,
};

use firedoor_model::{EntryId, Untrusted};
use serde::{Deserialize, Serialize};

use super::{Difference, Interrupt, Invocation, VerifyError, compare, list_tools};
use crate::{catalog::Clients, env::Env};

/// For a server started directly: what clients wait, too.
const DIRECT: Duration = Duration::from_secs(60);
/// Through us, where it may have to be installed into its own cache first.
const THROUGH: Duration = Duration::from_secs(180);

/// What became of one entry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outcome {
    /// Which entry.
    pub entry: EntryId,
    /// What was seen.
    #[serde(flatten)]
    pub verified: Verified,
}

/// What was seen of an entry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "verified", rename_all = "snake_case")]
pub enum Verified {
    /// It offers the same.
    Same {
        /// How many tools.
        tools: usize,
    },
    /// It answers through Firedoor; it was not compared with a direct start.
    Answers {
        /// How many tools.
        tools: usize,
    },
    /// It cannot be compared; it stays protected.
    Unverified {
        /// Why not.
        reason: String,
    },
    /// It does not offer the same; the entry was given back.
    RolledBack {
        /// What differs.
        reason: String,
    },
    /// It does not offer the same, and the entry could not be given back.
    Stuck {
        /// What differs, and why it stays.
        reason: String,
    },
}

impl Outcome {
    /// Whether the entry is not protected now, although it was asked for.
    pub fn rolled_back(&self) -> bool {
        matches!(self.verified, Verified::RolledBack { .. } | Verified::Stuck { .. })
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", Untrusted::new(self.entry.to_string()).visible(200))?;
        match &self.verified {
            Verified::Same { tools } => write!(f, "protected, answers as before ({tools} tools)"),
            Verified::Answers { tools } => write!(f, "protected, answers through Firedoor ({tools} tools)"),
            Verified::Unverified { reason } => write!(f, "protected, not verified: {reason}"),
            Verified::RolledBack { reason } => write!(f, "given back: {reason}"),
            Verified::Stuck { reason } => write!(f, "protected, but {reason}"),
        }
    }
}

/// Starts the server directly and through its entry, and gives the entry back when they do not answer alike. `base` is
/// the environment that the client would pass on. `None` where it was interrupted: then the entry is as it was.
///
/// The calling process starts the shim, so the engine takes it for an AI client from then on: it must not be a process
/// that later asks for what weakens protection.
pub fn entry(
    clients: &Clients,
    env: &Env<'_>,
    id: &EntryId,
    base: &BTreeMap<OsString, OsString>,
    interrupt: &Interrupt,
) -> Option<Outcome> {
    let outcome = |verified| Some(Outcome { entry: id.clone(), verified });
    let unverified = |reason| outcome(Verified::Unverified { reason });
    let (direct, through) = match starts(clients, env, id, base) {
        Ok(starts) => starts,
        Err(reason) => return unverified(reason),
    };
    let direct = match direct.map(|direct| list_tools(&direct, DIRECT, interrupt)).transpose() {
        Ok(seen) => seen,
        Err(VerifyError::Interrupted) => return None,
        // A server that does not answer by itself says nothing about us.
        Err(e) => return unverified(format!("started directly, {e}")),
    };
    let reason = match list_tools(&through, THROUGH, interrupt) {
        Ok(seen) => match direct.map(|direct| compare(&direct, &seen)).as_deref() {
            None => return outcome(Verified::Answers { tools: seen.tools.len() }),
            Some([]) => return outcome(Verified::Same { tools: seen.tools.len() }),
            Some(differences) => differences.iter().map(in_words).collect::<Vec<_>>().join(", "),
        },
        Err(VerifyError::Interrupted) => return None,
        Err(VerifyError::Unverifiable { reason }) => return outcome(Verified::Unverified { reason }),
        Err(e) => format!("through Firedoor, {e}"),
    };
    clients.given_back(env, &BTreeSet::from([id.clone()]), &reason).pop()
}

/// The same for an entry that nobody named: one that a project's own file brings is started [`confined`] only. Its author need not
/// be the user, and clients ask before they start it for the first time.
pub fn among_others(
    clients: &Clients,
    env: &Env<'_>,
    id: &EntryId,
    base: &BTreeMap<OsString, OsString>,
    interrupt: &Interrupt,
) -> Option<Outcome> {
    match clients.find(env, id).is_some_and(|found| found.brought) {
        true => confined(clients, env, id, base, interrupt),
        false => entry(clients, env, id, base, interrupt),
    }
}

/// How the server is started directly, if it can be, and through its entry; otherwise why it is not started at all.
fn starts(
    clients: &Clients,
    env: &Env<'_>,
    id: &EntryId,
    base: &BTreeMap<OsString, OsString>,
) -> Result<(Option<Invocation>, Invocation), String> {
    if clients.find(env, id).is_some_and(|found| found.stdio.off) {
        return Err("its client's configuration switches it off, so it was not started".into());
    }
    let both = clients.invocations(env, id, base).map_err(|e| e.to_string())?;
    Ok((both.direct, both.through.ok_or("the entry changed meanwhile")?))
}

/// Starts the server through its entry only, confined, and sees whether it answers. The entry stays protected in any case:
/// without a direct start nobody can say what a failure comes from, and a server with an address may want a login first. As
/// for [`entry`], the calling process counts as an AI client from then on.
pub fn confined(
    clients: &Clients,
    env: &Env<'_>,
    id: &EntryId,
    base: &BTreeMap<OsString, OsString>,
    interrupt: &Interrupt,
) -> Option<Outcome> {
    let verified = match starts(clients, env, id, base) {
        Err(reason) => Verified::Unverified { reason },
        Ok((_, through)) => match list_tools(&through, THROUGH, interrupt) {
            Ok(seen) => Verified::Answers { tools: seen.tools.len() },
            Err(VerifyError::Interrupted) => return None,
            Err(e) => Verified::Unverified { reason: format!("through Firedoor, {e}") },
        },
    };
    Some(Outcome { entry: id.clone(), verified })
}

fn in_words(difference: &Difference) -> String {
    match difference {
        Difference::Server => "the server describes itself differently".into(),
        Difference::Missing { tool } => format!("tool {} is missing", tool.visible(80)),
        Difference::Added { tool } => format!("tool {} is new", tool.visible(80)),
        Difference::Changed { tool } => format!("tool {} is described differently", tool.visible(80)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outcomes_read_as_sentences_and_survive_a_pipe() {
        let check = |verified: Verified, back: bool, want: &str| {
            let entry = "cursor/user/fs".parse().unwrap();
            let outcome = Outcome { entry, verified };
            assert_eq!(outcome.to_string(), want);
            assert_eq!(outcome.rolled_back(), back);
            let text = serde_json::to_string(&outcome).unwrap();
            assert_eq!(serde_json::from_str::<Outcome>(&text).unwrap(), outcome);
        };
        let reason = || "x".to_owned();
        check(Verified::Same { tools: 3 }, false, "cursor/user/fs: protected, answers as before (3 tools)");
        check(Verified::Answers { tools: 3 }, false, "cursor/user/fs: protected, answers through Firedoor (3 tools)");
        check(Verified::Unverified { reason: reason() }, false, "cursor/user/fs: protected, not verified: x");
        check(Verified::RolledBack { reason: reason() }, true, "cursor/user/fs: given back: x");
        check(Verified::Stuck { reason: reason() }, true, "cursor/user/fs: protected, but x");
    }
}
