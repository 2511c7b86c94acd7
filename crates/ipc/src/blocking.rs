//! A connection for programs without an event loop: the shim and the CLI.

use std::{
    io,
    os::{
        fd::{AsFd, BorrowedFd, OwnedFd},
        unix::net::UnixStream,
    },
    time::{Duration, Instant},
};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use serde::{Serialize, de::DeserializeOwned};

use crate::wire::{self, Receiver, WireError};

/// One connection to the engine.
pub struct Connection {
    socket: UnixStream,
    receiver: Receiver,
}

impl Connection {
    /// Wraps a connected socket.
    pub fn new(socket: UnixStream) -> Self {
        Self { socket, receiver: Receiver::default() }
    }

    /// Sends one message with descriptors.
    pub fn send<T: Serialize>(&self, message: &T, fds: &[BorrowedFd<'_>]) -> Result<(), WireError> {
        let frame = wire::encode(message, fds.len())?;
        let mut sent = wire::send(self.socket.as_fd(), &frame, fds)?;
        while let Some(rest) = frame.get(sent..).filter(|r| !r.is_empty()) {
            sent += wire::send(self.socket.as_fd(), rest, &[])?;
        }
        Ok(())
    }

    /// Waits for the next message, at most `limit` (`None`: for ever). A limit that passes is an I/O error of kind
    /// `TimedOut`.
    pub fn receive<T: DeserializeOwned>(&mut self, limit: Option<Duration>) -> Result<(T, Vec<OwnedFd>), WireError> {
        let deadline = limit.map(|l| Instant::now() + l);
        loop {
            if let Some(frame) = self.receiver.next_frame()? {
                let message = frame.message()?;
                return Ok((message, frame.fds));
            }
            let wait = deadline.map(|d| d.saturating_duration_since(Instant::now()));
            if !readable(self.socket.as_fd(), wait)? {
                return Err(io::Error::from(io::ErrorKind::TimedOut).into());
            }
            if self.receiver.receive(self.socket.as_fd())? == 0 {
                return Err(WireError::Closed);
            }
        }
    }

    /// A message that has already arrived in full; reads what is there at most once, when the socket is readable.
    pub fn try_receive<T: DeserializeOwned>(&mut self) -> Result<Option<T>, WireError> {
        if let Some(frame) = self.receiver.next_frame()? {
            return frame.message().map(Some);
        }
        if !readable(self.socket.as_fd(), Some(Duration::ZERO))? {
            return Ok(None);
        }
        if self.receiver.receive(self.socket.as_fd())? == 0 {
            return Err(WireError::Closed);
        }
        self.receiver.next_frame()?.map(|f| f.message()).transpose()
    }
}

impl AsFd for Connection {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Waits until `fd` can be read or hung up.
fn readable(fd: BorrowedFd<'_>, wait: Option<Duration>) -> io::Result<bool> {
    let timeout = match wait {
        None => PollTimeout::NONE,
        // Rounded up, so that a wait of less than a millisecond does not spin.
        Some(w) => PollTimeout::try_from(w.as_micros().div_ceil(1000)).unwrap_or(PollTimeout::MAX),
    };
    loop {
        match poll(&mut [PollFd::new(fd, PollFlags::POLLIN)], timeout) {
            Err(nix::errno::Errno::EINTR) => {}
            other => return Ok(other? > 0),
        }
    }
}
