//! System calls that neither `nix` nor the standard library wraps.
#![expect(unsafe_code, reason = "system calls without a safe wrapper")]

use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

use nix::{
    errno::Errno,
    libc::{self, c_int, c_long},
    unistd::Pid,
};

use crate::tree::Exit;

/// Turns the result of a call that returns a new descriptor into one.
fn owned(result: c_long) -> nix::Result<OwnedFd> {
    let fd = RawFd::try_from(Errno::result(result)?).map_err(|_| Errno::EBADF)?;
    // SAFETY: the kernel has just returned this descriptor to us, so nobody else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// `pidfd_open(2)` of a process.
pub(crate) fn pidfd_open(pid: Pid) -> nix::Result<OwnedFd> {
    // SAFETY: takes two integers.
    owned(unsafe { libc::syscall(libc::SYS_pidfd_open, pid.as_raw(), 0) })
}

/// `pidfd_open(2)` of a thread (`PIDFD_THREAD`, Linux 6.9; the flag's value is `O_EXCL`).
pub(crate) fn pidfd_open_thread(tid: Pid) -> nix::Result<OwnedFd> {
    // SAFETY: takes two integers.
    owned(unsafe { libc::syscall(libc::SYS_pidfd_open, tid.as_raw(), libc::O_EXCL) })
}

/// `pidfd_getfd(2)`: a duplicate of another process's descriptor, close-on-exec.
pub(crate) fn pidfd_getfd(pidfd: BorrowedFd<'_>, fd: RawFd) -> nix::Result<OwnedFd> {
    // SAFETY: takes three integers.
    owned(unsafe { libc::syscall(libc::SYS_pidfd_getfd, pidfd.as_raw_fd(), fd, 0) })
}

/// `close_range(2)`, both ends included. Linux 5.9, older than anything Landlock runs on.
pub(crate) fn close_range(first: u32, last: u32) -> nix::Result<()> {
    if first > last {
        return Ok(());
    }
    // SAFETY: closes descriptors by number. Callers are freshly forked processes that own their whole table and end
    // without running destructors, so that no `OwnedFd` is used or dropped after its descriptor was closed here.
    Errno::result(unsafe { libc::syscall(libc::SYS_close_range, first, last, 0) }).map(drop)
}

/// Reaps one ended child; `None` when there are children but none has ended. Unlike `nix`'s `waitpid` this accepts
/// real-time signals.
pub(crate) fn wait_any() -> nix::Result<Option<(Pid, Exit)>> {
    let mut status: c_int = 0;
    // SAFETY: `status` is valid for writing for the duration of the call.
    let pid = Errno::result(unsafe { libc::waitpid(-1, &raw mut status, libc::WNOHANG | libc::__WALL) })?;
    if pid == 0 {
        return Ok(None);
    }
    let exit = if libc::WIFEXITED(status) {
        Exit::Code(libc::WEXITSTATUS(status))
    } else {
        Exit::Signal(libc::WTERMSIG(status))
    };
    Ok(Some((Pid::from_raw(pid), exit)))
}

/// Signals a process group by number, real-time signals included.
pub(crate) fn signal_group(group: Pid, signal: c_int) -> nix::Result<()> {
    // SAFETY: takes two integers.
    Errno::result(unsafe { libc::kill(-group.as_raw(), signal) }).map(drop)
}

/// Ends this process at once, without destructors or exit handlers.
pub(crate) fn exit_now(code: c_int) -> ! {
    // SAFETY: has no preconditions and does not return.
    unsafe { libc::_exit(code) }
}
