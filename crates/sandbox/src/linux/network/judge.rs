//! What a call may do. Everything here works on our copy of its arguments and on our duplicate of its socket.

use std::{
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    os::fd::{AsFd, BorrowedFd},
    time::Instant,
};

use firedoor_model::network::{AttemptKind, Port};
use nix::errno::Errno;

use super::{
    Outcome, Reach,
    address::{self, Address, SOCKADDR_MAX},
    asking::Via,
    attempts::Attempts,
    caller::{Caller, Kind, Socket},
    dns::{Answer, Question},
    listed::Listed,
    pending::Work,
    policy::Refusal,
    unix::Sockets,
};
use crate::linux::sys;

/// Port of name servers.
const DNS: u16 = 53;
/// Why a datagram is refused.
const NO_UDP: &str =
    "no grant names this host and port for UDP; if it is right: firedoor grants add ENTRY --host NAME:PORT/udp";
const NO_LISTEN: &str = "a server may listen only where its profile says listen = true, and on the loopback interface";
const NO_SOCKET: &str = "no grant names this Unix socket; if it is right: firedoor grants add ENTRY --unix";

/// Decides, with all that is known of one server.
pub(crate) struct Judge {
    pub reach: Reach,
    /// Absent for the proxy's clients.
    pub(super) listed: Option<Listed>,
    pub(super) attempts: Attempts,
}

/// Which way a TCP connection goes.
enum Route {
    Direct(SocketAddr),
    Relay(Via),
}

impl Judge {
    pub fn new(reach: Reach, attempts: Attempts) -> nix::Result<Self> {
        let listed = match &reach {
            Reach::Proxy { .. } => None,
            Reach::Listed { hosts, rates, sockets, own, writable, trees } => {
                Some(Listed::new(hosts, *rates, Sockets::new(sockets, own.clone(), writable, trees.clone()))?)
            }
        };
        Ok(Self { reach, listed, attempts })
    }

    /// Descriptors that are readable when [`Self::serve_names`] has something to do.
    pub fn watched(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.listed.iter().flat_map(|l| l.stub.watched().chain([l.resolver.wake()]))
    }

    /// Whether time has to pass for something.
    pub fn is_idle(&self) -> bool {
        self.listed.as_ref().is_none_or(|l| l.stub.streams.is_empty())
    }

    pub(super) fn listed(&mut self) -> nix::Result<&mut Listed> {
        self.listed.as_mut().ok_or(Errno::EACCES)
    }

    pub(super) fn refuse(&mut self, caller: &Caller<'_>, kind: AttemptKind, target: &str, reason: &str) -> Errno {
        self.attempts.tell(caller.thread, kind, target, reason);
        Errno::EACCES
    }

    pub fn connect(&mut self, caller: &Caller<'_>, fd: i32, at: u64, length: i32) -> nix::Result<Outcome> {
        let bytes = caller.read(at, address_length(length)?)?;
        let socket = caller.socket(fd)?;
        let to = Address::decode(&bytes, socket.domain)?;
        let to = match (&self.reach, socket.kind, to) {
            (Reach::Proxy { address, .. }, Kind::Tcp, Address::Inet(to)) if to == SocketAddr::V4(*address) => {
                address::encode(to, socket.domain)
            }
            (Reach::Proxy { .. }, ..) => return Err(Errno::EACCES),
            (_, _, Address::Unspecified) => address::unspecified(),
            (_, Kind::Tcp, Address::Inet(to)) if to.port() == DNS => return self.ask_by_stream(caller, socket, to),
            (_, Kind::Tcp, Address::Inet(like)) => match self.tcp(caller, like)? {
                Route::Direct(to) => address::encode(to, socket.domain),
                Route::Relay(to) => return self.relay(caller, socket, to, like),
            },
            (_, Kind::Udp, Address::Inet(to)) => return self.connect_udp(caller, &socket, to),
            (_, Kind::UnixConnection | Kind::UnixDatagram, Address::Path(path)) => {
                let found = self.unix(caller, &path)?;
                return socket.connect(&found.address()).map(|()| Outcome::Done(0));
            }
            (_, _, Address::Nameless) => {
                return Err(self.refuse(caller, AttemptKind::Socket, "an abstract socket", NO_SOCKET));
            }
            (_, Kind::Netlink, Address::Netlink { port: 0, groups: 0 }) => address::netlink(0, 0),
            _ => return Err(Errno::EACCES),
        };
        begin(socket, to)
    }

    /// Leads a connection for look-ups to the stub.
    fn ask_by_stream(&mut self, caller: &Caller<'_>, socket: Socket, to: SocketAddr) -> nix::Result<Outcome> {
        let listed = self.listed()?;
        let stub = listed.stub.streams.address(to).ok_or(Errno::ENETUNREACH)?;
        let domain = socket.domain;
        let own = socket.fd.try_clone().map_err(|_| Errno::ENFILE)?;
        let begun = begin(socket, address::encode(stub, domain));
        // Now it has a local address. The stub accepts nothing before we are back in the loop.
        if matches!(begun, Ok(_) | Err(Errno::EINPROGRESS))
            && let Address::Inet(local) = Address::decode(&sys::own_address(own.as_fd())?, domain)?
        {
            listed.stub.streams.admit(local, caller.thread, to);
        }
        begun
    }

