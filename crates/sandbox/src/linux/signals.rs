//! Signals of the server where Landlock does not keep them inside the sandbox (before Linux 6.12): judged by the guardian.
//!
//! What a process sends itself goes on: whom that means lies in registers, and the process cannot end and be replaced while it
//! is calling. Anything else is sent by the guardian, through a descriptor of the process (`pidfd_open(2)`) that was
//! taken before the look at its ancestors, so that it means the process that was looked at.

use std::{
    fs,
    os::fd::{AsFd, AsRawFd, OwnedFd},
};

use nix::{
    errno::Errno,
    libc,
    unistd::{Pid, getpgid, getpgrp},
};

use crate::linux::{
    network::caller::Caller,
    procfs::{self, Stat},
    sys,
};

/// Processes that one call may reach.
const MAX_REACHED: usize = 65_536;
/// Longest chain of parents that is followed.
const MAX_DEPTH: usize = 65_536;

/// What becomes of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sent {
    /// It was done.
    Here,
    /// The caller does it itself.
    ByCaller,
}

/// Whom a call means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Target {
    Process(Pid),
    /// A thread, and its process where the call names it.
    Thread(Pid, Option<Pid>),
    /// A process group; that of the caller when absent.
    Group(Option<Pid>),
    Everybody,
    /// The caller's descriptor of a process.
    Descriptor(i32),
    /// With details that lie in memory: to the caller's own process only.
    Detailed(Pid),
}

/// Sends a signal, if this is a call that does. `None` for other calls.
pub(crate) fn send(caller: &Caller<'_>, number: i64, args: [u64; 6]) -> Option<nix::Result<Sent>> {
    let (target, signal) = decode(number, args)?;
    Some(target.and_then(|target| perform(caller, target, signal)))
}

fn decode(number: i64, [a, b, c, d, ..]: [u64; 6]) -> Option<(nix::Result<Target>, i32)> {
    let int = |n: u64| ((n & 0xffff_ffff) as u32).cast_signed();
    let one = |n: u64, as_target: fn(Pid) -> Target| {
        let pid = int(n);
        if pid > 0 { Ok(as_target(Pid::from_raw(pid))) } else { Err(Errno::EINVAL) }
    };
    Some(match number {
        libc::SYS_kill => {
            let target = match int(a) {
                0 => Ok(Target::Group(None)),
                -1 => Ok(Target::Everybody),
                i32::MIN => Err(Errno::ESRCH),
                pid if pid < 0 => Ok(Target::Group(Some(Pid::from_raw(-pid)))),
                pid => Ok(Target::Process(Pid::from_raw(pid))),
            };
            (target, int(b))
        }
        libc::SYS_tkill => (one(a, |tid| Target::Thread(tid, None)), int(b)),
        libc::SYS_tgkill => {
            let target = one(a, Target::Process).and_then(|_| one(b, |tid| Target::Thread(tid, None)));
            let process = Pid::from_raw(int(a));
            let target =
                target.map(|t| if let Target::Thread(tid, _) = t { Target::Thread(tid, Some(process)) } else { t });
            (target, int(c))
        }
        libc::SYS_pidfd_send_signal => {
            // Flags choose a whole group (Linux 6.9), and details may lie in memory.
            let plain = c == 0 && d & 0xffff_ffff == 0;
            (if plain { Ok(Target::Descriptor(int(a))) } else { Err(Errno::EINVAL) }, int(b))
        }
        libc::SYS_rt_sigqueueinfo => (one(a, Target::Detailed), int(b)),
        libc::SYS_rt_tgsigqueueinfo => (one(a, Target::Detailed), int(c)),
        _ => return None,
    })
}

fn perform(caller: &Caller<'_>, target: Target, signal: i32) -> nix::Result<Sent> {
    let own = process_of(caller.thread).ok_or(Errno::ESRCH)?;
    // The number was the caller's while we looked.
    caller.still_waits()?;
    match target {
        Target::Process(pid) | Target::Thread(_, Some(pid)) | Target::Detailed(pid) if pid == own => Ok(Sent::ByCaller),
        Target::Thread(tid, None) if process_of(tid) == Some(own) && tid == caller.thread => Ok(Sent::ByCaller),
        Target::Detailed(_) => Err(Errno::EPERM),
        Target::Process(pid) => to_process(&sys::pidfd_open(pid)?, pid, signal),
        Target::Thread(tid, process) => {
            let process = process.or_else(|| process_of(tid)).ok_or(Errno::ESRCH)?;
            let held = sys::pidfd_open(process)?;
            if !is_ours(process) {
                return Err(Errno::EPERM);
            }
            // The process is the one that was looked at, and the kernel checks that the thread is one of it.
            sys::signal_pidfd(held.as_fd(), 0)?;
            sys::signal_thread(process, tid, signal).map(|()| Sent::Here)
        }
        Target::Descriptor(fd) => {
            let held = caller.descriptor(fd)?;
            let pid = named_by(&held).ok_or(Errno::EBADF)?;
            to_process(&held, pid, signal)
        }
        Target::Group(group) => to_group(caller, group, signal),
        Target::Everybody => {
            let mut reached = false;
            for pid in procfs::own_descendants(MAX_REACHED).into_iter().filter(|pid| *pid != own) {
                let sent = sys::pidfd_open(pid).and_then(|held| to_process(&held, pid, signal));
                reached |= sent.is_ok();
            }
            if reached { Ok(Sent::Here) } else { Err(Errno::ESRCH) }
        }
    }
}

