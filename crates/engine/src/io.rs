//! Bytes in and out of descriptors of every kind, without touching flags that we share with the client or the server.
//!
//! `O_NONBLOCK` belongs to the open file description, which the other process may share: Node's children and parents
//! share socketpairs, shells share terminals. So sockets are used with `MSG_DONTWAIT`, pipes are opened again through
//! /proc/self/fd (a description of our own), and everything else is served by a thread.

mod inlet;
mod lines;
mod outlet;
mod remainder;

pub use inlet::{Inlet, Log};
pub use lines::{Line, Lines};
pub use outlet::Outlet;
pub use remainder::Remainder;

use std::{
    fs::{File, OpenOptions},
    io,
    os::{
        fd::{AsRawFd, OwnedFd},
        unix::fs::{FileTypeExt, OpenOptionsExt},
    },
};

use tokio::io::{Interest, unix::AsyncFd};

/// How a descriptor is served.
enum Kind {
    /// With `MSG_DONTWAIT`.
    Socket(OwnedFd),
    /// A pipe's description of our own, non-blocking.
    Pipe(OwnedFd),
    /// Terminal, file, device, or a pipe that cannot be opened again: by a thread.
    Other(File),
}

/// Which way bytes flow, seen from us.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    Read,
    Write,
}

fn classify(fd: OwnedFd, way: Way) -> io::Result<Kind> {
    let file = File::from(fd);
    let kind = file.metadata()?.file_type();
    if kind.is_socket() {
        return Ok(Kind::Socket(file.into()));
    }
    if kind.is_fifo() {
        let again = OpenOptions::new()
            .read(way == Way::Read)
            .write(way == Way::Write)
            .custom_flags(nix::libc::O_NONBLOCK | nix::libc::O_CLOEXEC)
            .open(format!("/proc/self/fd/{}", file.as_raw_fd()));
        // It fails for another user's pipe (sudo), without /proc, and when the reader has gone already (ENXIO): the
        // thread then serves it, or finds out on its first write.
        if let Ok(again) = again {
            return Ok(Kind::Pipe(again.into()));
        }
    }
    Ok(Kind::Other(file))
}

#[expect(
    deprecated,
    reason = "the successor is unsafe because a type may change its descriptor; an OwnedFd never does, and is owned here"
)]
fn register(fd: OwnedFd, interest: Interest) -> io::Result<AsyncFd<OwnedFd>> {
    AsyncFd::with_interest(fd, interest)
}
