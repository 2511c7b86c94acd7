//! macOS has no splice(2) and no files in memory, on which sessions rest. Nothing starts a server there yet
//! (`firedoor_sandbox::spawn`), so nobody gets here; whoever did would get an error.

use std::{os::fd::OwnedFd, path::Path};

use firedoor_ipc::process::Peer;
use nix::{errno::Errno, sys::socket::MsgFlags};

/// std ignores SIGPIPE from the program's start.
pub const NO_SIGNAL: MsgFlags = MsgFlags::empty();

/// Not available.
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

/// The screen of a Mac has no socket.
pub fn listener(_: &Path, _: bool) -> Option<Peer> {
    None
}