    /// Where a TCP connection really goes.
    fn tcp(&mut self, caller: &Caller<'_>, to: SocketAddr) -> nix::Result<Route> {
        let listed = self.listed()?;
        if let Some(led) = listed.led(to) {
            self.attempts.allowed(AttemptKind::Network, &format!("{}:{}", led.name, led.port));
            return Ok(Route::Relay(Via::Led(led)));
        }
        if let Some(host) = listed.metered(to) {
            self.attempts.allowed(AttemptKind::Network, &host.to_string());
            return Ok(Route::Relay(Via::Counted(host)));
        }
        let (target, verdict) = listed.counted(to, Port::Tcp(to.port()));
        match verdict {
            Ok(real) => {
                self.attempts.allowed(AttemptKind::Network, &target);
                Ok(Route::Direct(real))
            }
            Err(refusal) => match listed.relayed(to, refusal) {
                Some(host) => Ok(Route::Relay(Via::Unknown(host))),
                None => Err(self.refuse(caller, AttemptKind::Network, &target, &refusal.to_string())),
            },
        }
    }

    fn connect_udp(&mut self, caller: &Caller<'_>, socket: &Socket, to: SocketAddr) -> nix::Result<Outcome> {
        if to.port() != DNS {
            let real = self.listed()?.connected_udp(to);
            let real = self.udp_verdict(caller, to, real)?;
            return socket.connect(&address::encode(real, socket.domain)).map(|()| Outcome::Done(0));
        }
        let listed = self.listed()?;
        let stub = listed.stub.address(to).ok_or(Errno::ENETUNREACH)?;
        socket.connect(&address::encode(stub, socket.domain))?;
        listed.admit(caller, socket, to)?;
        Ok(Outcome::Done(0))
    }

    /// The real address of a datagram of so many bytes.
    pub(super) fn udp(&mut self, caller: &Caller<'_>, to: SocketAddr, bytes: usize) -> nix::Result<SocketAddr> {
        let real = self.listed()?.datagram(to, bytes);
        self.udp_verdict(caller, to, real)
    }

    fn udp_verdict(
        &mut self,
        caller: &Caller<'_>,
        to: SocketAddr,
        (target, verdict): (String, Result<SocketAddr, Refusal>),
    ) -> nix::Result<SocketAddr> {
        let refusal = match verdict {
            Ok(real) => {
                self.attempts.allowed(AttemptKind::Network, &format!("{target} (UDP)"));
                return Ok(real);
            }
            Err(refusal) => refusal,
        };
        // C libraries connect UDP sockets to what they have looked up only to see which way it would go; that is no attempt.
        let granted = !matches!(refusal, Refusal::NotGranted | Refusal::NotPublic(_));
        let asked = self.listed()?.names.meant_by(to.ip()).is_some() && !granted;
        if asked || matches!(to.port(), 0 | u16::MAX) {
            return Err(Errno::ENETUNREACH);
        }
        let reason = match refusal {
            Refusal::NotGranted => NO_UDP.to_owned(),
            other => other.to_string(),
        };
        Err(self.refuse(caller, AttemptKind::Network, &format!("{target} (UDP)"), &reason))
    }

    /// The Unix socket at a path.
    pub(super) fn unix(&mut self, caller: &Caller<'_>, path: &[u8]) -> nix::Result<super::unix::Resolved> {
        let (found, allowed) = self.listed()?.sockets.find(caller.thread, path)?;
        if allowed {
            self.attempts.allowed(AttemptKind::Socket, &found.path.to_string_lossy());
            return Ok(found);
        }
        if found.is_asked_by_libc() {
            return Err(Errno::EACCES);
        }
        let path = found.path.to_string_lossy().into_owned();
        Err(self.refuse(caller, AttemptKind::Socket, &path, NO_SOCKET))
    }

    pub fn bind(&mut self, caller: &Caller<'_>, fd: i32, at: u64, length: i32) -> nix::Result<Outcome> {
        let bytes = caller.read(at, address_length(length)?)?;
        let socket = caller.socket(fd)?;
        let listed = self.listed()?;
        let done = match (socket.kind, Address::decode(&bytes, socket.domain)?) {
            // Chooses where a connection comes from. Without `listen` nothing can come to it.
            (Kind::Tcp, Address::Inet(to)) if to.port() == 0 && !listed.listen => {
                sys::bind(socket.fd.as_fd(), &address::encode(to, socket.domain))
            }
            (Kind::Tcp, Address::Inet(to)) if listed.listen && is_here(to) => {
                let bound = bind_here(&socket, to);
                self.attempts.allowed(AttemptKind::Listen, &to.to_string());
                bound
            }
            (Kind::Udp, Address::Inet(to)) if to.port() == 0 && is_here(to) => listed.bind_udp(&socket, to),
            (Kind::Tcp | Kind::Udp, Address::Inet(to)) => {
                Err(self.refuse(caller, AttemptKind::Listen, &to.to_string(), NO_LISTEN))
            }
            (Kind::UnixConnection | Kind::UnixDatagram, Address::Path(path)) => {
                listed.sockets.bind(caller.thread, &socket.fd, &path)
            }
            (Kind::Netlink, Address::Netlink { port, groups: 0 }) => {
                sys::bind(socket.fd.as_fd(), &address::netlink(port, 0))
            }
            _ => Err(Errno::EACCES),
        };
        done.map(|()| Outcome::Done(0))
    }

