//! What a path means for a thread that waits for our answer: resolved once, to an open file and to where that file lies.
//!
//! Nothing is followed that means something else to us than to the caller: magic links (`/proc/PID/fd/N`, `cwd`, `root`)
//! are refused, and `/proc/self` is our own, so a caller of these functions acts on a result only where it knows the place.

use std::{
    ffi::CString,
    fs,
    os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd},
    path::{Path, PathBuf},
};

use nix::{
    errno::Errno,
    fcntl::{OFlag, open},
    libc,
    sys::stat::Mode,
    unistd::Pid,
};

use crate::{network::caller::Caller, sys};

/// A file that was opened for its path only, and where it lies.
#[derive(Debug)]
pub(crate) struct Resolved {
    pub fd: OwnedFd,
    /// Canonical at the moment of the look.
    pub path: PathBuf,
}

/// What a path names for a caller, where relative ones begin at `base`, a descriptor of the caller's or `AT_FDCWD`.
pub(crate) fn resolve(caller: &Caller<'_>, base: i32, path: &[u8], follow: bool) -> nix::Result<Resolved> {
    resolve_from(start(caller, base, path)?.as_fd(), path, follow)
}

/// Where a path begins for a caller.
pub(crate) fn start(caller: &Caller<'_>, base: i32, path: &[u8]) -> nix::Result<OwnedFd> {
    if path.starts_with(b"/") || base == libc::AT_FDCWD {
        start_of(caller.thread, path)
    } else {
        caller.descriptor(base)
    }
}

/// Where a path begins for a thread: at its root or in its working directory.
pub(crate) fn start_of(thread: Pid, path: &[u8]) -> nix::Result<OwnedFd> {
    let from = if path.starts_with(b"/") { "root" } else { "cwd" };
    let flags = OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
    open(format!("/proc/{thread}/{from}").as_str(), flags, Mode::empty())
}

/// What a path names below a directory, its leading slashes left out; at the end of it a symbolic link is followed or not.
pub(crate) fn resolve_from(start: BorrowedFd<'_>, path: &[u8], follow: bool) -> nix::Result<Resolved> {
    if path.is_empty() {
        return Err(Errno::ENOENT);
    }
    let skip = path.iter().take_while(|b| **b == b'/').count();
    let rest = path.get(skip..).filter(|r| !r.is_empty()).unwrap_or(b".");
    let rest = CString::new(rest).map_err(|_| Errno::EINVAL)?;
    let fd = sys::open_resolved(start, &rest, follow)?;
    let path = path_of(fd.as_fd())?;
    Ok(Resolved { fd, path })
}

/// Where an open file lies now. For what has no place, such as a pipe, this is no absolute path.
pub(crate) fn path_of(file: BorrowedFd<'_>) -> nix::Result<PathBuf> {
    fs::read_link(own(file)).map_err(|_| Errno::EACCES)
}

/// The path by which this process reaches exactly this open file.
pub(crate) fn own(file: BorrowedFd<'_>) -> PathBuf {
    Path::new("/proc/self/fd").join(file.as_raw_fd().to_string())
}
