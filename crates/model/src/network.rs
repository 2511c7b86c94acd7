//! Hosts that a server may reach, as profiles and `firedoor grants` name them.

use std::{
    fmt,
    net::{IpAddr, Ipv6Addr},
    str::FromStr,
};

use serde::{Deserialize, Serialize};

use crate::Untrusted;

/// Longest host name (RFC 1035 §2.3.4), without the final dot.
pub const MAX_NAME: usize = 253;
/// Longest label of one.
const MAX_LABEL: usize = 63;

/// Which hosts a grant is about.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Host {
    /// Every public address, by name or by number: `*`.
    Any,
    /// Every name below this one, itself not: `*.example.com`.
    Below(String),
    /// This name, lower case, without the final dot.
    Name(String),
    /// This address. The only way to grant one that is not public.
    Address(IpAddr),
}

/// A port of a transport.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Port {
    /// Connections.
    Tcp(u16),
    /// Datagrams.
    Udp(u16),
}

/// A host, and one TCP port or all, or one UDP port: `api.example.com`, `*.example.com:443`, `127.0.0.1:5432`, `[::1]:80`,
/// `*`, `time.example.com:123/udp`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct HostGrant {
    /// Which hosts.
    pub host: Host,
    /// Which port; all of TCP when absent.
    pub port: Option<Port>,
}

/// A text that names no hosts.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{text:?} is no host ({why}): write NAME, *.NAME, an address, or *, and :PORT if only one port is meant, or :PORT/udp"
)]
pub struct HostError {
    text: String,
    why: &'static str,
}

impl FromStr for HostGrant {
    type Err = HostError;

    fn from_str(text: &str) -> Result<Self, HostError> {
        parse(text).map_err(|why| HostError { text: text.chars().take(80).collect(), why })
    }
}

fn parse(text: &str) -> Result<HostGrant, &'static str> {
    let (text, udp) = text.strip_suffix("/udp").map_or((text, false), |text| (text, true));
    let (host, port) = if let Some(rest) = text.strip_prefix('[') {
        let (inside, rest) = rest.split_once(']').ok_or("the bracket is not closed")?;
        let address: Ipv6Addr = inside.parse().map_err(|_| "what is in brackets is no IPv6 address")?;
        let port = match rest {
            "" => None,
            rest => Some(rest.strip_prefix(':').ok_or("after the bracket comes :PORT or nothing")?),
        };
        (Host::Address(address.to_canonical()), port)
    } else if let Ok(address) = text.parse::<IpAddr>() {
        (Host::Address(address.to_canonical()), None)
    } else {
        let (host, port) = text.split_once(':').map_or((text, None), |(host, port)| (host, Some(port)));
        (host_of(host)?, port)
    };
    let port = match port {
        None if udp => return Err("datagrams need a port: NAME:PORT/udp"),
        None => None,
        Some(port) => match port.parse() {
            Ok(0) | Err(_) => return Err("a port is a number from 1 to 65535"),
            Ok(port) => Some(if udp { Port::Udp(port) } else { Port::Tcp(port) }),
        },
    };
    Ok(HostGrant { host, port })
}

fn host_of(text: &str) -> Result<Host, &'static str> {
    if text == "*" {
        return Ok(Host::Any);
    }
    if let Ok(address) = text.parse::<IpAddr>() {
        return Ok(Host::Address(address));
    }
    if let Some(parent) = text.strip_prefix("*.") {
        let parent = name(parent)?;
        return if parent.contains('.') { Ok(Host::Below(parent)) } else { Err("a whole top-level domain") };
    }
    name(text).map(Host::Name)
}

