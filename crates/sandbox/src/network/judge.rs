//! What a call may do. Everything here works on our copy of its arguments and on our duplicate of its socket.

use std::{
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    os::fd::{AsFd, BorrowedFd},
    time::Instant,
};

use firedoor_model::network::{self, AttemptKind, Host, HostGrant, KnownName, Port};
use nix::{errno::Errno, libc};

use super::{
    Outcome, Reach,
    address::{self, Address, SOCKADDR_MAX},
    asking::Asking,
    attempts::Attempts,
    caller::{Caller, Kind, Socket},
    caps::Caps,
    dns::{Answer, Family, Question},
    names::Names,
    pending::Work,
    policy::{Policy, Refusal, is_localhost},
    public::{embedded, is_public},
    resolver::{Resolver, own_addresses},
    stub::{Query, Stub},
    unix::Sockets,
};
use crate::sys;

/// Questions that wait for a look-up.
const MAX_WAITING: usize = 256;
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
    /// Through a relay: somebody is asked first, or the host has no address of the socket's family.
    Relay(HostGrant),
}

/// State of a server whose connections are judged by lists.
pub(super) struct Listed {
    pub(super) policy: Policy,
    pub(super) caps: Caps,
    /// This machine's own domain.
    domain: Option<String>,
    listen: bool,
    pub(super) names: Names,
    pub(super) resolver: Resolver,
    pub(super) stub: Stub,
    waiting: Vec<(Query, Question, String)>,
    pub(super) sockets: Sockets,
    /// Absent where nobody can be asked.
    pub(super) asking: Option<Asking>,
}

