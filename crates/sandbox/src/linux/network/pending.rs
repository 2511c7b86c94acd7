//! Calls that wait for the network. Their callers wait for our answer; our loop does not.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use nix::{errno::Errno, poll::PollFlags};

use super::{answer, caller::Socket, send::Outgoing};
use crate::linux::sys;

/// Calls that may wait at once.
const MAX_PENDING: usize = 256;
/// Bytes that may wait to be sent.
const MAX_BYTES: usize = 16 << 20;

/// Descriptors that calls which wait may hold. With those of one call that does not wait (`SCM_MAX_FD`, 253) and the sockets
/// that were bound, they stay below what the guardian may open.
const MAX_DESCRIPTORS: usize = 512;

/// What is to be done when the socket is ready.
pub(crate) enum Work {
    /// Connecting to this address is under way.
    Connect { socket: Socket, to: Vec<u8> },
    /// This could not be sent yet.
    Send(Box<Outgoing>),
}

struct Call {
    id: u64,
    work: Work,
}

/// All of one server.
#[derive(Default)]
pub(crate) struct Pending(Vec<Call>);

impl Work {
    fn socket(&self) -> &OwnedFd {
        match self {
            Self::Connect { socket, .. } => &socket.fd,
            Self::Send(outgoing) => outgoing.socket(),
        }
    }

    fn bytes(&self) -> usize {
        match self {
            Self::Connect { .. } => 0,
            Self::Send(outgoing) => outgoing.bytes(),
        }
    }

    fn descriptors(&self) -> usize {
        match self {
            Self::Connect { .. } => 1,
            Self::Send(outgoing) => outgoing.descriptors(),
        }
    }

    /// `None`: not yet.
    fn go_on(&mut self) -> Option<nix::Result<i64>> {
        match self {
            // Connecting again tells how the first attempt ended, and marks the socket as connected.
            Self::Connect { socket, to } => match socket.connect(to) {
                Err(Errno::EALREADY | Errno::EINPROGRESS) => None,
                Ok(()) | Err(Errno::EISCONN) => Some(Ok(0)),
                Err(errno) => Some(Err(errno)),
            },
            Self::Send(outgoing) => outgoing.send(),
        }
    }
}

impl Pending {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Sockets to be watched for writing, in the order that [`Self::advance`] counts them.
    pub fn watched(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.0.iter().map(|c| c.work.socket().as_fd())
    }

    /// Keeps a call until its socket is ready.
    pub fn keep(&mut self, listener: BorrowedFd<'_>, id: u64, work: Work) -> nix::Result<()> {
        let full = |all: &[Call]| {
            let sum = |of: fn(&Work) -> usize| all.iter().map(|c| of(&c.work)).sum::<usize>() + of(&work);
            all.len() >= MAX_PENDING || sum(Work::bytes) > MAX_BYTES || sum(Work::descriptors) > MAX_DESCRIPTORS
        };
        if full(&self.0) {
            self.forget_the_dead(listener);
        }
        if full(&self.0) {
            return Err(Errno::EAGAIN);
        }
        self.0.push(Call { id, work });
        Ok(())
    }

    /// Goes on with the calls whose sockets are ready, and drops those whose callers have died.
    pub fn advance(&mut self, listener: BorrowedFd<'_>, ready: &[PollFlags]) {
        if ready.iter().all(|r| r.is_empty()) {
            // Nothing is ready: this is the time for a look at who still waits.
            return self.forget_the_dead(listener);
        }
        let mut ready = ready.iter();
        self.0.retain_mut(|call| {
            if ready.next().is_none_or(|r| r.is_empty()) {
                return true;
            }
            // What a dead caller began must not go on.
            if sys::still_waits(listener, call.id).is_err() {
                return false;
            }
            match call.work.go_on() {
                None => true,
                Some(result) => {
                    answer(listener, call.id, result);
                    false
                }
            }
        });
    }

    fn forget_the_dead(&mut self, listener: BorrowedFd<'_>) {
        self.0.retain(|call| sys::still_waits(listener, call.id).is_ok());
    }
}
