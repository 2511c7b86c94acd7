//! One connection that goes through the guardian: because somebody has to be asked whether it may be made, because what is
//! sent is counted, or because it goes elsewhere than its program meant.
//!
//! The server's socket is connected to a listener of ours on the loopback interface, so its program goes on as after any
//! `connect`, and what it sends stays in the kernel's buffers until there is an answer. Then the guardian connects to the
//! host and carries bytes both ways; or it resets the connection.
//!
//! Architecture invariant: nothing here waits, and a relay that is dropped resets both of its connections: only one that
//! has carried everything to both ends closes them in peace.

use std::{
    collections::VecDeque,
    io::{self, Read, Write},
    net::{IpAddr, Ipv4Addr, Ipv6Addr, Shutdown, SocketAddr, TcpListener, TcpStream},
    os::fd::{AsFd, BorrowedFd},
    time::{Duration, Instant},
};

use firedoor_model::network::{HostGrant, Led};
use nix::{
    errno::Errno,
    libc,
    poll::PollFlags,
    sys::socket::{AddressFamily, Backlog, SockFlag, SockType, listen, setsockopt, socket, sockopt},
    unistd::Pid,
};

use super::address;
use crate::linux::sys;

/// Bytes that are on their way in one direction.
const BUFFER: usize = 16 << 10;
/// Receive buffer for what the server sends before there is an answer; the kernel takes twice as much (socket(7)).
const HELD: usize = 32 << 10;
/// Reads and writes of one direction in one turn, so that a fast transfer holds nothing else up.
const ROUNDS: usize = 8;
/// Strangers that are turned away in one turn.
const STRANGERS: usize = 16;
/// For the server's socket to arrive at the listener, on the same machine.
const ARRIVAL: Duration = Duration::from_secs(5);
/// For one address of the host to take the connection.
const CONNECT: Duration = Duration::from_secs(10);

/// A listener for one connection.
pub(crate) struct Door(TcpListener);

/// The server's side.
enum Inner {
    /// It was led to the listener, from this address.
    Expected {
        door: Door,
        from: SocketAddr,
    },
    Here(TcpStream),
}

/// How far the other side is.
enum Phase {
    /// Somebody was asked.
    Asked,
    /// It may be made; the host's addresses are looked up.
    LookingUp,
    /// One address after the other is tried.
    Connecting { outer: TcpStream, until: Instant, next: VecDeque<SocketAddr> },
    /// Bytes go both ways.
    Open { outer: TcpStream, up: Flow, down: Flow },
}

/// One relayed connection.
pub(crate) struct Relay {
    /// Whose call began it.
    pub thread: Pid,
    /// Where it is to lead.
    pub to: HostGrant,
    inner: Inner,
    phase: Phase,
    since: Instant,
    /// What the host is told before all else.
    hello: Vec<u8>,
    /// Bytes that went to the host and were not asked for yet.
    sent: usize,
}

/// One direction.
#[derive(Default)]
struct Flow {
    bytes: Vec<u8>,
    start: usize,
    /// Its sender has said all, and its receiver was told so.
    ended: bool,
}

impl Door {
    /// Listens on the loopback interface.
    pub fn open(v6: bool) -> nix::Result<Self> {
        let (family, ip): (_, IpAddr) = if v6 {
            (AddressFamily::Inet6, Ipv6Addr::LOCALHOST.into())
        } else {
            (AddressFamily::Inet, Ipv4Addr::LOCALHOST.into())
        };
        let listener = socket(family, SockType::Stream, SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK, None)?;
        // The connections inherit it. Before `listen`, because it decides what window they offer (tcp(7)).
        setsockopt(&listener, sockopt::RcvBuf, &HELD)?;
        sys::bind(listener.as_fd(), &address::encode(SocketAddr::new(ip, 0), family as i32))?;
        // Room for a few strangers; they are turned away.
        listen(&listener, Backlog::new(STRANGERS as i32)?)?;
        Ok(Self(listener.into()))
    }

    pub fn address(&self) -> io::Result<SocketAddr> {
        self.0.local_addr()
    }

    /// The connection from `from`, if it has come. All others are reset.
    fn accept(&self, from: SocketAddr) -> io::Result<Option<TcpStream>> {
        for _ in 0..STRANGERS {
            let (stream, peer) = match self.0.accept() {
                Ok(accepted) => accepted,
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => return Ok(None),
                Err(e) => return Err(e),
            };
            reset_on_close(&stream, true)?;
            if (peer.ip(), peer.port()) == (from.ip(), from.port()) {
                stream.set_nonblocking(true)?;
                stream.set_nodelay(true)?;
                return Ok(Some(stream));
            }
        }
        Ok(None)
    }
}