impl Judge {
    pub fn new(reach: Reach, attempts: Attempts) -> nix::Result<Self> {
        let listed = match &reach {
            Reach::Proxy { .. } => None,
            Reach::Listed { hosts, sockets, writable, trees } => {
                let errno = |e: std::io::Error| Errno::from_raw(e.raw_os_error().unwrap_or(libc::EIO));
                let mut known = hosts.known.clone();
                let addresses = vec![Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()];
                known.push(KnownName { name: "localhost".into(), addresses });
                Some(Listed {
                    policy: Policy::new(hosts.allowed.clone()),
                    caps: Caps::new(Instant::now()),
                    domain: own_domain(),
                    listen: hosts.listen,
                    names: Names::default(),
                    resolver: Resolver::new(known)?,
                    stub: Stub::new().map_err(errno)?,
                    waiting: Vec::new(),
                    sockets: Sockets::new(sockets.clone(), writable.clone(), trees.clone()),
                    asking: hosts.ask.then(|| Asking::new(hosts.refuse.clone())),
                })
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
        let (target, verdict) = listed.counted(to, Port::Tcp(to.port()));
        match verdict {
            Ok(real) => {
                self.attempts.allowed(AttemptKind::Network, &target);
                Ok(Route::Direct(real))
            }
            Err(refusal) => match listed.relayed(to, refusal) {
                Some(host) => Ok(Route::Relay(host)),
                None => Err(self.refuse(caller, AttemptKind::Network, &target, &refusal.to_string())),
            },
        }
    }

    fn connect_udp(&mut self, caller: &Caller<'_>, socket: &Socket, to: SocketAddr) -> nix::Result<Outcome> {
        if to.port() != DNS {
            let real = self.listed()?.counted(to, Port::Udp(to.port()));
            let real = self.udp_verdict(caller, to, real)?;
            return socket.connect(&address::encode(real, socket.domain)).map(|()| Outcome::Done(0));
        }
        let listed = self.listed()?;
        let stub = listed.stub.address(to).ok_or(Errno::ENETUNREACH)?;
        socket.connect(&address::encode(stub, socket.domain))?;
        listed.admit(caller, socket, to)?;
        Ok(Outcome::Done(0))
    }

    /// The real address of a datagram.
    pub(super) fn udp(&mut self, caller: &Caller<'_>, to: SocketAddr) -> nix::Result<SocketAddr> {
        let real = self.listed()?.real(to, Port::Udp(to.port()));
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
        let asked = self.listed()?.names.meant_by(to.ip()).is_some() && refusal != Refusal::Connections;
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

impl Listed {
    /// What a destination is called, and its real address where it may be reached.
    fn real(&mut self, to: SocketAddr, port: Port) -> (String, Result<SocketAddr, Refusal>) {
        let to = address::destination(to);
        let Some((known, ip)) = self.names.meant_by(to.ip()) else {
            let name = self.names.only_name_of(to.ip()).filter(|name| self.policy.is_any(name));
            let target = name.map_or_else(|| to.to_string(), |name| format!("{name}:{}", to.port()));
            return (target, self.policy.address(to.ip(), port, own_addresses).map(|()| to));
        };
        let target = format!("{}:{}", known.name, to.port());
        let Some(ip) = ip else { return (target, Err(Refusal::NotGranted)) };
        let verdict = self.policy.named(&known.name, ip, port, &known.own);
        if verdict.is_ok() && !known.is_fresh(Instant::now()) && self.resolver.known(&known.name).is_none() {
            // For the next one. What was looked up before is still allowed.
            let name = known.name.clone();
            self.resolver.begin(&name);
        }
        (target, verdict.map(|()| SocketAddr::new(ip, to.port())))
    }

    /// The same for a connection, which counts.
    fn counted(&mut self, to: SocketAddr, port: Port) -> (String, Result<SocketAddr, Refusal>) {
        let (target, verdict) = self.real(to, port);
        let verdict = verdict.and_then(|real| {
            // Who grants an address by its number means something of their own, such as a database.
            let exempt = self.policy.is_literal(real.ip(), port);
            if exempt { Ok(real) } else { self.caps.connect(Instant::now(), &target).map(|()| real) }
        });
        (target, verdict)
    }

    /// The host to which a connection goes through a relay that was refused on the direct way: a name or a public address
    /// that somebody can be asked about, or a name without an address of that family.
    fn relayed(&self, to: SocketAddr, refusal: Refusal) -> Option<HostGrant> {
        if self.asking.is_none() || refusal != Refusal::NotGranted {
            return None;
        }
        let to = address::destination(to);
        let host = match self.names.meant_by(to.ip()) {
            Some((known, _)) if !is_localhost(&known.name) => Host::Name(known.name.clone()),
            None if is_public(to.ip()) && !own_addresses().contains(&embedded(to.ip())) => Host::Address(to.ip()),
            Some(_) | None => return None,
        };
        Some(HostGrant { host, port: Some(Port::Tcp(to.port())) })
    }

    /// Binds a socket for datagrams, to any port. Only what may send elsewhere gets more than the loopback interface.
    pub fn bind_udp(&self, socket: &Socket, to: SocketAddr) -> nix::Result<()> {
        if !self.policy.has_udp() || to.ip().is_loopback() {
            return bind_here(socket, to);
        }
        let any: IpAddr =
            if socket.domain == libc::AF_INET { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
        sys::bind(socket.fd.as_fd(), &address::encode(SocketAddr::new(any, 0), socket.domain))
    }

    /// Remembers a socket that was led to the stub instead of to `asked`.
    pub fn admit(&mut self, caller: &Caller<'_>, socket: &Socket, asked: SocketAddr) -> nix::Result<()> {
        if let Address::Inet(own) = Address::decode(&sys::own_address(socket.fd.as_fd())?, socket.domain)? {
            self.stub.admit(own, caller.thread, asked);
        }
        Ok(())
    }

    /// The answer to a question, or the name that is being looked up for it.
    fn ask(&mut self, attempts: &mut Attempts, query: &Query, question: &Question) -> Result<Answer, String> {
        let Some(name) = &question.name else { return Ok(Answer::NoSuchName) };
        if let Some(address) = question.reverse() {
            // Nobody else is asked: what names an address has is no business of the server's.
            let known = address.and_then(|ip| self.names.meant_by(ip));
            return Ok(known.map_or(Answer::NoSuchName, |(known, _)| Answer::Host(known.name.clone())));
        }
        if !self.policy.may_look_up(name) {
            if self.is_completion(attempts, name) {
                return Ok(Answer::NoSuchName);
            }
            // Nothing is looked up before somebody has agreed: a name can carry data away.
            let about = self.asking.as_ref().is_some_and(|asking| asking.is_about(name)) && !is_localhost(name);
            if about && let Some(stand_in) = self.names.reserve(name) {
                return Ok(Answer::Addresses(vec![stand_in]));
            }
            attempts.tell(query.thread, AttemptKind::Network, name, &Refusal::NotGranted.to_string());
            return Ok(Answer::NoSuchName);
        }
        if question.family.is_none() {
            return Ok(Answer::Addresses(Vec::new()));
        }
        let now = Instant::now();
        if let Some(addresses) = self.resolver.known(name) {
            if !self.names.learn(name, &addresses, Vec::new(), now) {
                return Ok(Answer::Failed);
            }
        } else if !self.names.get(name).is_some_and(|n| n.is_fresh(now)) {
            return match self.begin(name, now) {
                Ok(true) => Err(name.clone()),
                Ok(false) => Ok(Answer::Failed),
                Err((target, refusal)) => {
                    attempts.tell(query.thread, AttemptKind::Network, &target, &refusal.to_string());
                    Ok(Answer::Failed)
                }
            };
        }
        Ok(self.known(attempts, query, question, name))
    }

    /// Begins to look a name up, or joins who does. The refusal comes with what it is about.
    pub(super) fn begin(&mut self, name: &str, now: Instant) -> Result<bool, (String, Refusal)> {
        if !self.resolver.is_under_way(name) {
            if self.names.get(name).is_none()
                && let Some(parent) = self.policy.wildcard_of(name)
            {
                self.caps.new_name(now, parent, name).map_err(|refusal| (format!("*.{parent}"), refusal))?;
            }
            self.caps.look_up(now).map_err(|refusal| ("look-ups".to_owned(), refusal))?;
        }
        Ok(self.waiting.len() < MAX_WAITING && self.resolver.begin(name))
    }

    /// Whether this is a name that was asked for before, with this machine's own domain behind it: without a resolv.conf
    /// resolvers take that from the host name (resolv.conf(5), `search`) when the name itself has failed.
    fn is_completion(&self, attempts: &Attempts, name: &str) -> bool {
        let prefix = self.domain.as_deref().and_then(|domain| without(name, domain));
        prefix.is_some_and(|p| {
            self.policy.may_look_up(p) || self.names.get(p).is_some() || attempts.has_told(AttemptKind::Network, p)
        })
    }

    /// The answer for a name that was looked up.
    fn known(&self, attempts: &mut Attempts, query: &Query, question: &Question, name: &str) -> Answer {
        let Some(known) = self.names.get(name) else { return Answer::NoSuchName };
        let mut refusal = None;
        let mut any = false;
        for ip in known.addresses() {
            match self.policy.name_may_mean(name, ip, None, &known.own) {
                Ok(()) => any = true,
                Err(why) => refusal = Some(why),
            }
        }
        match (any, refusal) {
            (true, _) => {
                let allowed = |ip: IpAddr| self.policy.name_may_mean(name, ip, None, &known.own).is_ok();
                let of = |v4: bool| {
                    if self.policy.is_any(name) {
                        self.names.addresses(name, v4, allowed)
                    } else {
                        self.names.stand_ins(name, v4, allowed)
                    }
                };
                Answer::Addresses(match question.family {
                    Some(Family::V4) => of(true),
                    Some(Family::V6) => of(false),
                    Some(Family::Any) => [of(true), of(false)].concat(),
                    None => Vec::new(),
                })
            }
            (false, Some(why)) => {
                attempts.tell(query.thread, AttemptKind::Network, name, &why.to_string());
                Answer::NoSuchName
            }
            (false, None) => Answer::NoSuchName,
        }
    }
}

/// A name without the domain behind it.
fn without<'a>(name: &'a str, domain: &str) -> Option<&'a str> {
    name.strip_suffix(domain)?.strip_suffix('.')
}

/// The domain in this machine's host name, where it has one.
fn own_domain() -> Option<String> {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").ok()?;
    let (_, domain) = name.trim_end().split_once('.')?;
    network::name(domain).ok()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_completed_with_a_domain() {
        for (name, want) in [
            ("api.example.com.corp.example.org", Some("api.example.com")),
            ("nas.corp.example.org", Some("nas")),
            ("corp.example.org", None),
            ("badcorp.example.org", None),
            ("api.example.com", None),
        ] {
            assert_eq!(without(name, "corp.example.org"), want, "{name}");
        }
    }
}
