//! Who may weaken protection: not an AI client, not a server, and nothing that descends from one.
//!
//! An injected agent with a shell must not approve itself. Judged by the kernel's word about the peer (pid and start
//! time) and by the chain of parents. A process that hides its parents is refused as well. What this does not see is
//! written down in docs/known-limits.md.

use std::{cell::RefCell, collections::HashMap, env};

use firedoor_ipc::process::{self, Peer, Process, Stat};

use crate::agent;

/// Clients and servers of this engine's sessions, also of those that have ended, while the processes live.
pub struct Authority {
    watched: RefCell<HashMap<Process, Watched>>,
    /// Nobody can be asked on a screen, and no window manager starts terminals that have no parent.
    headless: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Watched {
    /// With its control group, which what it starts and leaves behind stays in.
    Client(Option<String>),
    Server,
}

/// What is asked about a process only where its place among the others is odd.
trait Look {
    /// Whether whoever lost its parent becomes this process's child.
    fn reaps(&self, pid: u32) -> bool;
    /// Whether it runs as the user.
    fn ours(&self, pid: u32) -> bool;
    /// Its control group.
    fn group(&self, pid: u32) -> Option<String>;
}

struct System;

impl Look for System {
    fn reaps(&self, pid: u32) -> bool {
        // The user's service manager takes the orphans of its sessions (systemd-run(1), PR_SET_CHILD_SUBREAPER).
        pid == 1 || process::name(pid).as_deref() == Some("systemd")
    }

    fn ours(&self, pid: u32) -> bool {
        process::user(pid).is_none_or(|uid| uid == nix::unistd::getuid().as_raw())
    }

    fn group(&self, pid: u32) -> Option<String> {
        process::group(pid)
    }
}

impl Default for Authority {
    /// Knows the clients of shims that run already: an engine that is started anew must not have forgotten them.
    fn default() -> Self {
        let headless = ["DISPLAY", "WAYLAND_DISPLAY"].iter().all(|name| env::var_os(name).is_none_or(|v| v.is_empty()));
        let authority = Self { watched: RefCell::default(), headless };
        for pid in process::all() {
            let is_shim =
                process::executable(pid).is_some_and(|path| path.file_name() == Some(firedoor_clients::SHIM.as_ref()));
            if let (true, Ok(stat)) = (is_shim, process::stat(pid)) {
                authority.watch_client(agent::client_of(stat.process).process);
            }
        }
        authority
    }
}

/// Why this process may not weaken protection when no engine runs that could say so; `None` when it may.
pub fn objection_to_this_process() -> Option<String> {
    let own = process::stat(std::process::id()).ok()?;
    let uid = nix::unistd::getuid().as_raw();
    Authority::default().objection(&Peer { uid, process: own.process })
}

/// More processes than this are not remembered: dead ones are forgotten first.
const MAX_WATCHED: usize = 4096;

impl Authority {
    /// Remembers a client process.
    pub fn watch_client(&self, process: Process) {
        self.watch(process, Watched::Client(process::group(process.pid)));
    }

    /// Remembers a server's process.
    pub fn watch_server(&self, process: Process) {
        self.watch(process, Watched::Server);
    }

