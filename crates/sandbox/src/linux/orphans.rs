//! The caller's part when the guardian is killed: the tree falls to the caller, which is a subreaper too.

use std::time::{Duration, Instant};

use nix::{
    sys::{
        signal::{Signal, kill},
        wait::{WaitPidFlag, waitpid},
    },
    unistd::Pid,
};

use crate::exit::Exit;
use crate::linux::{
    procfs::{self, Stat},
    reap,
};

/// Longest time to spend on a tree whose guardian was killed.
const LIMIT: Duration = Duration::from_secs(2);

/// Tells the server's orphans from other children of the caller.
#[derive(Debug, Default)]
pub(crate) struct Orphans {
    /// Children that the caller had before the server was started.
    bystanders: Vec<(Pid, u64)>,
}

impl Orphans {
    /// Remembers the children that the caller has now.
    pub fn before_start() -> Self {
        let known = |pid| Some((pid, Stat::of(pid)?.started));
        Self { bystanders: procfs::own_children().into_iter().filter_map(known).collect() }
    }

    /// Kills and reaps what has fallen to us, until nothing is left. Returns how `server` ended, if it was among it.
    pub fn kill(&self, server: Pid) -> Option<Exit> {
        let deadline = Instant::now() + LIMIT;
        let mut exit = None;
        loop {
            let ours: Vec<Pid> = procfs::own_children().into_iter().filter(|pid| self.is_ours(*pid)).collect();
            if ours.is_empty() || Instant::now() >= deadline {
                return exit;
            }
            for pid in ours {
                let _ = kill(pid, Signal::SIGKILL);
                if let Ok(status) = waitpid(pid, Some(WaitPidFlag::WNOHANG))
                    && let Some((pid, how)) = reap::exit_of(status)
                    && pid == server
                {
                    exit = Some(how);
                }
            }
            reap::pause();
        }
    }

    /// Everything in the tree has `no_new_privs` and a seccomp filter, and cannot lose either (prctl(2), seccomp(2)).
    fn is_ours(&self, pid: Pid) -> bool {
        let known = |started| self.bystanders.contains(&(pid, started));
        !Stat::of(pid).is_some_and(|s| known(s.started))
            && procfs::status_field(pid, "NoNewPrivs").as_deref() == Some("1")
            && procfs::status_field(pid, "Seccomp").as_deref() == Some("2")
    }
}
