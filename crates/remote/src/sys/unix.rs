//! Unix: pipes that do not block, and signals.

use std::{
    fs::File,
    io::{self, Write as _},
    os::fd::{AsFd as _, OwnedFd},
};

use tokio::{
    net::unix::pipe,
    signal::unix::{Signal, SignalKind, signal},
};

/// An end of a pipe.
pub type End = OwnedFd;
/// What messages are read from.
pub type Reader = pipe::Receiver;

/// Reads from one.
pub fn reader(end: End) -> io::Result<Reader> {
    pipe::Receiver::from_owned_fd(end)
}

/// Writes to one.
pub fn writer(end: End) -> io::Result<Writer> {
    Ok(Writer(pipe::Sender::from_owned_fd(end)?.into_nonblocking_fd()?.into()))
}

/// What messages are written to. The event loop knows of it only while it is full: a reader that splices, as the engine does, would wake
/// this program once more for each message (`wakeup_pipe_writers` in the kernel's fs/splice.c).
pub struct Writer(File);

impl Writer {
    /// Writes what it takes now.
    pub fn try_write(&self, bytes: &[u8]) -> io::Result<usize> {
        (&self.0).write(bytes)
    }

    /// Waits until it takes something.
    pub async fn writable(&self) -> io::Result<()> {
        pipe::Sender::from_owned_fd(self.0.try_clone()?.into())?.writable().await
    }
}

/// What the session says.
pub fn stdin() -> io::Result<End> {
    io::stdin().as_fd().try_clone_to_owned()
}

/// What the session hears.
pub fn stdout() -> io::Result<End> {
    io::stdout().as_fd().try_clone_to_owned()
}

/// What asks this program to end.
pub struct Ends(Signal, Signal);

impl Ends {
    /// From now on they do nothing else.
    pub fn new() -> io::Result<Self> {
        Ok(Self(signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?))
    }

    /// Waits for one.
    pub async fn asked(&mut self) {
        tokio::select! {
            _ = self.0.recv() => {}
            _ = self.1.recv() => {}
        }
    }
}