/// Whether closing means a reset, with whatever is on its way lost (socket(7), `SO_LINGER`).
fn reset_on_close(stream: &TcpStream, reset: bool) -> nix::Result<()> {
    setsockopt(stream, sockopt::Linger, &libc::linger { l_onoff: reset.into(), l_linger: 0 })
}

/// Begins to connect.
fn begin(to: SocketAddr) -> nix::Result<TcpStream> {
    let family = if to.is_ipv4() { AddressFamily::Inet } else { AddressFamily::Inet6 };
    let outer = socket(family, SockType::Stream, SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK, None)?;
    match sys::connect(outer.as_fd(), &address::encode(to, family as i32)) {
        Ok(()) | Err(Errno::EINPROGRESS) => Ok(outer.into()),
        Err(errno) => Err(errno),
    }
}

impl Relay {
    /// For a socket that was led to `door` from its address `from`. Nothing goes further before [`Self::look_up`].
    pub fn new(thread: Pid, to: HostGrant, door: Door, from: SocketAddr, now: Instant) -> Self {
        let inner = Inner::Expected { door, from };
        Self { thread, to, inner, phase: Phase::Asked, since: now, hello: Vec::new(), sent: 0 }
    }

    pub fn is_asked(&self) -> bool {
        matches!(self.phase, Phase::Asked)
    }

    pub fn is_looked_up(&self) -> bool {
        matches!(self.phase, Phase::LookingUp)
    }

    /// Whether it is still being set up, so that [`Self::sweep`] is wanted.
    pub fn is_unsettled(&self) -> bool {
        !matches!((&self.inner, &self.phase), (Inner::Here(_), Phase::Open { .. }))
    }

    /// Bytes that went to the host since this was asked last.
    pub fn take_sent(&mut self) -> usize {
        std::mem::take(&mut self.sent)
    }

    /// It may be made.
    pub fn look_up(&mut self) {
        self.phase = Phase::LookingUp;
    }

    /// Goes on to a port of this machine, which is told who comes. `false`: nobody is there.
    pub fn lead(&mut self, led: &Led, now: Instant) -> bool {
        self.hello = led.key.clone().into_bytes();
        self.connect([SocketAddr::from((Ipv4Addr::LOCALHOST, led.at))], now)
    }

    /// Goes on to the first of these addresses that takes the connection. `false`: there is none.
    pub fn connect(&mut self, addresses: impl IntoIterator<Item = SocketAddr>, now: Instant) -> bool {
        let mut next: VecDeque<_> = addresses.into_iter().collect();
        while let Some(to) = next.pop_front() {
            if let Ok(outer) = begin(to) {
                self.phase = Phase::Connecting { outer, until: now + CONNECT, next };
                return true;
            }
        }
        false
    }

    /// What is to be watched, and for what.
    pub fn watched(&self) -> impl Iterator<Item = (BorrowedFd<'_>, PollFlags)> {
        let wants = |read: bool, write: bool| {
            let mut flags = PollFlags::empty();
            flags.set(PollFlags::POLLIN, read);
            flags.set(PollFlags::POLLOUT, write);
            flags
        };
        let (inner, outer) = match (&self.inner, &self.phase) {
            (Inner::Expected { door, .. }, Phase::Connecting { outer, .. }) => {
                (Some((door.0.as_fd(), PollFlags::POLLIN)), Some((outer.as_fd(), PollFlags::POLLOUT)))
            }
            (Inner::Expected { door, .. }, _) => (Some((door.0.as_fd(), PollFlags::POLLIN)), None),
            (Inner::Here(_), Phase::Asked | Phase::LookingUp) => (None, None),
            (Inner::Here(_), Phase::Connecting { outer, .. }) => (None, Some((outer.as_fd(), PollFlags::POLLOUT))),
            (Inner::Here(inner), Phase::Open { outer, up, down }) => (
                Some((inner.as_fd(), wants(up.takes(), down.gives()))),
                Some((outer.as_fd(), wants(down.takes(), up.gives()))),
            ),
        };
        // A descriptor of which nothing is wanted would report its hang-up again and again.
        [inner, outer].into_iter().flatten().filter(|(_, flags)| !flags.is_empty())
    }

