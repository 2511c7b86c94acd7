//! Putting a filter in force for the calling thread and everything it starts.
#![expect(unsafe_code, reason = "seccomp(2) has no safe wrapper")]

use std::os::fd::{FromRawFd, OwnedFd, RawFd};

use nix::{
    errno::Errno,
    libc::{self, c_ulong, sock_fprog},
};

use super::Program;

/// Whether a filter's notifications are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Listener {
    /// The filter has none.
    None,
    /// Return a descriptor for them.
    Wanted,
}

/// Installs a filter. Needs `no_new_privs`.
pub(crate) fn install(program: &Program, listener: Listener) -> nix::Result<Option<OwnedFd>> {
    let len = u16::try_from(program.0.len()).map_err(|_| Errno::E2BIG)?;
    let prog = sock_fprog { len, filter: program.0.as_ptr().cast_mut() };
    match listener {
        Listener::None => load(&prog, 0).map(|_| None),
        Listener::Wanted => {
            // A call that is being answered is then not interrupted by signals; without it, Go and Python see spurious
            // EINTR and a second notification for one call. Linux 5.19; EINVAL before.
            let killable = libc::SECCOMP_FILTER_FLAG_NEW_LISTENER | libc::SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV;
            let fd = match load(&prog, killable) {
                Err(Errno::EINVAL) => load(&prog, libc::SECCOMP_FILTER_FLAG_NEW_LISTENER)?,
                other => other?,
            };
            // SAFETY: with NEW_LISTENER the call returns a descriptor that nobody else owns.
            Ok(Some(unsafe { OwnedFd::from_raw_fd(fd) }))
        }
    }
}

fn load(prog: &sock_fprog, flags: c_ulong) -> nix::Result<RawFd> {
    // SAFETY: `prog` and the instructions it points to, `len` of them, outlive the call, which only reads them.
    let result = unsafe {
        libc::syscall(
            libc::SYS_seccomp,
            libc::c_ulong::from(libc::SECCOMP_SET_MODE_FILTER),
            flags,
            std::ptr::from_ref(prog),
        )
    };
    RawFd::try_from(Errno::result(result)?).map_err(|_| Errno::EBADF)
}
