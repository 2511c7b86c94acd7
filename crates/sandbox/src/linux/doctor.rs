//! What this machine can enforce, found out by doing it.
#![expect(unsafe_code, reason = "a throw-away child of a possibly threaded process may only make plain system calls")]

use std::{
    io,
    os::fd::{AsFd, AsRawFd, OwnedFd, RawFd},
};

use firedoor_model::limits::Limits;
use nix::{
    errno::Errno,
    fcntl::OFlag,
    libc,
    sys::wait::waitpid,
    unistd::{ForkResult, fork, pipe2},
};

use crate::level::{Level, Quota, Report};
use crate::linux::{
    filesystem::Version,
    layers::missing_from,
    quota::group::Group,
    seccomp::{self, Arch, Listener, Program, Reach, Scope},
    sys,
};

/// What the throw-away child writes when a step failed: a negative errno, told apart by step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Probe {
    /// The filter was installed, and the listener could be taken out of the child.
    Works,
    /// No process could be made, so nothing is known; nothing is assumed either.
    Unknown(Errno),
    /// Filters cannot be installed.
    NoFilter(Errno),
    /// Filters work, notifications do not.
    NoNotification(Errno),
    /// Notifications work, the supervisor may not take descriptors.
    NoDescriptors(Errno),
}

/// Probes this machine. Starts and ends a throw-away process; may be called from a process with threads.
pub fn doctor() -> Report {
    let landlock = Version::running();
    let probe = program().map_or(Probe::NoFilter(Errno::ENOSYS), |program| probe(&program));
    let group = Group::make(&Limits::default()).map(Group::remove);
    report(landlock.map(|v| v.number), probe, group)
}

fn program() -> Option<Program> {
    // The one with the most rules.
    let scope = Scope { reach: Reach::Listed, trees: true, terminal: false, landlock: 0, observed: false };
    seccomp::compile(Arch::native()?, scope).ok()
}

fn report(landlock: nix::Result<u32>, probe: Probe, group: io::Result<()>) -> Report {
    let mut missing = match landlock {
        Ok(abi) => missing_from(abi, matches!(probe, Probe::Works)),
        Err(e) => vec![format!("Landlock ({e}): needs Linux 5.13 and \"landlock\" among the security modules (lsm=)")],
    };
    let (filter, notification, descriptors) = match probe {
        Probe::Works => (true, true, true),
        Probe::NoDescriptors(_) => (true, true, false),
        Probe::NoNotification(_) => (true, false, false),
        Probe::NoFilter(_) | Probe::Unknown(_) => (false, false, false),
    };
    missing.extend(match probe {
        Probe::Works => None,
        Probe::Unknown(e) => Some(format!("a process for the probe ({e}): try again")),
        Probe::NoFilter(e) => Some(format!("seccomp filters ({e}): servers cannot be confined")),
        Probe::NoNotification(e) => Some(format!(
            "seccomp user notification ({e}): servers get no network, and granted trees can only be read. EBUSY means that another supervisor, such as WSL's \
             mirrored networking, is in charge"
        )),
        Probe::NoDescriptors(e) => Some(format!(
            "pidfd_getfd of a child ({e}): servers get no network, and granted trees can only be read. Yama's kernel.yama.ptrace_scope must be 0 or 1"
        )),
    });
    let abi = landlock.unwrap_or(0);
    let level = Level::of(abi, filter, descriptors);
    Report {
        level,
        summary: level.sentence().to_owned(),
        landlock_abi: abi,
        filter,
        notification,
        descriptors,
        limits: match group {
            Ok(()) => Quota::Group.sentence().to_owned(),
            Err(e) => format!("{} ({e})", Quota::Counted.sentence()),
        },
        missing,
    }
}

