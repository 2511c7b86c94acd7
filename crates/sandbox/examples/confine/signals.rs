//! Signals inside the tree, which must work, and to outside, which must not.
#![expect(unsafe_code, reason = "probes call the kernel directly")]

use std::io;

use nix::libc::{self, c_long};

pub fn probe(kind: &str, argument: &str) -> Option<io::Result<()>> {
    let outside: i32 = argument.parse().unwrap_or(1);
    Some(match kind {
        "kill" => call(libc::SYS_kill, [outside.into(), 0, 0, 0]),
        "killgroup" => call(libc::SYS_kill, [(-outside).into(), 0, 0, 0]),
        "tkill" => call(libc::SYS_tkill, [outside.into(), 0, 0, 0]),
        "tgkill" => call(libc::SYS_tgkill, [outside.into(), outside.into(), 0, 0]),
        "pidfdkill" => by_descriptor(outside, 0),
        "setown" => call(libc::SYS_fcntl, [0, 8, outside.into(), 0]),
        "ownsignals" => own(),
        _ => return None,
    })
}

fn call(number: c_long, args: [c_long; 4]) -> io::Result<()> {
    // SAFETY: integers, and null pointers.
    let result = unsafe { libc::syscall(number, args[0], args[1], args[2], args[3]) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

fn by_descriptor(pid: i32, signal: c_long) -> io::Result<()> {
    // SAFETY: integers only.
    let held = unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) };
    if held < 0 {
        return Err(io::Error::last_os_error());
    }
    call(libc::SYS_pidfd_send_signal, [held, signal, 0, 0])
}

/// Signals a process.
type Way = fn(i32) -> io::Result<()>;

/// Each way to end a child, and signals to ourselves.
fn own() -> io::Result<()> {
    let ways: [(&str, Way); 5] = [
        ("kill", |pid| call(libc::SYS_kill, [pid.into(), 15, 0, 0])),
        ("group", |pid| call(libc::SYS_kill, [(-pid).into(), 15, 0, 0])),
        ("tgkill", |pid| call(libc::SYS_tgkill, [pid.into(), pid.into(), 15, 0])),
        ("tkill", |pid| call(libc::SYS_tkill, [pid.into(), 15, 0, 0])),
        ("pidfd", |pid| by_descriptor(pid, 15)),
    ];
    for (name, way) in ways {
        let told = |e: io::Error| io::Error::other(format!("{name}: {e}"));
        let pid = child()?;
        way(pid).map_err(told)?;
        let mut status = 0;
        // SAFETY: the status is valid for writing.
        unsafe { libc::waitpid(pid, &raw mut status, 0) };
        if !libc::WIFSIGNALED(status) || libc::WTERMSIG(status) != 15 {
            return Err(io::Error::other(format!("{name}: status {status}")));
        }
    }
    // SAFETY: the signal is ignored.
    unsafe { libc::signal(libc::SIGUSR1, libc::SIG_IGN) };
    // SAFETY: no arguments, or integers.
    let (own, raised) = unsafe { (libc::getpid(), libc::raise(libc::SIGUSR1)) };
    if raised != 0 {
        return Err(io::Error::last_os_error());
    }
    call(libc::SYS_kill, [own.into(), libc::SIGUSR1.into(), 0, 0])?;
    // The own group, and everybody: only the tree is met.
    call(libc::SYS_kill, [0, 0, 0, 0])
}

/// A child in a group of its own that waits.
fn child() -> io::Result<i32> {
    // SAFETY: the child makes system calls only.
    match unsafe { libc::fork() } {
        0 => loop {
            // SAFETY: no arguments.
            unsafe { libc::pause() };
        },
        pid if pid > 0 => {
            // SAFETY: integers only.
            unsafe { libc::setpgid(pid, pid) };
            Ok(pid)
        }
        _ => Err(io::Error::last_os_error()),
    }
}
