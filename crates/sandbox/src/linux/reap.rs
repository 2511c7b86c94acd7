//! Killing and reaping.

use std::{
    io,
    os::fd::{AsFd, OwnedFd},
    time::{Duration, Instant},
};

use nix::{
    errno::Errno,
    poll::{PollFd, PollFlags, PollTimeout, poll},
    sys::{
        signal::{Signal, kill, killpg},
        wait::{WaitPidFlag, WaitStatus, waitpid},
    },
    unistd::{Pid, getpgid, getpgrp},
};

use crate::exit::Exit;
use crate::linux::{procfs, sys};

/// How long to wait for a death before looking again.
const PAUSE: Duration = Duration::from_millis(2);

/// The exit that a wait status means, if it means one.
pub(crate) fn exit_of(status: WaitStatus) -> Option<(Pid, Exit)> {
    match status {
        WaitStatus::Exited(pid, code) => Some((pid, Exit::Code(code))),
        WaitStatus::Signaled(pid, signal, _) => Some((pid, Exit::Signal(signal as i32))),
        _ => None,
    }
}

/// Reaps whatever has ended, and returns each with its exit. `Err(ECHILD)` when no child is left at all.
pub(crate) fn reap_ended(mut each: impl FnMut(Pid, Exit)) -> nix::Result<()> {
    loop {
        match sys::wait_any() {
            Ok(None) => return Ok(()),
            Ok(Some((pid, exit))) => each(pid, exit),
            Err(Errno::EINTR) => {}
            Err(e) => return Err(e),
        }
    }
}

/// Kills every descendant of this process until none is left. Only for the guardian: every child it has belongs to
/// the server's tree.
///
/// Orphans become direct children (`PR_SET_CHILD_SUBREAPER`), so that killing direct children again and again reaches
/// all of them: a double fork, a new session or SIGSTOP make no difference. A process that forks faster than we kill
/// is met by signalling its group: the kernel lets no fork finish while a signal is pending for its group
/// (`copy_process` in kernel/fork.c).
pub(crate) fn kill_everything(mut each: impl FnMut(Pid, Exit)) {
    // Mostly nothing is left, and there is nothing to look for.
    if reap_ended(&mut each).is_err() {
        return;
    }
    let own_group = getpgrp();
    loop {
        for pid in procfs::own_children() {
            // Groups in the tree hold only the tree: a process joins groups of its own session only, and ours has no
            // member but us and the tree. Some of it may have joined our own group.
            if let Ok(group) = getpgid(Some(pid))
                && group != own_group
                && group.as_raw() > 1
            {
                let _ = killpg(group, Signal::SIGKILL);
            }
            let _ = kill(pid, Signal::SIGKILL);
        }
        let mut reaped = false;
        let result = reap_ended(|pid, exit| {
            reaped = true;
            each(pid, exit);
        });
        match result {
            Err(_) => return,
            Ok(()) if reaped => {}
            Ok(()) => pause(),
        }
    }
}

/// A short wait, cut short by nothing; the caller looks again anyway.
pub(crate) fn pause() {
    let _ = poll(&mut [], PollTimeout::try_from(PAUSE).unwrap_or(PollTimeout::ZERO));
}

/// Waits for a child of ours to end, and reaps it. `false` when it has not ended in time.
pub(crate) fn wait_bounded(pid: Pid, limit: Duration) -> bool {
    let deadline = Instant::now() + limit;
    let pidfd = sys::pidfd_open(pid);
    loop {
        match waitpid(pid, Some(WaitPidFlag::WNOHANG)) {
            Ok(WaitStatus::StillAlive) | Err(Errno::EINTR) => {}
            // Reaped now, or before, or by a caller that ignores SIGCHLD.
            Ok(_) | Err(_) => return true,
        }
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return false;
        }
        match &pidfd {
            Ok(pidfd) => {
                let _ = readable(pidfd, left);
            }
            Err(_) => pause(),
        }
    }
}

/// Waits until `fd` is readable or has hung up. `false` when the time is over.
pub(crate) fn readable(fd: &OwnedFd, limit: Duration) -> io::Result<bool> {
    let deadline = Instant::now() + limit;
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let timeout = PollTimeout::try_from(left).unwrap_or(PollTimeout::MAX);
        match poll(&mut [PollFd::new(fd.as_fd(), PollFlags::POLLIN)], timeout) {
            Ok(0) => return Ok(false),
            Ok(_) => return Ok(true),
            Err(Errno::EINTR) => {}
            Err(e) => return Err(e.into()),
        }
    }
}
