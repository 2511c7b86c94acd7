//! Who may weaken protection: not an AI client, not a server, and nothing that descends from one.
//!
//! An injected agent with a shell must not approve itself. Judged by the kernel's word about the peer (pid and start
//! time) and by the chain of parents. A process that hides its parents is refused as well. What this does not see is
//! written down in docs/known-limits.md.

use std::{cell::RefCell, collections::HashMap};

use firedoor_ipc::process::{self, Peer, Process, Stat};

/// Clients and servers of this engine's sessions, also of those that have ended, while the processes live.
#[derive(Default)]
pub struct Authority {
    watched: RefCell<HashMap<Process, Role>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    Client,
    Server,
}

/// More processes than this are not remembered: dead ones are forgotten first.
const MAX_WATCHED: usize = 4096;

impl Authority {
    /// Remembers a client process.
    pub fn watch_client(&self, process: Process) {
        self.watch(process, Role::Client);
    }

    /// Remembers a server's process.
    pub fn watch_server(&self, process: Process) {
        self.watch(process, Role::Server);
    }

    fn watch(&self, process: Process, role: Role) {
        let mut watched = self.watched.borrow_mut();
        if watched.len() >= MAX_WATCHED {
            watched.retain(|p, _| process::stat(p.pid).is_ok_and(|s| s.process == *p));
        }
        watched.insert(process, role);
    }

    /// Why this peer may not weaken protection; `None` when it may.
    pub fn objection(&self, peer: &Peer) -> Option<String> {
        let chain = process::ancestry(peer.process.pid);
        if chain.first().map(|s| s.process) != Some(peer.process) {
            return Some("the process that asked has ended, so nobody can say who started it".to_owned());
        }
        objection(&chain, &self.watched.borrow())
    }
}

/// The pure part: `chain` is the asking process and its ancestors, nearest first.
fn objection(chain: &[Stat], watched: &HashMap<Process, Role>) -> Option<String> {
    for stat in chain {
        match watched.get(&stat.process) {
            Some(Role::Client) => {
                return Some(format!(
                    "it was started by the AI client with process id {}; answer from a terminal outside that client",
                    stat.process.pid
                ));
            }
            Some(Role::Server) => {
                return Some(format!("it was started by the MCP server with process id {}", stat.process.pid));
            }
            None => {}
        }
    }
    // A double fork without setsid leaves the session of whoever started it, but no longer descends from its leader.
    let first = chain.first()?;
    let leader_known = chain.iter().any(|s| s.process.pid == first.session);
    // Leader 0 means a session outside our pid namespace (a shell entered a container from outside).
    if first.session != 0 && !leader_known {
        return Some("it has cut the link to the process that started it; run it from a terminal".to_owned());
    }
    // setsid from an orphan: leads its own session, has no terminal, and its parent is init.
    if first.session == first.process.pid && first.terminal == 0 && first.parent == 1 {
        return Some("it was detached from the process that started it; run it from a terminal".to_owned());
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stat(pid: u32, parent: u32, session: u32, terminal: i32) -> Stat {
        Stat { process: Process { pid, start: u64::from(pid) }, parent, session, terminal }
    }

    #[test]
    fn who_may() {
        let client = Process { pid: 50, start: 50 };
        let reused = Process { pid: 10, start: 999 };
        let watched = HashMap::from([(client, Role::Client), (reused, Role::Client)]);
        let check = |chain: &[Stat]| objection(chain, &watched);
        // Terminal beside the client; one of its numbers was a client's once.
        assert_eq!(check(&[stat(20, 10, 10, 1), stat(10, 5, 10, 1), stat(5, 1, 5, 0)]), None);
        // Child and grandchild of the client.
        assert!(check(&[stat(60, 50, 10, 0), stat(50, 10, 10, 1), stat(10, 1, 10, 1)]).is_some());
        assert!(check(&[stat(61, 60, 10, 0), stat(60, 50, 10, 0), stat(50, 10, 10, 1)]).is_some());
        // Double fork: the session's leader is no ancestor any more.
        assert!(check(&[stat(61, 1, 10, 0), stat(1, 0, 1, 0)]).is_some());
        // setsid and orphaned.
        assert!(check(&[stat(61, 1, 61, 0), stat(1, 0, 1, 0)]).is_some());
        // A shell that is the first process of a container, and one that entered it.
        assert_eq!(check(&[stat(7, 1, 1, 0), stat(1, 0, 1, 0)]), None);
        assert_eq!(check(&[stat(7, 0, 0, 0)]), None);
    }
}
