//! Linux's calls.

use std::{
    os::{
        fd::{AsFd, AsRawFd, OwnedFd},
        unix::ffi::OsStrExt,
    },
    path::Path,
};

use firedoor_ipc::process::{self, Peer, Process};
use nix::{
    fcntl::{FallocateFlags, FcntlArg, SpliceFFlags, fallocate, fcntl},
    sys::socket::{AddressFamily, MsgFlags, SockFlag, SockType, UnixAddr, connect, getpeername, socket},
};

/// What was read can be kept where the next engine finds it.
pub const LOGS: bool = true;

/// A stream whose other end is closed is an error and no signal.
pub const NO_SIGNAL: MsgFlags = MsgFlags::MSG_NOSIGNAL;

/// Moves at most `length` bytes in the kernel, without waiting (splice(2)). One end is a pipe.
pub fn splice(from: &OwnedFd, to: &OwnedFd, length: usize) -> nix::Result<usize> {
    nix::fcntl::splice(from, None, to, None, length, SpliceFFlags::SPLICE_F_NONBLOCK)
}

/// Gives back the memory of a part of a file in memory, which then reads as zeros.
pub fn punch(file: &OwnedFd, at: i64, length: i64) -> nix::Result<()> {
    fallocate(file, FallocateFlags::FALLOC_FL_PUNCH_HOLE | FallocateFlags::FALLOC_FL_KEEP_SIZE, at, length)
}

/// Whether this is a file in memory: only those have seals (fcntl(2)).
pub fn in_memory(file: &OwnedFd) -> bool {
    fcntl(file, FcntlArg::F_GET_SEALS).is_ok()
}

/// The processes behind screens without sockets: here every screen has one.
pub fn screens() -> Vec<Process> {
    Vec::new()
}

/// Who listens on a Unix socket that was made under this path, or under this abstract name. Not under another path, such as a
/// link to it. Waits for nobody.
pub fn listener(path: &Path, in_abstract: bool) -> Option<Peer> {
    let address = if in_abstract { UnixAddr::new_abstract(path.as_os_str().as_bytes()) } else { UnixAddr::new(path) };
    let flags = SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC;
    let socket = socket(AddressFamily::Unix, SockType::Stream, flags, None).ok()?;
    connect(socket.as_raw_fd(), &address.ok()?).ok()?;
    // unix(7): the address that the listener bound, whatever its file is called by now.
    let bound: UnixAddr = getpeername(socket.as_raw_fd()).ok()?;
    if !in_abstract && bound.path() != Some(path) {
        return None;
    }
    process::peer(socket.as_fd()).ok()
}