fn probe(program: &Program) -> Probe {
    let pipes = || Ok::<_, Errno>((pipe2(OFlag::O_CLOEXEC)?, pipe2(OFlag::O_CLOEXEC)?));
    let ((from_child, to_parent), (from_parent, to_child)) = match pipes() {
        Ok(pipes) => pipes,
        Err(e) => return Probe::Unknown(e),
    };
    // SAFETY: other threads may hold locks, so the child makes only system calls on what was prepared before: `child`
    // neither allocates nor takes locks nor unwinds, and does not return.
    let pid = match unsafe { fork() } {
        Ok(ForkResult::Child) => child(program, &to_parent, &from_parent, &to_child),
        Ok(ForkResult::Parent { child }) => child,
        Err(e) => return Probe::Unknown(e),
    };
    drop((to_parent, from_parent));
    let result = match (read_number(&from_child), read_number(&from_child)) {
        (Some(0), Some(fd)) => match sys::pidfd_open(pid).and_then(|p| sys::pidfd_getfd(p.as_fd(), fd)) {
            Ok(_) => Probe::Works,
            Err(e) => Probe::NoDescriptors(e),
        },
        (Some(0), None) => Probe::NoNotification(Errno::EBADF),
        (Some(1), Some(e)) => Probe::NoNotification(Errno::from_raw(e)),
        (Some(_), e) => Probe::NoFilter(Errno::from_raw(e.unwrap_or(0))),
        (None, _) => Probe::NoFilter(Errno::ECHILD),
    };
    // The end of file ends the child.
    drop(to_child);
    while waitpid(pid, None) == Err(Errno::EINTR) {}
    result
}

/// Writes two numbers, then waits for the end of file: 0 and the listener's number; 1 and an errno when only the
/// notification failed; 2 and an errno when no filter can be had.
fn child(program: &Program, to_parent: &OwnedFd, from_parent: &OwnedFd, to_child: &OwnedFd) -> ! {
    // SAFETY: closes our copy of the parent's end, which is not used afterwards in this process, so that the parent's
    // death is seen as an end of file.
    unsafe { libc::close(to_child.as_raw_fd()) };
    let listener = nix::sys::prctl::set_no_new_privs().and_then(|()| seccomp::install(program, Listener::Wanted));
    let (step, number) = match &listener {
        Ok(listener) => (0, listener.as_ref().map_or(-1, AsRawFd::as_raw_fd)),
        Err(e) => match seccomp::install(program, Listener::None) {
            Ok(_) => (1, *e as RawFd),
            Err(e) => (2, e as RawFd),
        },
    };
    for value in [step, number] {
        let _ = nix::unistd::write(to_parent, &value.to_ne_bytes());
    }
    let _ = nix::unistd::read(from_parent, &mut [0]);
    sys::exit_now(0)
}

fn read_number(fd: &OwnedFd) -> Option<i32> {
    let mut bytes = [0; 4];
    loop {
        match nix::unistd::read(fd, &mut bytes) {
            Ok(4) => return Some(i32::from_ne_bytes(bytes)),
            Err(Errno::EINTR) => {}
            Ok(_) | Err(_) => return None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_say_what_follows() {
        let e = Errno::EPERM;
        for (landlock, probe, want, missing) in [
            (Ok(7), Probe::Works, Level::Full, 0),
            (Ok(7), Probe::NoDescriptors(e), Level::Offline, 1),
            (Ok(7), Probe::NoNotification(Errno::EBUSY), Level::Offline, 1),
            (Ok(2), Probe::Works, Level::Partial, 2),
            (Ok(7), Probe::NoFilter(e), Level::Refused, 1),
            (Ok(7), Probe::Unknown(Errno::EAGAIN), Level::Refused, 1),
            (Err(Errno::ENOSYS), Probe::Works, Level::Refused, 1),
        ] {
            let report = report(landlock, probe, Err(io::ErrorKind::PermissionDenied.into()));
            assert_eq!((report.level, report.missing.len()), (want, missing), "{landlock:?} {probe:?}");
            assert!(report.limits.ends_with("(permission denied)"), "{}", report.limits);
        }
        assert_eq!(report(Ok(7), Probe::Works, Ok(())).limits, Quota::Group.sentence());
    }

    #[test]
    fn this_machine_is_probed_from_a_threaded_process() {
        let report = doctor();
        assert_eq!(report.landlock_abi, Version::running().map_or(0, |v| v.number));
        assert!(!report.descriptors || report.notification);
        assert!(!report.notification || report.filter);
    }
}
