//! Whose priority and processors a server may change: those of its own tree.
//!
//! Landlock keeps nobody from slowing another process of the user down, and one that gets no time any more is as good as
//! stopped: the guardian, which then judges nothing, and the engine. What means the calling thread itself (0) does not come here.
//!
//! The call goes on: whom it means lies in registers. Between the look and the call the number would have to be given to
//! another process, for which all others have to be given out first.

use nix::{errno::Errno, libc, unistd::Pid};

use crate::linux::{
    network::caller::Caller,
    signals::{is_ours, process_of},
};

/// Whether a call may go on, if it is one that changes priorities. `None` for other calls.
pub(crate) fn judge(caller: &Caller<'_>, number: i64, args: [u64; 6]) -> Option<nix::Result<()>> {
    let target = target(number, args)?;
    Some(target.and_then(|thread| {
        let own = process_of(caller.thread).ok_or(Errno::ESRCH)?;
        // The number was the caller's while we looked.
        caller.still_waits()?;
        let process = process_of(thread).ok_or(Errno::ESRCH)?;
        if process == own || is_ours(process) { Ok(()) } else { Err(Errno::EPERM) }
    }))
}

/// The thread that a call means.
fn target(number: i64, [a, b, ..]: [u64; 6]) -> Option<nix::Result<Pid>> {
    let who = match number {
        libc::SYS_setpriority | libc::SYS_ioprio_set => b,
        libc::SYS_sched_setaffinity
        | libc::SYS_sched_setattr
        | libc::SYS_sched_setparam
        | libc::SYS_sched_setscheduler => a,
        _ => return None,
    };
    // The kernel takes it as `int`.
    let who = ((who & 0xffff_ffff) as u32).cast_signed();
    Some(if who > 0 { Ok(Pid::from_raw(who)) } else { Err(Errno::EINVAL) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_read() {
        let of = |number, args: [i32; 2]| {
            let args = args.map(|n| u64::from(n.cast_unsigned()));
            target(number, [args[0], args[1], 0, 0, 0, 0])
        };
        for (number, args, want) in [
            (libc::SYS_setpriority, [0, 7], Some(Ok(Pid::from_raw(7)))),
            (libc::SYS_ioprio_set, [1, 7], Some(Ok(Pid::from_raw(7)))),
            (libc::SYS_sched_setaffinity, [7, 8], Some(Ok(Pid::from_raw(7)))),
            (libc::SYS_sched_setattr, [7, 8], Some(Ok(Pid::from_raw(7)))),
            (libc::SYS_sched_setparam, [7, 8], Some(Ok(Pid::from_raw(7)))),
            (libc::SYS_sched_setscheduler, [-7, 8], Some(Err(Errno::EINVAL))),
            (libc::SYS_kill, [7, 9], None),
        ] {
            assert_eq!(of(number, args), want, "{number} {args:?}");
        }
    }
}
