//! What a process leaves behind keeps the number of a parent that is gone, and nothing else tells where it comes from. So the topmost
//! ancestor that still lives has to be older than every AI client, as the desktop (Explorer) and the system's services are.

use std::{collections::HashMap, ffi::OsString};

use firedoor_ipc::process::{Process, Stat};
use firedoor_model::paths::Paths;

use super::{Watched, started_by};

/// The system itself. There is nothing to ask it.
pub(super) struct System;

impl System {
    pub(super) fn of(_: &Paths) -> Self {
        Self
    }

    /// There are no control groups.
    pub(super) fn group(&self, _: u32) -> Option<String> {
        None
    }
}

/// Why a process may not weaken protection, without a look at anything but what is given: `chain` is the asking process and its
/// ancestors, nearest first.
pub(super) fn objection(chain: &[Stat], watched: &HashMap<Process, Watched>, _: &System) -> Option<String> {
    if let Some(reason) = started_by(chain, watched) {
        return Some(reason);
    }
    let Some(top) = chain.last() else { return Some("the system does not say who started it".to_owned()) };
    let younger = watched.keys().any(|known| known.start <= top.process.start);
    younger.then(|| {
        "whoever started it is gone, and it is younger than an AI client that was seen; run it from a terminal that the desktop has \
         started, or log in anew"
            .to_owned()
    })
}

/// No screen is looked for: no engine starts the app.
pub fn screens_of_the_user(_: &Paths, _: impl Fn(&str) -> Option<OsString>) -> Vec<&'static str> {
    Vec::new()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stat(pid: u32, parent: u32) -> Stat {
        Stat { process: Process { pid, start: u64::from(pid) }, parent }
    }

    #[test]
    fn what_a_client_started_or_left_behind_may_not() {
        let watched: HashMap<_, _> =
            [(stat(50, 20).process, Watched::Client(None)), (stat(60, 50).process, Watched::Server)].into();
        let check = |chain: &[Stat], want: Option<&str>| {
            let why = objection(chain, &watched, &System);
            assert_eq!(why.is_some(), want.is_some(), "{chain:?}: {why:?}");
            assert!(want.is_none_or(|want| why.is_some_and(|why| why.contains(want))), "{chain:?}");
        };
        // A terminal of the desktop's, which is older.
        check(&[stat(90, 80), stat(80, 20), stat(20, 10)], None);
        // Of the client, of its server, and what either left behind.
        check(&[stat(90, 50), stat(50, 20), stat(20, 10)], Some("AI client"));
        check(&[stat(90, 60), stat(60, 50), stat(50, 20), stat(20, 10)], Some("MCP server"));
        check(&[stat(90, 80), stat(80, 70)], Some("whoever started it is gone"));
        check(&[stat(90, 80)], Some("whoever started it is gone"));
        assert!(objection(&[stat(90, 80)], &HashMap::new(), &System).is_none(), "no client has run");
        check(&[], Some("does not say"));
    }
}
