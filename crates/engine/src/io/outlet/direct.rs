//! Sockets and pipes, which the event loop writes itself.

use std::{
    fs::File,
    io,
    os::fd::{AsRawFd, OwnedFd},
    rc::Rc,
};

use nix::sys::socket::{MsgFlags, send};
use tokio::io::{Interest, unix::AsyncFd};

use crate::{
    io::{
        Remainder,
        direct::{Kind, Way, classify, register},
    },
    sys,
};

/// What is asked of the event loop of a descriptor that is not full. Linux tells of a reader that has gone whatever is asked; who asks for
/// room besides is woken by each message that a reader takes from a socket (`unix_write_space` in the kernel's net/unix).
const IDLE: Interest = if cfg!(target_os = "linux") { Interest::READABLE } else { Interest::WRITABLE };

/// What is written directly, or what a thread must write.
pub(super) enum Opened {
    Direct(Direct),
    File(File),
}

/// A socket or a pipe. Errors of kind `WouldBlock` say that it takes no more.
#[derive(Clone)]
pub(super) enum Direct {
    Socket(Rc<AsyncFd<OwnedFd>>),
    Pipe(Rc<AsyncFd<OwnedFd>>, Option<Rc<Remainder>>),
}

/// Takes a descriptor over.
pub(super) fn open(fd: OwnedFd, remainder: Option<Remainder>) -> io::Result<Opened> {
    Ok(match classify(fd, Way::Write)? {
        Kind::Socket(fd) => Opened::Direct(Direct::Socket(Rc::new(register(fd, IDLE)?))),
        Kind::Pipe(fd) => Opened::Direct(Direct::Pipe(Rc::new(register(fd, IDLE)?), remainder.map(Rc::new))),
        Kind::Other(file) => Opened::File(file),
    })
}

impl Direct {
    fn remainder(&self) -> Option<&Remainder> {
        match self {
            Self::Pipe(_, remainder) => remainder.as_deref(),
            Self::Socket(_) => None,
        }
    }

    fn fd(&self) -> &AsyncFd<OwnedFd> {
        match self {
            Self::Socket(fd) | Self::Pipe(fd, _) => fd,
        }
    }

    /// Whether a message that is cut off by the engine's death is completed by the next one.
    pub(super) fn completes(&self) -> bool {
        self.remainder().is_some()
    }

    /// Bytes of the remainder that the pipe has not taken.
    pub(super) fn left(&self) -> io::Result<usize> {
        Ok(self.remainder().map_or(Ok(0), Remainder::left)?)
    }

    /// Moves as many as the pipe takes, at most `left`.
    pub(super) fn pass_on(&self, left: usize) -> io::Result<usize> {
        Ok(self.remainder().map_or(Ok(0), |remainder| remainder.pass_on(self.fd().get_ref(), left))?)
    }

    /// Puts a message into the remainder.
    pub(super) fn begin(&self, bytes: &[u8]) -> io::Result<()> {
        Ok(self.remainder().map_or(Ok(()), |remainder| remainder.begin(bytes))?)
    }

    /// Writes once.
    pub(super) fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        Ok(match self {
            Self::Socket(fd) => send(fd.get_ref().as_raw_fd(), bytes, MsgFlags::MSG_DONTWAIT | sys::NO_SIGNAL),
            Self::Pipe(fd, _) => nix::unistd::write(fd.get_ref(), bytes),
        }?)
    }

    /// Asks for room, until what this gives is dropped.
    pub(super) fn full(&self) -> io::Result<Full> {
        Ok(Full(register(self.fd().get_ref().try_clone()?, Interest::WRITABLE)?))
    }

    /// Waits until it takes bytes again, where it is `full`, or until its reader has gone: then false.
    pub(super) async fn changed(&self, full: Option<&Full>) -> bool {
        match full {
            None => changed(self.fd()).await,
            Some(Full(room)) => tokio::select! {
                lives = changed(self.fd()) => lives,
                lives = changed(room) => lives,
            },
        }
    }
}

/// A descriptor that takes no more: the event loop is asked for room, of a copy.
pub(super) struct Full(AsyncFd<OwnedFd>);

/// Readiness is cleared each time, so that this returns on changes only.
async fn changed(fd: &AsyncFd<OwnedFd>) -> bool {
    match fd.writable().await {
        Ok(mut guard) => {
            let lives = !guard.ready().is_write_closed();
            if lives {
                guard.clear_ready();
            }
            lives
        }
        Err(_) => false,
    }
}