    pub fn listen(&mut self, caller: &Caller<'_>, fd: i32, backlog: i32) -> nix::Result<Outcome> {
        let socket = caller.socket(fd)?;
        let own = sys::own_address(socket.fd.as_fd())?;
        match (socket.kind, Address::decode(&own, socket.domain)?) {
            (Kind::UnixConnection, Address::Path(_)) => {}
            (Kind::Tcp, Address::Inet(own)) if self.listed()?.listen => {
                if own.port() == 0 {
                    // The kernel would bind it to every interface.
                    bind_here(&socket, own)?;
                } else if !own.ip().is_loopback() {
                    return Err(self.refuse(caller, AttemptKind::Listen, &own.to_string(), NO_LISTEN));
                }
            }
            (Kind::Tcp, Address::Inet(own)) => {
                return Err(self.refuse(caller, AttemptKind::Listen, &own.to_string(), NO_LISTEN));
            }
            _ => return Err(Errno::EACCES),
        }
        sys::listen(socket.fd.as_fd(), backlog).map(|()| Outcome::Done(0))
    }

    /// Answers the questions that have come, and those whose look-ups have ended.
    pub fn serve_names(&mut self) {
        let Some(listed) = &mut self.listed else { return };
        let mut any = false;
        for resolved in listed.resolver.finished() {
            let addresses = resolved.addresses.unwrap_or_default();
            let learned = listed.names.learn(&resolved.name, &addresses, resolved.own, Instant::now());
            let (ready, rest) =
                std::mem::take(&mut listed.waiting).into_iter().partition(|(_, _, n)| *n == resolved.name);
            listed.waiting = rest;
            for (query, question, name) in ready {
                let answer =
                    if learned { listed.known(&mut self.attempts, &query, &question, &name) } else { Answer::Failed };
                listed.stub.answer(&question.answer(&answer), query.from);
            }
            any = true;
        }
        for query in listed.stub.queries() {
            let Some(question) = Question::parse(&query.bytes) else { continue };
            match listed.ask(&mut self.attempts, &query, &question) {
                Ok(answer) => listed.stub.answer(&question.answer(&answer), query.from),
                Err(name) => listed.waiting.push((query, question, name)),
            }
        }
        if any {
            self.look_up_relays();
        }
    }
}

/// Begins to connect; a caller that waits does so with our list of pending calls.
pub(super) fn begin(socket: Socket, to: Vec<u8>) -> nix::Result<Outcome> {
    let waits = socket.waits()?;
    match socket.connect(&to) {
        Err(Errno::EINPROGRESS) if waits => Ok(Outcome::Later(Work::Connect { socket, to })),
        result => result.map(|()| Outcome::Done(0)),
    }
}

/// The length of an address, as the kernel checks it.
pub(super) fn address_length(length: i32) -> nix::Result<usize> {
    usize::try_from(length).ok().filter(|l| *l <= SOCKADDR_MAX).ok_or(Errno::EINVAL)
}

/// This machine alone, or every interface, which becomes this machine alone.
fn is_here(to: SocketAddr) -> bool {
    to.ip().is_loopback() || to.ip().is_unspecified()
}

/// Binds to the loopback interface.
pub(super) fn bind_here(socket: &Socket, to: SocketAddr) -> nix::Result<()> {
    let at = |ip: IpAddr| address::encode(SocketAddr::new(ip, to.port()), socket.domain);
    let bind = |bytes: &[u8]| sys::bind(socket.fd.as_fd(), bytes);
    match to.ip() {
        IpAddr::V6(ip) if ip.is_unspecified() && socket.kind == Kind::Tcp => {
            // IPv4 too would be served: what connects to 127.0.0.1 must find it. Not possible with IPV6_V6ONLY.
            bind(&at(Ipv4Addr::LOCALHOST.into())).or_else(|_| bind(&at(Ipv6Addr::LOCALHOST.into())))
        }
        IpAddr::V6(ip) if ip.is_unspecified() => bind(&at(Ipv6Addr::LOCALHOST.into())),
        IpAddr::V4(ip) if ip.is_unspecified() => bind(&at(Ipv4Addr::LOCALHOST.into())),
        ip => bind(&at(ip)),
    }
}
