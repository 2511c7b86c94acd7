//! macOS has no splice(2), so bytes cannot be moved without a moment in which only this process has them. Streams are read and
//! written as they are, nothing is kept for the next engine, and one that takes over has to end the session.

use std::{os::fd::OwnedFd, path::Path};

use firedoor_ipc::process::{self, Peer, Process};
use nix::{errno::Errno, sys::socket::MsgFlags, unistd::getuid};

/// What draws the screen, in a volume that nobody can write to; it runs as a user of its own, from before anybody logs in.
const SYSTEM: &str = "/System/Library";
const DRAWS: &str = "WindowServer";

/// Nothing that was read is kept.
pub const LOGS: bool = false;

/// std ignores SIGPIPE from the program's start.
pub const NO_SIGNAL: MsgFlags = MsgFlags::empty();

/// Not available, and without logs not wanted.
pub fn splice(_: &OwnedFd, _: &OwnedFd, _: usize) -> nix::Result<usize> {
    Err(Errno::ENOSYS)
}

/// Not available.
pub fn punch(_: &OwnedFd, _: i64, _: i64) -> nix::Result<()> {
    Err(Errno::ENOSYS)
}

/// None is.
pub fn in_memory(_: &OwnedFd) -> bool {
    false
}

/// The processes behind screens without sockets, which those of a Mac are.
pub fn screens() -> Vec<Process> {
    let draws = |pid: &u32| {
        process::executable(*pid).is_some_and(|path| path.starts_with(SYSTEM) && path.ends_with(DRAWS))
            && process::user(*pid).is_some_and(|user| user != getuid().as_raw())
    };
    let all = process::all().into_iter().filter(draws);
    all.filter_map(|pid| process::stat(pid).ok()).map(|stat| stat.process).collect()
}

/// The screen of a Mac has no socket.
pub fn listener(_: &Path, _: bool) -> Option<Peer> {
    None
}
