//! The name server that the sandboxed server talks to: two UDP sockets on the loopback interface.
//!
//! Only datagrams from sockets that the guardian itself led here are read: other programs of this machine get no answer.

use std::{
    collections::VecDeque,
    net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket},
    os::fd::{AsFd, BorrowedFd},
};

use nix::unistd::Pid;

use super::dns::MAX_QUERY;

/// Sockets of the server that are remembered. A resolver opens one for each look-up.
const MAX_SOURCES: usize = 1024;
/// Datagrams that are read in one turn.
const MAX_TURN: usize = 64;

pub(crate) struct Stub {
    v4: UdpSocket,
    /// Absent where the machine has no IPv6.
    v6: Option<UdpSocket>,
    /// Local addresses of the server's sockets, and the threads that asked.
    sources: VecDeque<(SocketAddr, Pid)>,
}

/// A query and who sent it.
pub(crate) struct Query {
    pub bytes: Vec<u8>,
    pub from: SocketAddr,
    pub thread: Pid,
}

impl Stub {
    pub fn new() -> std::io::Result<Self> {
        let v4 = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
        v4.set_nonblocking(true)?;
        let v6 = UdpSocket::bind((Ipv6Addr::LOCALHOST, 0)).ok();
        let v6 = v6.filter(|s| s.set_nonblocking(true).is_ok());
        Ok(Self { v4, v6, sources: VecDeque::new() })
    }

    pub fn watched(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        [Some(&self.v4), self.v6.as_ref()].into_iter().flatten().map(AsFd::as_fd)
    }

    /// Where a query for `to` is led.
    pub fn address(&self, to: SocketAddr) -> Option<SocketAddr> {
        match (to, &self.v6) {
            (SocketAddr::V6(_), Some(v6)) => v6.local_addr().ok(),
            _ => self.v4.local_addr().ok(),
        }
    }

    /// A socket with this local address was led here.
    pub fn admit(&mut self, local: SocketAddr, thread: Pid) {
        self.sources.retain(|(known, _)| *known != local);
        if self.sources.len() >= MAX_SOURCES {
            self.sources.pop_front();
        }
        self.sources.push_back((local, thread));
    }

    /// The queries that have come.
    pub fn queries(&self) -> Vec<Query> {
        let mut out = Vec::new();
        let mut bytes = [0; MAX_QUERY];
        for socket in [Some(&self.v4), self.v6.as_ref()].into_iter().flatten() {
            for _ in 0..MAX_TURN {
                let Ok((length, from)) = socket.recv_from(&mut bytes) else { break };
                if let Some(thread) = self.sender(from) {
                    out.push(Query { bytes: bytes.get(..length).unwrap_or_default().to_vec(), from, thread });
                }
            }
        }
        out
    }

    /// A socket that is bound to no address sends from the loopback one.
    fn sender(&self, from: SocketAddr) -> Option<Pid> {
        let unspecified = |s: &SocketAddr| s.ip().is_unspecified() && s.port() == from.port();
        self.sources.iter().find(|(s, _)| *s == from || unspecified(s)).map(|(_, thread)| *thread)
    }

    pub fn answer(&self, bytes: &[u8], to: SocketAddr) {
        let socket = if to.is_ipv4() { Some(&self.v4) } else { self.v6.as_ref() };
        // Who asked asks again when this is lost.
        let _ = socket.map(|s| s.send_to(bytes, to));
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
        stub.admit(SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), led.port()), Pid::this());
        let queries = stub.queries();
        assert_eq!(queries.iter().map(|q| q.from).collect::<Vec<_>>(), [led]);
        (0..10_000u16).for_each(|n| stub.admit(SocketAddr::new(Ipv4Addr::LOCALHOST.into(), n), Pid::this()));
        assert_eq!(stub.sources.len(), MAX_SOURCES);
    }
}