    /// Goes on when something watched is ready. `false` when it is over: drop it.
    pub fn advance(&mut self, now: Instant) -> bool {
        self.go_on(now).unwrap_or(false)
    }

    fn go_on(&mut self, now: Instant) -> io::Result<bool> {
        if let Inner::Expected { door, from } = &self.inner
            && let Some(stream) = door.accept(*from)?
        {
            self.inner = Inner::Here(stream);
        }
        if let Phase::Connecting { outer, next, .. } = &mut self.phase {
            match connected(outer) {
                Ok(false) => {}
                Ok(true) => self.open()?,
                Err(_) => {
                    let next = std::mem::take(next);
                    return Ok(self.connect(next, now));
                }
            }
        }
        let (Inner::Here(inner), Phase::Open { outer, up, down }) = (&self.inner, &mut self.phase) else {
            return Ok(true);
        };
        let carried = up.carry(inner, outer, &mut self.sent);
        carried.and_then(|()| down.carry(outer, inner, &mut 0))?;
        if up.ended && down.ended {
            reset_on_close(inner, false)?;
            reset_on_close(outer, false)?;
            return Ok(false);
        }
        Ok(true)
    }

    fn open(&mut self) -> io::Result<()> {
        let Phase::Connecting { outer, .. } = std::mem::replace(&mut self.phase, Phase::LookingUp) else {
            return Ok(());
        };
        reset_on_close(&outer, true)?;
        outer.set_nodelay(true)?;
        // The program may have set it on its own socket, which now ends here.
        setsockopt(&outer, sockopt::KeepAlive, &true)?;
        let up = Flow { bytes: std::mem::take(&mut self.hello), ..Flow::default() };
        self.phase = Phase::Open { outer, up, down: Flow::default() };
        Ok(())
    }

    /// Looks at what no descriptor tells. `false` when it is over: drop it.
    pub fn sweep(&mut self, now: Instant) -> bool {
        if let Inner::Expected { .. } = self.inner
            && now.duration_since(self.since) >= ARRIVAL
        {
            return false;
        }
        match (&self.inner, &mut self.phase) {
            // The program has closed its end and left nothing to be passed on.
            (Inner::Here(inner), Phase::Asked | Phase::LookingUp) => match inner.peek(&mut [0]) {
                Ok(count) => count > 0,
                Err(e) => e.kind() == io::ErrorKind::WouldBlock,
            },
            (_, Phase::Connecting { until, next, .. }) if now >= *until => {
                let next = std::mem::take(next);
                self.connect(next, now)
            }
            _ => true,
        }
    }
}

/// Whether a connection has been made; an error says that it was refused.
fn connected(stream: &TcpStream) -> io::Result<bool> {
    match stream.take_error()? {
        Some(e) => Err(e),
        None => match stream.peer_addr() {
            Ok(_) => Ok(true),
            Err(e) if e.kind() == io::ErrorKind::NotConnected => Ok(false),
            Err(e) => Err(e),
        },
    }
}

impl Flow {
    /// Whether its sender is to be heard.
    fn takes(&self) -> bool {
        !self.ended && self.rest().is_empty()
    }

    /// Whether its receiver is to be served.
    fn gives(&self) -> bool {
        !self.rest().is_empty()
    }

    fn rest(&self) -> &[u8] {
        self.bytes.get(self.start..).unwrap_or_default()
    }

    /// Carries what can be carried now, and adds how many bytes that were. An error ends the connection.
    fn carry(&mut self, mut from: &TcpStream, mut to: &TcpStream, carried: &mut usize) -> io::Result<()> {
        for _ in 0..ROUNDS {
            if self.rest().is_empty() {
                if self.ended {
                    return Ok(());
                }
                self.start = 0;
                self.bytes.resize(BUFFER, 0);
                let read = from.read(&mut self.bytes);
                self.bytes.truncate(read.as_ref().map_or(0, |n| *n));
                match read {
                    Ok(0) => {
                        to.shutdown(Shutdown::Write)?;
                        self.ended = true;
                    }
                    Ok(_) => {}
                    Err(e) if is_later(&e) => return Ok(()),
                    Err(e) => return Err(e),
                }
                continue;
            }
            match to.write(self.rest()) {
                Ok(count) => {
                    self.start += count;
                    *carried = carried.saturating_add(count);
                }
                Err(e) if is_later(&e) => return Ok(()),
                Err(e) => return Err(e),
            }
        }
        Ok(())
    }
}

fn is_later(e: &io::Error) -> bool {
    matches!(e.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}

#[cfg(test)]
mod tests;