/// A host name in its normal form: lower case, without the final dot. The error says what is wrong with it.
pub fn name(text: &str) -> Result<String, &'static str> {
    let text = text.strip_suffix('.').unwrap_or(text);
    if text.is_empty() || text.len() > MAX_NAME {
        return Err("a name has 1 to 253 characters");
    }
    let allowed = |b: u8| b.is_ascii_alphanumeric() || b == b'-' || b == b'_';
    for label in text.split('.') {
        if label.is_empty() || label.len() > MAX_LABEL {
            return Err("a name's parts have 1 to 63 characters");
        }
        if !label.bytes().all(allowed) {
            return Err(
                "a name consists of letters, digits, \"-\", \"_\" and dots; others are written in their xn-- form",
            );
        }
    }
    // inet_aton(3) reads "127.1" and "0x7f000001" as addresses.
    let last = text.rsplit('.').next().unwrap_or_default();
    if last.bytes().next().is_some_and(|b| b.is_ascii_digit()) {
        return Err("the last part of a name does not begin with a digit, and this is no address in its usual form");
    }
    Ok(text.to_ascii_lowercase())
}

impl HostGrant {
    /// Whether a name, in its normal form, is meant, on any port.
    pub fn names(&self, name: &str) -> bool {
        match &self.host {
            Host::Any => true,
            Host::Below(parent) => {
                name.strip_suffix(parent.as_str()).is_some_and(|rest| rest.len() > 1 && rest.ends_with('.'))
            }
            Host::Name(own) => own == name,
            Host::Address(_) => false,
        }
    }

    /// Whether this port is meant.
    pub fn at(&self, port: Port) -> bool {
        self.port.map_or(matches!(port, Port::Tcp(_)), |own| own == port)
    }
}

impl fmt::Display for HostGrant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.host, self.port) {
            (Host::Any, _) => f.write_str("*")?,
            (Host::Below(parent), _) => write!(f, "*.{parent}")?,
            (Host::Name(name), _) => f.write_str(name)?,
            (Host::Address(IpAddr::V6(address)), Some(_)) => write!(f, "[{address}]")?,
            (Host::Address(address), _) => write!(f, "{address}")?,
        }
        match self.port {
            None => Ok(()),
            Some(Port::Tcp(port)) => write!(f, ":{port}"),
            Some(Port::Udp(port)) => write!(f, ":{port}/udp"),
        }
    }
}

impl TryFrom<String> for HostGrant {
    type Error = HostError;

    fn try_from(text: String) -> Result<Self, HostError> {
        text.parse()
    }
}

impl From<HostGrant> for String {
    fn from(grant: HostGrant) -> Self {
        grant.to_string()
    }
}

/// A name whose addresses are given and not looked up, as a line of `/etc/hosts` does.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct KnownName {
    /// In its normal form.
    pub name: String,
    /// At least one.
    pub addresses: Vec<IpAddr>,
}

/// What a server may reach when its connections are judged one by one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Hosts {
    /// Connections and datagrams to these, and nothing else.
    pub allowed: Vec<HostGrant>,
    /// Whether it may listen on the loopback interface.
    #[serde(default)]
    pub listen: bool,
    /// Names that are not looked up.
    #[serde(default)]
    pub known: Vec<KnownName>,
    /// Whether somebody can be asked about public hosts that are not allowed. Otherwise they are refused.
    #[serde(default)]
    pub ask: bool,
    /// Hosts that are refused without a question unless they are allowed.
    #[serde(default)]
    pub refuse: Vec<HostGrant>,
    /// Hosts whose connections go to this machine instead. They are not looked up.
    #[serde(default)]
    pub led: Vec<Led>,
}

/// A host whose connections go to a port of 127.0.0.1 instead.
#[derive(Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Led {
    /// Its name, in its normal form.
    pub name: String,
    /// Its port.
    pub port: u16,
    /// The port of 127.0.0.1.
    pub at: u16,
    /// What each connection begins with there, so that no other process can make one.
    pub key: String,
}

/// Without the key.
impl fmt::Debug for Led {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{} at {}", self.name, self.port, self.at)
    }
}

/// A connection that waits for somebody's word. Others to the same host and port wait with it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct HostQuestion {
    /// Its number, never used again for this server process.
    pub id: u64,
    /// Name or address, and port.
    pub to: HostGrant,
    /// The process that asked first.
    pub pid: i32,
    /// Its executable, as the kernel names it.
    pub program: Untrusted,
}

/// The answer to a [`HostQuestion`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct HostRuling {
    /// The question's number.
    pub id: u64,
    /// Whether what waits may go on; otherwise it is cut off.
    pub allow: bool,
    /// Whether that holds for later connections of this server process, too.
    pub lasting: bool,
}

