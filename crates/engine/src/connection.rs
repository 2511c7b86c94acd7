//! A connection to a shim or a command, in the event loop.

use std::{
    io,
    os::fd::{AsFd, OwnedFd},
    rc::Rc,
};

use firedoor_ipc::wire::{self, Receiver, WireError};
use serde::{Serialize, de::DeserializeOwned};
use tokio::{io::Interest, net::UnixStream, sync::Mutex};

/// The receiving half.
pub struct Incoming {
    socket: Rc<UnixStream>,
    receiver: Receiver,
}

/// The sending half. Clones send whole messages, one after the other.
#[derive(Clone)]
pub struct Outgoing {
    socket: Rc<UnixStream>,
    turn: Rc<Mutex<()>>,
}

/// Splits a socket.
pub fn split(socket: UnixStream) -> (Incoming, Outgoing) {
    let socket = Rc::new(socket);
    (Incoming { socket: socket.clone(), receiver: Receiver::default() }, Outgoing { socket, turn: Rc::default() })
}

impl Incoming {
    /// The next message with its descriptors.
    pub async fn receive<T: DeserializeOwned>(&mut self) -> Result<(T, Vec<OwnedFd>), WireError> {
        loop {
            if let Some(frame) = self.receiver.next_frame()? {
                return Ok((frame.message()?, frame.fds));
            }
            self.socket.readable().await?;
            match self.socket.try_io(Interest::READABLE, || self.receiver.receive(self.socket.as_fd())) {
                Ok(0) => return Err(WireError::Closed),
                Ok(_) => {}
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => {}
                Err(e) => return Err(e.into()),
            }
        }
    }

    /// Waits until the other side has closed. What it sends meanwhile is dropped.
    pub async fn closed(&mut self) {
        while self.receive::<serde::de::IgnoredAny>().await.is_ok() {}
    }
}

impl Outgoing {
    /// Sends one message.
    pub async fn send<T: Serialize>(&self, message: &T) -> Result<(), WireError> {
        let frame = wire::encode(message, 0)?;
        let _turn = self.turn.lock().await;
        let mut sent = 0;
        while let Some(rest) = frame.get(sent..).filter(|r| !r.is_empty()) {
            self.socket.writable().await?;
            match self.socket.try_io(Interest::WRITABLE, || wire::send(self.socket.as_fd(), rest, &[])) {
                Ok(count) => sent += count,
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => {}
                Err(e) => return Err(e.into()),
            }
        }
        Ok(())
    }
}