    fn watch(&self, process: Process, role: Watched) {
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
        objection(&chain, &self.watched.borrow(), self.headless, &System)
    }
}

/// The pure part: `chain` is the asking process and its ancestors, nearest first.
fn objection(chain: &[Stat], watched: &HashMap<Process, Watched>, headless: bool, look: &impl Look) -> Option<String> {
    for stat in chain {
        match watched.get(&stat.process) {
            Some(Watched::Client(_)) => {
                return Some(format!(
                    "it was started by the AI client with process id {}; answer from a terminal outside that client",
                    stat.process.pid
                ));
            }
            Some(Watched::Server) => {
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
    let detached = "it was detached from the process that started it; run it from a terminal";
    if first.session == first.process.pid && first.terminal == 0 && look.reaps(first.parent) {
        return Some(detached.to_owned());
    }
    // The same further up, as `setsid -f sh -c "firedoor …; :"` does. Daemons look alike, so it must be of the user, younger
    // than a client, and have stayed where that client's processes live. Window managers start terminals without parents:
    // on a desktop a terminal speaks for itself.
    let left_behind = |orphan: &Stat| {
        let group = look.group(orphan.process.pid);
        let beside = |(client, role): (&Process, &Watched)| {
            matches!(role, Watched::Client(of) if *of == group) && client.start <= orphan.process.start
        };
        orphan.process.pid != 1
            && look.reaps(orphan.parent)
            && look.ours(orphan.process.pid)
            && watched.iter().any(beside)
    };
    if (first.terminal == 0 || headless) && chain.iter().any(left_behind) {
        return Some(format!("{detached} that was open before the AI client started, or log in anew"));
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stat(pid: u32, parent: u32, session: u32, terminal: i32) -> Stat {
        Stat { process: Process { pid, start: u64::from(pid) }, parent, session, terminal }
    }

    /// Process 2 is the user's service manager, 600 to 699 are root's, 700 to 799 live in another control group.
    struct Scene;

    impl Look for Scene {
        fn reaps(&self, pid: u32) -> bool {
            pid == 1 || pid == 2
        }
        fn ours(&self, pid: u32) -> bool {
            !(600..700).contains(&pid)
        }
        fn group(&self, pid: u32) -> Option<String> {
            Some(if (700..800).contains(&pid) { "/terminal" } else { "/app" }.into())
        }
    }

    #[test]
    fn who_may() {
        let client = Process { pid: 50, start: 50 };
        let reused = Process { pid: 10, start: 999 };
        let role = || Watched::Client(Some("/app".into()));
        let watched = HashMap::from([(client, role()), (reused, role())]);
        let check = |chain: &[Stat]| objection(chain, &watched, false, &Scene);
        let check_headless = |chain: &[Stat]| objection(chain, &watched, true, &Scene);
        // Terminal beside the client; one of its numbers was a client's once.
        assert_eq!(check(&[stat(20, 10, 10, 1), stat(10, 5, 10, 1), stat(5, 1, 5, 0)]), None);
        // Child and grandchild of the client.
        assert!(check(&[stat(60, 50, 10, 0), stat(50, 10, 10, 1), stat(10, 1, 10, 1)]).is_some());
        assert!(check(&[stat(61, 60, 10, 0), stat(60, 50, 10, 0), stat(50, 10, 10, 1)]).is_some());
        // Double fork: the session's leader is no ancestor any more.
        assert!(check(&[stat(61, 1, 10, 0), stat(1, 0, 1, 0)]).is_some());
        // setsid and orphaned.
        assert!(check(&[stat(61, 1, 61, 0), stat(1, 0, 1, 0)]).is_some());
        assert!(check(&[stat(61, 2, 61, 0), stat(2, 1, 2, 0), stat(1, 0, 1, 0)]).is_some());
        // A detached shell in between, with and without a terminal that it made itself.
        let below = |orphan, terminal| [stat(901, orphan, orphan, terminal), stat(orphan, 1, orphan, terminal)];
        assert!(check(&below(900, 0)).is_some());
        assert!(check(&[stat(901, 900, 899, 0), stat(900, 2, 899, 0), stat(899, 1, 899, 0)]).is_some());
        let script = [stat(902, 901, 901, 1), stat(901, 900, 901, 1), stat(900, 1, 900, 0)];
        assert!(check_headless(&script).is_some());
        // What looks alike: a terminal that a window manager started, a daemon older than the client, one of root, one
        // with a control group of its own.
        assert_eq!(check(&script), None);
        assert_eq!(check_headless(&below(40, 0)), None);
        assert_eq!(check_headless(&below(650, 0)), None);
        assert_eq!(check_headless(&below(750, 0)), None);
        // A shell that is the first process of a container, and one that entered it.
        assert_eq!(check(&[stat(7, 1, 1, 0), stat(1, 0, 1, 0)]), None);
        assert_eq!(check(&[stat(7, 0, 0, 0)]), None);
    }
}