fn to_process(held: &OwnedFd, pid: Pid, signal: i32) -> nix::Result<Sent> {
    if !is_ours(pid) {
        return Err(Errno::EPERM);
    }
    sys::signal_pidfd(held.as_fd(), signal).map(|()| Sent::Here)
}

/// A group of the tree holds only the tree: a process joins groups of its own session only, and the guardian's session has no
/// member but the guardian and the tree. Its own group may have been joined, so that one is not signalled.
fn to_group(caller: &Caller<'_>, group: Option<Pid>, signal: i32) -> nix::Result<Sent> {
    let own = getpgid(Some(caller.thread))?;
    caller.still_waits()?;
    let group = group.unwrap_or(own);
    if group == getpgrp() || group.as_raw() <= 1 {
        return Err(Errno::EPERM);
    }
    let is_member = |pid: &Pid| getpgid(Some(*pid)) == Ok(group);
    if group != own && !procfs::own_descendants(MAX_REACHED).iter().any(is_member) {
        return Err(Errno::EPERM);
    }
    sys::signal_group(group, signal).map(|()| Sent::Here)
}

/// Whether a process is in the tree: the chain of its parents leads to us. A parent that began after its child is another
/// process that has got the pid meanwhile.
pub(super) fn is_ours(pid: Pid) -> bool {
    let own = Pid::this();
    let mut at = pid;
    let mut younger = u64::MAX;
    for _ in 0..MAX_DEPTH {
        if at == own {
            return at != pid;
        }
        match Stat::of(at) {
            Some(stat) if stat.started <= younger && stat.parent.as_raw() > 1 => {
                younger = stat.started;
                at = stat.parent;
            }
            Some(_) | None => return false,
        }
    }
    false
}

/// The process of a thread.
pub(super) fn process_of(thread: Pid) -> Option<Pid> {
    procfs::status_field(thread, "Tgid")?.parse().ok().map(Pid::from_raw)
}

/// The process that a descriptor means (`Pid` in fdinfo, proc(5)); none when it has ended.
fn named_by(held: &OwnedFd) -> Option<Pid> {
    let text = fs::read_to_string(format!("/proc/self/fdinfo/{}", held.as_raw_fd())).ok()?;
    let pid: i32 = text.lines().find_map(|l| l.strip_prefix("Pid:"))?.trim().parse().ok()?;
    (pid > 0).then(|| Pid::from_raw(pid))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_read() {
        let of = |number, args: [i32; 4]| {
            let args = args.map(|n| u64::from(n.cast_unsigned()));
            decode(number, [args[0], args[1], args[2], args[3], 0, 0])
        };
        let pid = Pid::from_raw;
        for (number, args, want) in [
            (libc::SYS_kill, [7, 9, 0, 0], Some((Ok(Target::Process(pid(7))), 9))),
            (libc::SYS_kill, [0, 9, 0, 0], Some((Ok(Target::Group(None)), 9))),
            (libc::SYS_kill, [-7, 9, 0, 0], Some((Ok(Target::Group(Some(pid(7)))), 9))),
            (libc::SYS_kill, [-1, 9, 0, 0], Some((Ok(Target::Everybody), 9))),
            (libc::SYS_kill, [i32::MIN, 9, 0, 0], Some((Err(Errno::ESRCH), 9))),
            (libc::SYS_tkill, [7, 9, 0, 0], Some((Ok(Target::Thread(pid(7), None)), 9))),
            (libc::SYS_tkill, [-7, 9, 0, 0], Some((Err(Errno::EINVAL), 9))),
            (libc::SYS_tgkill, [7, 8, 9, 0], Some((Ok(Target::Thread(pid(8), Some(pid(7)))), 9))),
            (libc::SYS_tgkill, [0, 8, 9, 0], Some((Err(Errno::EINVAL), 9))),
            (libc::SYS_pidfd_send_signal, [3, 9, 0, 0], Some((Ok(Target::Descriptor(3)), 9))),
            (libc::SYS_pidfd_send_signal, [3, 9, 0, 4], Some((Err(Errno::EINVAL), 9))),
            (libc::SYS_pidfd_send_signal, [3, 9, 1, 0], Some((Err(Errno::EINVAL), 9))),
            (libc::SYS_rt_sigqueueinfo, [7, 9, 1, 0], Some((Ok(Target::Detailed(pid(7))), 9))),
            (libc::SYS_rt_tgsigqueueinfo, [7, 7, 9, 1], Some((Ok(Target::Detailed(pid(7))), 9))),
            (libc::SYS_connect, [3, 0, 0, 0], None),
        ] {
            assert_eq!(of(number, args), want, "{number} {args:?}");
        }
    }

    #[test]
    fn only_descendants_are_ours() {
        let mut child = std::process::Command::new("/bin/sh")
            .args(["-c", "read x"])
            .stdin(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let pid = Pid::from_raw(child.id().try_into().unwrap());
        assert!(is_ours(pid));
        let held = sys::pidfd_open(pid).unwrap();
        assert_eq!(named_by(&held), Some(pid));
        for other in [Pid::this(), Pid::parent(), Pid::from_raw(1), Pid::from_raw(i32::MAX)] {
            assert!(!is_ours(other), "{other}");
        }
        drop(child.stdin.take());
        child.wait().unwrap();
        assert_eq!((is_ours(pid), named_by(&held)), (false, None));
        assert_eq!(process_of(Pid::this()), Some(Pid::this()));
    }
}
