//! Linux's calls.

use std::os::fd::OwnedFd;

use nix::{
    fcntl::{FallocateFlags, FcntlArg, SpliceFFlags, fallocate, fcntl},
    sys::socket::MsgFlags,
};

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
