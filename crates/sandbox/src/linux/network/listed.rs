//! What is known of a server whose connections are judged by lists: its names, its look-ups, its sockets.

use std::{
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    os::fd::AsFd,
    time::Instant,
};

use firedoor_model::{
    credentials::embedded,
    limits::Rates,
    network::{self, AttemptKind, Host, HostGrant, Hosts, KnownName, Led, Port},
};
use nix::{errno::Errno, libc};

use super::{
    address::{self, Address},
    asking::Asking,
    attempts::Attempts,
    caller::{Caller, Socket},
    caps::Caps,
    dns::{Answer, Family, Question},
    judge::bind_here,
    names::Names,
    policy::{Policy, Refusal, is_localhost},
    public::is_public,
    resolver::{Resolver, own_addresses},
    stub::{Query, Stub},
    unix::Sockets,
};
use crate::linux::sys;

/// Questions that wait for a look-up.
const MAX_WAITING: usize = 256;

/// State of a server whose connections are judged by lists.
pub(super) struct Listed {
    pub(super) policy: Policy,
    pub(super) caps: Caps,
    /// This machine's own domain.
    domain: Option<String>,
    pub(super) listen: bool,
    pub(super) names: Names,
    led: Vec<Led>,
    pub(super) resolver: Resolver,
    pub(super) stub: Stub,
    pub(super) waiting: Vec<(Query, Question, String)>,
    pub(super) sockets: Sockets,
    /// Absent where nobody can be asked and nothing is counted.
    pub(super) asking: Option<Asking>,
}

impl Listed {
    pub fn new(hosts: &Hosts, rates: Rates, sockets: Sockets) -> nix::Result<Self> {
        let errno = |e: std::io::Error| Errno::from_raw(e.raw_os_error().unwrap_or(libc::EIO));
        let mut known = hosts.known.clone();
        let addresses = vec![Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()];
        known.push(KnownName { name: "localhost".into(), addresses });
        let relays = hosts.ask || rates.sent_to_one.is_some() || !hosts.led.is_empty();
        let mut names = Names::default();
        for led in &hosts.led {
            // Before the server can have used them all up.
            names.reserve(&led.name).ok_or(Errno::E2BIG)?;
        }
        Ok(Self {
            policy: Policy::new(hosts.allowed.clone()),
            caps: Caps::new(rates, Instant::now()),
            domain: own_domain(),
            listen: hosts.listen,
            names,
            led: hosts.led.clone(),
            resolver: Resolver::new(known)?,
            stub: Stub::new().map_err(errno)?,
            waiting: Vec::new(),
            sockets,
            asking: relays.then(|| Asking::new(hosts.ask, hosts.refuse.clone())),
        })
    }

    /// What a destination is called, and its real address where it may be reached.
    pub(super) fn real(&mut self, to: SocketAddr, port: Port) -> (String, Result<SocketAddr, Refusal>) {
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

    /// Where connections to this host go instead, if to anywhere else.
    pub(super) fn led(&self, to: SocketAddr) -> Option<Led> {
        let to = address::destination(to);
        let (known, _) = self.names.meant_by(to.ip())?;
        self.led.iter().find(|led| led.name == known.name && led.port == to.port()).cloned()
    }

    /// Where a connection goes that is allowed and has to pass where its bytes are counted.
    pub(super) fn metered(&mut self, to: SocketAddr) -> Option<HostGrant> {
        let port = Port::Tcp(to.port());
        let allowed = self.counts_bytes(to, port) && self.real(to, port).1.is_ok();
        if allowed { self.remote(to) } else { None }
    }

    /// Whether what is sent there counts. Who grants an address by its number means something of their own.
    fn counts_bytes(&self, to: SocketAddr, port: Port) -> bool {
        self.caps.counts_bytes() && !self.policy.is_literal(address::destination(to).ip(), port)
    }

    /// The same as [`Self::real`] for a datagram of so many bytes, which count.
    pub(super) fn datagram(&mut self, to: SocketAddr, bytes: usize) -> (String, Result<SocketAddr, Refusal>) {
        let port = Port::Udp(to.port());
        let (target, verdict) = self.real(to, port);
        let counts = self.counts_bytes(to, port);
        let verdict = verdict.and_then(|real| {
            if counts {
                self.caps.sent(Instant::now(), &format!("{target}/udp"), bytes).map(|()| real)
            } else {
                Ok(real)
            }
        });
        (target, verdict)
    }

    /// The same for a socket that is to be connected for datagrams. What it sends then, nobody sees.
    pub(super) fn connected_udp(&mut self, to: SocketAddr) -> (String, Result<SocketAddr, Refusal>) {
        let port = Port::Udp(to.port());
        let counts = self.counts_bytes(to, port);
        let (target, verdict) = self.counted(to, port);
        (target, verdict.and_then(|real| if counts { Err(Refusal::Uncounted) } else { Ok(real) }))
    }

    /// The same for a connection, which counts.
    pub(super) fn counted(&mut self, to: SocketAddr, port: Port) -> (String, Result<SocketAddr, Refusal>) {
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
    pub(super) fn relayed(&self, to: SocketAddr, refusal: Refusal) -> Option<HostGrant> {
        let can_ask = self.asking.as_ref().is_some_and(Asking::can_ask);
        if can_ask && refusal == Refusal::NotGranted { self.remote(to) } else { None }
    }

    /// A host as it is granted and asked about, unless it is this machine.
    fn remote(&self, to: SocketAddr) -> Option<HostGrant> {
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
    pub(super) fn ask(
        &mut self,
        attempts: &mut Attempts,
        query: &Query,
        question: &Question,
    ) -> Result<Answer, String> {
        let Some(name) = &question.name else { return Ok(Answer::NoSuchName) };
        if let Some(address) = question.reverse() {
            // Nobody else is asked: what names an address has is no business of the server's.
            let known = address.and_then(|ip| self.names.meant_by(ip));
            return Ok(known.map_or(Answer::NoSuchName, |(known, _)| Answer::Host(known.name.clone())));
        }
        if self.led.iter().any(|led| led.name == *name) {
            // It is not looked up: it stands for the way through us, whatever its addresses are.
            return Ok(self.names.reserve(name).map_or(Answer::Failed, |stand_in| Answer::Addresses(vec![stand_in])));
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
    pub(super) fn known(&self, attempts: &mut Attempts, query: &Query, question: &Question, name: &str) -> Answer {
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
