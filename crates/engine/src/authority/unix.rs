//! Sessions, terminals, orphans and screens, which tell who was left behind by a client.

#[path = "screens.rs"]
mod screens;

use std::{
    collections::HashMap,
    ffi::OsString,
    path::{Path, PathBuf},
};

use firedoor_ipc::process::{self, Process, Stat};
use firedoor_model::paths::Paths;

use super::{Authority, Watched, started_by};

/// What is asked about a process only where its place among the others is odd.
pub(super) trait Look {
    /// Whether whoever lost its parent becomes this process's child.
    fn reaps(&self, pid: u32) -> bool;
    /// Whether it runs as the user.
    fn ours(&self, pid: u32) -> bool;
    /// Its control group.
    fn group(&self, pid: u32) -> Option<String>;
    /// The processes that stand behind screens, each with its ancestors, nearest first.
    fn screens(&self) -> Vec<Vec<Stat>>;
}

/// The system itself.
pub(super) struct System {
    /// Where compositors may have their sockets.
    runtime: Option<PathBuf>,
}

impl System {
    pub(super) fn of(paths: &Paths) -> Self {
        Self { runtime: paths.runtime.parent().map(Path::to_owned) }
    }
}

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

    fn screens(&self) -> Vec<Vec<Stat>> {
        screens::all(self.runtime.as_deref()).into_iter().filter_map(chain_of).collect()
    }
}

/// A process that lives, and its ancestors.
fn chain_of(process: Process) -> Option<Vec<Stat>> {
    let chain = process::ancestry(process.pid);
    (chain.first()?.process == process).then_some(chain)
}

/// Those of the variables `DISPLAY` and `WAYLAND_DISPLAY` that name a screen of the user's. Whoever starts an engine, an AI
/// client in most cases, sets them; on a screen that a client has made, it could press the buttons itself.
pub fn screens_of_the_user(paths: &Paths, var: impl Fn(&str) -> Option<OsString>) -> Vec<&'static str> {
    let authority = Authority::new(paths);
    let watched = authority.watched.borrow();
    let clients: Vec<Process> =
        watched.iter().filter(|(_, role)| matches!(role, Watched::Client(_))).map(|(process, _)| *process).collect();
    let named = screens::named(var).into_iter();
    let of_the_user =
        |process| chain_of(process).is_some_and(|chain| is_screen(&chain, &clients, &watched, &authority.look));
    named.filter(|(_, process)| of_the_user(*process)).map(|(name, _)| name).collect()
}

const UNKNOWN: &str = "the system does not say who started it";

/// Why a process may not weaken protection, without a look at anything but what is given: `chain` is the asking process and its ancestors, nearest first.
pub(super) fn objection(chain: &[Stat], watched: &HashMap<Process, Watched>, look: &impl Look) -> Option<String> {
    if let Some(reason) = started_by(chain, watched) {
        return Some(reason);
    }
    // A double fork without setsid leaves the session of whoever started it, but no longer descends from its leader.
    let Some(first) = chain.first() else { return Some(UNKNOWN.to_owned()) };
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
    // The same further up, as `setsid -f sh -c "firedoor …; :"` does. Window managers start terminals without parents: where
    // there is a screen, a terminal speaks for itself.
    let beside: Vec<Process> = chain.iter().flat_map(|stat| left_behind_by(stat, watched, look)).collect();
    if beside.is_empty()
        || (first.terminal != 0 && look.screens().iter().any(|screen| is_screen(screen, &beside, watched, look)))
    {
        return None;
    }
    Some(format!("{detached} that was open before the AI client started, or log in anew"))
}

/// The clients that may have left this process behind, when it has lost its parent. Daemons look alike, so it must be of the
/// user, younger than a client, and have stayed where that client's processes live.
fn left_behind_by(orphan: &Stat, watched: &HashMap<Process, Watched>, look: &impl Look) -> Vec<Process> {
    if orphan.process.pid == 1 || !look.reaps(orphan.parent) || !look.ours(orphan.process.pid) {
        return Vec::new();
    }
    let group = look.group(orphan.process.pid);
    let beside = |(client, role): (&Process, &Watched)| {
        let with_it = matches!(role, Watched::Client(of) if *of == group) && client.start <= orphan.process.start;
        with_it.then_some(*client)
    };
    watched.iter().filter_map(beside).collect()
}

/// Whether a screen, by the process behind it, is not the work of an AI client: none started it or left it behind, and it was
/// there before these clients.
fn is_screen(screen: &[Stat], clients: &[Process], watched: &HashMap<Process, Watched>, look: &impl Look) -> bool {
    screen.first().is_some_and(|first| clients.iter().all(|client| first.process.start <= client.start))
        && started_by(screen, watched).is_none()
        && screen.iter().all(|stat| left_behind_by(stat, watched, look).is_empty())
}
