//! Connections through a named pipe: on Windows what a Unix socket is elsewhere.
//!
//! The names of pipes are everybody's. So the listener is the first of its name or none, only its user may open the pipe, and
//! both sides look who the other is: a listener at the process and its user, a caller at who owns the pipe. The system lets nobody
//! make another user an owner. Callers from other machines are turned away.
//!
//! *Absent:* handles of files do not travel along. The pid is that of the process that opened the pipe, and stays so when
//! that one gives its end away, as on Unix.

use std::{
    io,
    os::windows::io::OwnedHandle,
    time::{Duration, Instant},
};

use firedoor_model::{Digest, paths::Paths};
use serde::{Serialize, de::DeserializeOwned};
use windows_sys::Win32::Foundation::{ERROR_ACCESS_DENIED, ERROR_BROKEN_PIPE, ERROR_FILE_NOT_FOUND, ERROR_PIPE_BUSY};

use crate::{
    process::{self, Peer, Sid, own_user},
    wire::{self, Receiver, WireError},
};

mod system;

use system::{BUFFER, caller, connected, instance, is, opened, owner, read, turn, write};

/// How long a caller waits while the listener is between two connections.
const TURN: Duration = Duration::from_secs(5);

/// Why a pipe cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum PipeError {
    /// Somebody else listens there.
    #[error("another program listens on {0}: use it, or stop it first")]
    Taken(String),
    /// Nobody listens.
    #[error("nobody listens on {0}")]
    Nobody(String),
    /// Another user listens.
    #[error("{0} belongs to another user: nothing was said to it")]
    Foreign(String),
    /// The system refuses.
    #[error("{path}: {source}")]
    Io {
        /// The pipe.
        path: String,
        /// Why.
        source: io::Error,
    },
}

/// The name of the pipe of the engine with these directories.
pub fn name(paths: &Paths) -> String {
    let own = Digest::of(paths.runtime.as_os_str().as_encoded_bytes()).to_string();
    format!(r"\\.\pipe\firedoor-{own}")
}

/// Waits for callers.
pub struct Listener {
    name: String,
    user: Sid,
    /// What the next one connects to.
    free: OwnedHandle,
}

impl Listener {
    /// Begins to listen; nobody else may do so at this name.
    pub fn bind(name: &str) -> Result<Self, PipeError> {
        let io = |source| PipeError::Io { path: name.to_owned(), source };
        let user = own_user().map_err(io)?;
        match instance(name, &user, true) {
            Ok(free) => Ok(Self { name: name.to_owned(), user, free }),
            Err(e) if is(&e, ERROR_ACCESS_DENIED) || is(&e, ERROR_PIPE_BUSY) => Err(PipeError::Taken(name.to_owned())),
            Err(e) => Err(io(e)),
        }
    }

    /// Waits for a caller of the same user, at most `limit` (`None`: for ever). A limit that passes is an error of kind
    /// `TimedOut`. Others, and those that have gone again, are passed over.
    pub fn accept(&mut self, limit: Option<Duration>) -> io::Result<(Connection, Peer)> {
        let deadline = limit.map(|l| Instant::now() + l);
        loop {
            let left = deadline.map(|d| d.saturating_duration_since(Instant::now()));
            connected(&self.free, left)?;
            // Before this one is served, so that the name never vanishes.
            let next = instance(&self.name, &self.user, false)?;
            let pipe = std::mem::replace(&mut self.free, next);
            if let Ok(peer) = caller(&pipe)
                && process::user_of(peer.process.pid).is_ok_and(|user| user == self.user)
            {
                return Ok((Connection { pipe, receiver: Receiver::default() }, peer));
            }
        }
    }
}

/// Connects to whoever listens at this name, if that is the same user.
pub fn connect(name: &str) -> Result<Connection, PipeError> {
    let io = |source| PipeError::Io { path: name.to_owned(), source };
    let deadline = Instant::now() + TURN;
    let pipe = loop {
        match opened(name) {
            Ok(pipe) => break pipe,
            Err(e) if is(&e, ERROR_FILE_NOT_FOUND) => return Err(PipeError::Nobody(name.to_owned())),
            // Nobody but its user may open a pipe of ours: this is none.
            Err(e) if is(&e, ERROR_ACCESS_DENIED) => return Err(PipeError::Foreign(name.to_owned())),
            Err(e) if is(&e, ERROR_PIPE_BUSY) && Instant::now() < deadline => turn(name, deadline),
            Err(e) => return Err(io(e)),
        }
    };
    if owner(&pipe).map_err(io)? != own_user().map_err(io)? {
        return Err(PipeError::Foreign(name.to_owned()));
    }
    Ok(Connection { pipe, receiver: Receiver::default() })
}

/// One connection. Programs without an event loop use it.
pub struct Connection {
    pipe: OwnedHandle,
    receiver: Receiver,
}

impl Connection {
    /// Sends one message.
    pub fn send<T: Serialize>(&self, message: &T) -> Result<(), WireError> {
        let frame = wire::encode(message, 0)?;
        let mut sent = 0;
        while let Some(rest) = frame.get(sent..).filter(|rest| !rest.is_empty()) {
            sent += write(&self.pipe, rest)?;
        }
        Ok(())
    }

    /// Waits for the next message, at most `limit` (`None`: for ever). A limit that passes is an I/O error of kind
    /// `TimedOut`.
    pub fn receive<T: DeserializeOwned>(&mut self, limit: Option<Duration>) -> Result<T, WireError> {
        let deadline = limit.map(|l| Instant::now() + l);
        let mut chunk = vec![0; BUFFER as usize];
        loop {
            if let Some(frame) = self.receiver.next_frame()? {
                return frame.message();
            }
            let left = deadline.map(|d| d.saturating_duration_since(Instant::now()));
            match read(&self.pipe, &mut chunk, left) {
                Ok(0) => return Err(WireError::Closed),
                Ok(count) => self.receiver.take_in(chunk.get(..count).unwrap_or_default()),
                Err(e) if is(&e, ERROR_BROKEN_PIPE) => return Err(WireError::Closed),
                Err(e) => return Err(e.into()),
            }
        }
    }
}

#[cfg(test)]
mod tests;
