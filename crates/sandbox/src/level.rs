//! How far a confinement is really enforced, for a machine and for one server.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::quota::Quota;

/// Landlock's first ABI with scopes for signals and abstract unix sockets (Linux 6.12).
pub(crate) const ABI_SCOPE: u32 = 6;
/// Landlock's first ABI with TCP rules (Linux 6.7).
pub(crate) const ABI_TCP: u32 = 4;
/// Landlock's first ABI that governs truncation (Linux 6.2).
pub(crate) const ABI_TRUNCATE: u32 = 3;
/// Landlock's first ABI that allows renames across directories (Linux 5.19).
pub(crate) const ABI_REFER: u32 = 2;

/// How much protection is in force. Ordered: a greater level protects more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// Servers cannot be confined here, so none is started.
    Refused,
    /// Files and network are confined, but the kernel is too old for some second layer.
    Partial,
    /// Everything is confined; servers get no network and write to no granted tree, because calls cannot be judged here.
    Offline,
    /// Everything this crate knows is enforced.
    Full,
}

impl Level {
    /// One sentence for a person.
    pub fn sentence(self) -> &'static str {
        match self {
            Self::Refused => "servers cannot be confined on this machine, so Firedoor does not start them",
            Self::Partial => {
                "files, network and kernel interfaces are confined, but this kernel lacks a layer: see what is missing"
            }
            Self::Offline => {
                "files, signals and kernel interfaces are confined; servers have no network and write only to their own \
                 directories, because this machine does not let Firedoor judge their calls"
            }
            Self::Full => {
                "files, network, signals and kernel interfaces are confined by Landlock, seccomp and the guardian"
            }
        }
    }

    /// Its name, as in the documentation.
    pub fn word(self) -> &'static str {
        match self {
            Self::Refused => "refused",
            Self::Partial => "partial",
            Self::Offline => "offline",
            Self::Full => "full",
        }
    }

    /// The level of a machine or a server with these layers.
    pub(crate) fn of(landlock_abi: u32, filter: bool, connections_judged: bool) -> Self {
        match (landlock_abi, filter) {
            (0, _) | (_, false) => Self::Refused,
            (1..ABI_SCOPE, true) => Self::Partial,
            (_, true) if connections_judged => Self::Full,
            (_, true) => Self::Offline,
        }
    }
}

/// What was really enforced for one server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outcome {
    /// The level in force.
    pub level: Level,
    /// Version of Landlock that decides about paths.
    pub landlock_abi: u32,
    /// Names of the file-system rights that are denied outside the grants.
    pub rights: Vec<String>,
    /// Landlock denies TCP a second time, below the filter.
    pub tcp_denied: bool,
    /// Landlock keeps signals and abstract unix sockets inside the sandbox.
    pub scoped: bool,
    /// Instructions of the seccomp filter.
    pub filter_instructions: usize,
    /// Connections are judged and made by the guardian; otherwise there is no network at all.
    pub judged: bool,
    /// How the limits of the whole tree are kept.
    pub quota: Quota,
    /// What it does is written down: [`crate::Tree::record`].
    pub observed: bool,
    /// Granted paths that did not exist and were skipped.
    pub skipped: Vec<PathBuf>,
    /// What a newer kernel would add.
    pub missing: Vec<String>,
}

impl Outcome {
    /// The level's name, what is in force, and why it is not more, for a person.
    pub fn sentence(&self) -> String {
        let mut text = format!("{}: {}", self.level.word(), self.level.sentence());
        if !self.missing.is_empty() {
            text.push_str(" (missing: ");
            text.push_str(&self.missing.join("; "));
            text.push(')');
        }
        text.push_str("; ");
        text.push_str(self.quota.sentence());
        text
    }
}

/// What this machine can enforce.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    /// The best level a server can get here.
    pub level: Level,
    /// [`Level::sentence`] of it.
    pub summary: String,
    /// Version of Landlock; 0 when it is absent or switched off.
    pub landlock_abi: u32,
    /// Seccomp filters can be installed.
    pub filter: bool,
    /// Filters can hand calls to a supervisor (user notification).
    pub notification: bool,
    /// The supervisor may take descriptors of its children (`pidfd_getfd`).
    pub descriptors: bool,
    /// How the limits of a server's whole tree are kept, and why so.
    pub limits: String,
    /// What is missing and what that means, one sentence each.
    pub missing: Vec<String>,
}

/// What a Landlock of this version leaves open, and which layer still covers it. `judged`: the guardian answers calls.
pub(crate) fn missing_from(abi: u32, judged: bool) -> Vec<String> {
    let mut out = Vec::new();
    if abi < ABI_REFER {
        out.push("Landlock 2 (Linux 5.19): renames across directories fail, which breaks npm".to_owned());
    }
    if abi < ABI_TRUNCATE {
        out.push(if judged {
            "Landlock 3 (Linux 6.2): truncation by path is judged by the guardian alone".to_owned()
        } else {
            "Landlock 3 (Linux 6.2): no file can be truncated by path, granted or not".to_owned()
        });
    }
    if abi < ABI_TCP {
        out.push("Landlock 4 (Linux 6.7): TCP is denied by the seccomp filter alone".to_owned());
    }
    if abi < ABI_SCOPE {
        out.push(if judged {
            "Landlock 6 (Linux 6.12): signals are judged by the guardian alone".to_owned()
        } else {
            "Landlock 6 (Linux 6.12): a server can send signals to the user's other processes".to_owned()
        });
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn level_follows_from_the_layers() {
        for (abi, filter, judged, want) in [
            (0, true, true, Level::Refused),
            (7, false, true, Level::Refused),
            (1, true, true, Level::Partial),
            (5, true, false, Level::Partial),
            (6, true, false, Level::Offline),
            (7, true, true, Level::Full),
        ] {
            assert_eq!(Level::of(abi, filter, judged), want, "{abi} {filter} {judged}");
        }
        assert!(Level::Refused < Level::Partial && Level::Offline < Level::Full);
        assert_eq!((missing_from(1, true).len(), missing_from(6, false).len()), (4, 0));
        for (judged, want) in [(true, "judged by the guardian alone"), (false, "can send signals")] {
            assert!(missing_from(5, judged)[0].contains(want), "{judged}");
        }
    }
}
