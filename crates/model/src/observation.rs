//! What a server was seen to do while it was observed.

use std::{collections::BTreeSet, path::PathBuf};

use serde::{Deserialize, Serialize};

use crate::{
    Untrusted,
    launch::{Access, Grant},
    network::{AttemptKind, HostGrant},
};

/// What was done with a path. A greater one needs at least as much of a grant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Use {
    /// A directory was listed.
    List,
    /// A file was read.
    Read,
    /// A program was started.
    Execute,
    /// A file that exists was written.
    Write,
    /// Something was made, renamed or removed at this place: what lies above it must be writable.
    Create,
}

impl Use {
    /// What a grant must allow for this.
    pub fn needs(self) -> Access {
        match self {
            Self::List => Access::List,
            Self::Read | Self::Execute => Access::Read,
            Self::Write | Self::Create => Access::Write,
        }
    }
}

/// One thing that was done. One line of a record in the making.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Observed {
    /// A path was used.
    File {
        /// Absolute, with symbolic links resolved.
        path: Untrusted,
        /// How.
        #[serde(rename = "use")]
        how: Use,
        /// Whether the grants cover it. Permissions of the file itself may still have refused.
        allowed: bool,
    },
    /// A host was looked up or connected to, an address was listened at, or a Unix socket was connected to.
    Connection {
        /// Which of them.
        #[serde(rename = "what")]
        kind: AttemptKind,
        /// Host and port, or the socket's path.
        target: Untrusted,
        /// Whether it was allowed.
        allowed: bool,
    },
    /// More was done, and is not recorded.
    Truncated,
}

/// Everything that was seen of one run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// In order; each thing once.
    pub seen: BTreeSet<Observed>,
}

impl Record {
    /// Reads what the guardian has written so far: one JSON text in each line. A last line without its end is still being
    /// written, and left out. `None` when something else stands there.
    pub fn from_lines(text: &[u8]) -> Option<Self> {
        let end = text.iter().rposition(|b| *b == b'\n').map_or(0, |at| at + 1);
        let lines = text.get(..end)?.split(|b| *b == b'\n').filter(|line| !line.is_empty());
        let seen = lines.map(|line| serde_json::from_slice(line).ok()).collect::<Option<_>>()?;
        Some(Self { seen })
    }

    /// Whether more was done than stands here.
    pub fn is_truncated(&self) -> bool {
        self.seen.contains(&Observed::Truncated)
    }

    /// Keeps about half, and says that it is not all.
    pub fn halve(&mut self) {
        let mut odd = false;
        self.seen.retain(|_| {
            odd = !odd;
            odd
        });
        self.seen.insert(Observed::Truncated);
    }

    /// Paths, what was done there, and whether the grants cover it.
    pub fn files(&self) -> impl Iterator<Item = (&Untrusted, Use, bool)> {
        self.seen.iter().filter_map(|o| match o {
            Observed::File { path, how, allowed } => Some((path, *how, *allowed)),
            Observed::Connection { .. } | Observed::Truncated => None,
        })
    }

    /// Connections, and whether they were allowed.
    pub fn connections(&self) -> impl Iterator<Item = (AttemptKind, &Untrusted, bool)> {
        self.seen.iter().filter_map(|o| match o {
            Observed::Connection { kind, target, allowed } => Some((*kind, target, *allowed)),
            Observed::File { .. } | Observed::Truncated => None,
        })
    }
}

/// What a proposal is measured by: what the server gets without anything that the user granted to it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Basis {
    /// Grants that follow from the command and the profile.
    pub grants: Vec<Grant>,
    /// All grants that were in force.
    pub in_force: Vec<Grant>,
    /// Hosts that the profile allows.
    pub profile_hosts: Vec<HostGrant>,
    /// All hosts that were allowed.
    pub hosts: Vec<HostGrant>,
    /// Unix sockets that the profile allows.
    pub sockets: Vec<PathBuf>,
    /// Whether the profile allows to listen.
    pub listen: bool,
    /// The working directory.
    pub cwd: PathBuf,
    /// Paths that the command's arguments name, with symbolic links resolved.
    pub arguments: Vec<PathBuf>,
    /// How a profile finds this server: `npm`, `pypi` or `executable`, and the name.
    pub subject: Option<(String, String)>,
    /// The profile that was found so, and whether it is the user's own.
    pub extends: Option<(String, bool)>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read_up_to_the_last_whole_one() {
        let file = Observed::File { path: "/a\nb".into(), how: Use::Read, allowed: true };
        let host = Observed::Connection { kind: AttemptKind::Network, target: "a.example:443".into(), allowed: false };
        let line = |o: &Observed| serde_json::to_string(o).unwrap() + "\n";
        let text = line(&file) + &line(&host) + &line(&file) + "{\"kind\":\"trunc";
        let record = Record::from_lines(text.as_bytes()).unwrap();
        assert_eq!((record.files().count(), record.connections().count(), record.is_truncated()), (1, 1, false));
        assert!(Record::from_lines((text.clone() + "ated\"}\n").as_bytes()).unwrap().is_truncated());
        assert_eq!(Record::from_lines(b"nonsense\n"), None);
        assert_eq!(Record::from_lines(b""), Some(Record::default()));
    }
}