/// Something a server tried and was refused.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Attempt {
    /// The process.
    pub pid: i32,
    /// Its executable, as the kernel names it.
    pub program: Untrusted,
    /// What it tried.
    pub kind: AttemptKind,
    /// Host and port, or a path.
    pub target: Untrusted,
    /// Why it was refused, and what would allow it, in our words.
    pub reason: String,
}

/// Kinds of refused attempts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AttemptKind {
    /// To look a host up, to connect or to send to it.
    Network,
    /// To listen for connections.
    Listen,
    /// To reach a Unix socket.
    Socket,
    /// To use more of something than its limits allow.
    Resource,
    /// To change what has a protected name in a granted tree.
    File,
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn grant(text: &str) -> HostGrant {
        text.parse().unwrap()
    }

    #[test]
    fn hosts_in_words() {
        for (text, want) in [
            ("Api.Example.COM.", "api.example.com"),
            ("example.com:443", "example.com:443"),
            ("*.example.com:1", "*.example.com:1"),
            ("*", "*"),
            ("*:443", "*:443"),
            ("localhost", "localhost"),
            ("127.0.0.1:80", "127.0.0.1:80"),
            ("::1", "::1"),
            ("[::1]", "::1"),
            ("[::1]:80", "[::1]:80"),
            ("::ffff:10.0.0.1", "10.0.0.1"),
            ("Time.example.com:123/udp", "time.example.com:123/udp"),
            ("[::1]:443/udp", "[::1]:443/udp"),
            ("*:443/udp", "*:443/udp"),
            ("xn--bcher-kva.example", "xn--bcher-kva.example"),
        ] {
            assert_eq!(grant(text).to_string(), want);
            assert_eq!(grant(want), grant(text), "{text}");
        }
        for text in [
            "",
            ".",
            "a..b",
            "*.",
            "*.com",
            "a*.com",
            "*.*.com",
            "a b",
            "bücher.example",
            "127.1",
            "0x7f.1",
            "1.2.3.4.5",
            "a:0",
            "a:65536",
            "a:",
            "a:b",
            "a/udp",
            "a:0/udp",
            "a:1/tcp",
            "a:1/udp/udp",
            "/udp",
            "[::1",
            "[::1]x",
            "[a]:1",
            "http://a",
            "a/b",
            "a@b",
            &"a".repeat(64),
            &["a"; 130].join("."),
        ] {
            assert!(text.parse::<HostGrant>().is_err(), "{text:?}");
        }
    }

    #[test]
    fn what_is_meant() {
        for (text, name, want) in [
            ("example.com", "example.com", true),
            ("example.com", "a.example.com", false),
            ("*.example.com", "a.example.com", true),
            ("*.example.com", "a.b.example.com", true),
            ("*.example.com", "example.com", false),
            ("*.example.com", ".example.com", false),
            ("*.example.com", "badexample.com", false),
            ("*", "anything", true),
            ("127.0.0.1", "127.0.0.1", false),
        ] {
            assert_eq!(grant(text).names(name), want, "{text} {name}");
        }
        for (text, port, want) in [
            ("a.b", Port::Tcp(1), true),
            ("a.b", Port::Udp(1), false),
            ("a.b:7", Port::Tcp(7), true),
            ("a.b:7", Port::Tcp(8), false),
            ("a.b:7", Port::Udp(7), false),
            ("a.b:7/udp", Port::Udp(7), true),
            ("a.b:7/udp", Port::Udp(8), false),
            ("a.b:7/udp", Port::Tcp(7), false),
        ] {
            assert_eq!(grant(text).at(port), want, "{text} {port:?}");
        }
    }

    proptest! {
        #[test]
        fn what_is_shown_reads_back(text in "\\PC{0,40}|[a-c.*]{1,5}(:[0-9]{1,5})?(/udp)?") {
            if let Ok(grant) = text.parse::<HostGrant>() {
                prop_assert_eq!(grant.to_string().parse::<HostGrant>().unwrap(), grant);
            }
        }
    }
}
