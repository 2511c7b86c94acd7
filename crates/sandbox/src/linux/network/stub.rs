//! The name server that the sandboxed server talks to, on the loopback interface: by UDP, and by TCP in [`super::stream`].
//!
//! Only what comes from sockets that the guardian itself led here is read: other programs of this machine get no answer.

use std::{
    collections::VecDeque,
    net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket},
    os::fd::{AsFd, BorrowedFd},
    time::Instant,
};

use nix::unistd::Pid;

use super::{dns::MAX_QUERY, stream::Streams};

/// Sockets of the server that are remembered. A resolver opens one for each look-up.
const MAX_LED: usize = 1024;
/// Datagrams that are read in one turn.
const MAX_TURN: usize = 64;

pub(crate) struct Stub {
    v4: UdpSocket,
    /// Absent where the machine has no IPv6.
    v6: Option<UdpSocket>,
    led: Led,
    pub streams: Streams,
}

/// Sockets that were led here: their local addresses, the threads that own them, and what they asked.
#[derive(Default)]
pub(crate) struct Led(VecDeque<(SocketAddr, Pid, SocketAddr)>);

/// Who waits for an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Asker {
    /// The sender of a datagram.
    Datagram(SocketAddr),
    /// The other end of a connection, by our number for it.
    Stream(u64),
}

/// A query and who sent it.
pub(crate) struct Query {
    pub bytes: Vec<u8>,
    pub from: Asker,
    pub thread: Pid,
}

impl Stub {
    pub fn new() -> std::io::Result<Self> {
        let v4 = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
        v4.set_nonblocking(true)?;
        let v6 = UdpSocket::bind((Ipv6Addr::LOCALHOST, 0)).ok();
        let v6 = v6.filter(|s| s.set_nonblocking(true).is_ok());
        Ok(Self { v4, v6, led: Led::default(), streams: Streams::new()? })
    }

    pub fn watched(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        [Some(&self.v4), self.v6.as_ref()].into_iter().flatten().map(AsFd::as_fd).chain(self.streams.watched())
    }

    /// Where a query for `to` is led.
    pub fn address(&self, to: SocketAddr) -> Option<SocketAddr> {
        match (to, &self.v6) {
            (SocketAddr::V6(_), Some(v6)) => v6.local_addr().ok(),
            _ => self.v4.local_addr().ok(),
        }
    }

    /// A socket with this local address was led here instead of to `asked`.
    pub fn admit(&mut self, local: SocketAddr, thread: Pid, asked: SocketAddr) {
        self.led.admit(local, thread, asked);
    }

    /// What a socket with this local address has last asked.
    pub fn asked(&self, local: SocketAddr) -> Option<SocketAddr> {
        self.led.0.iter().find(|(known, ..)| *known == local).map(|(.., asked)| *asked)
    }

    /// The queries that have come.
    pub fn queries(&mut self) -> Vec<Query> {
        let mut out = Vec::new();
        let mut bytes = [0; MAX_QUERY];
        for socket in [Some(&self.v4), self.v6.as_ref()].into_iter().flatten() {
            for _ in 0..MAX_TURN {
                let Ok((length, from)) = socket.recv_from(&mut bytes) else { break };
                if let Some(thread) = self.led.thread(from) {
                    let bytes = bytes.get(..length).unwrap_or_default().to_vec();
                    out.push(Query { bytes, from: Asker::Datagram(from), thread });
                }
            }
        }
        let streams = self.streams.queries(Instant::now()).into_iter();
        out.extend(streams.map(|(id, thread, bytes)| Query { bytes, from: Asker::Stream(id), thread }));
        out
    }

    pub fn answer(&mut self, bytes: &[u8], to: Asker) {
        let to = match to {
            Asker::Stream(id) => return self.streams.answer(id, bytes),
            Asker::Datagram(to) => to,
        };
        let socket = if to.is_ipv4() { Some(&self.v4) } else { self.v6.as_ref() };
        // Who asked asks again when this is lost.
        let _ = socket.map(|s| s.send_to(bytes, to));
    }
}

impl Led {
    pub fn admit(&mut self, local: SocketAddr, thread: Pid, asked: SocketAddr) {
        self.0.retain(|(known, ..)| *known != local);
        if self.0.len() >= MAX_LED {
            self.0.pop_front();
        }
        self.0.push_back((local, thread, asked));
    }

    /// Whose socket this is. One that is bound to no address sends from the loopback one.
    fn thread(&self, from: SocketAddr) -> Option<Pid> {
        let unspecified = |s: &SocketAddr| s.ip().is_unspecified() && s.port() == from.port();
        self.0.iter().find(|(s, ..)| *s == from || unspecified(s)).map(|(_, thread, _)| *thread)
    }

    /// The same, for a connection, which is made once.
    pub fn take(&mut self, from: SocketAddr) -> Option<Pid> {
        let at = self.0.iter().position(|(s, ..)| *s == from)?;
        self.0.remove(at).map(|(_, thread, _)| thread)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_who_was_led_here_is_heard() {
        let mut stub = Stub::new().unwrap();
        let to = stub.address("1.2.3.4:53".parse().unwrap()).unwrap();
        let sockets = [(); 2].map(|()| UdpSocket::bind("127.0.0.1:0").unwrap());
        for socket in &sockets {
            socket.send_to(b"?", to).unwrap();
        }
        let led = sockets[1].local_addr().unwrap();
        let (asked, unspecified) = ("1.2.3.4:53".parse().unwrap(), Ipv4Addr::UNSPECIFIED.into());
        stub.admit(SocketAddr::new(unspecified, led.port()), Pid::this(), asked);
        assert_eq!((stub.asked(SocketAddr::new(unspecified, led.port())), stub.asked(led)), (Some(asked), None));
        let queries = stub.queries();
        assert_eq!(queries.iter().map(|q| q.from).collect::<Vec<_>>(), [Asker::Datagram(led)]);
        (0..10_000u16).for_each(|n| stub.admit(SocketAddr::new(Ipv4Addr::LOCALHOST.into(), n), Pid::this(), asked));
        assert_eq!(stub.led.0.len(), MAX_LED);
    }
}
