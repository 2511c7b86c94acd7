//! Socket addresses in the kernel's form. Pure: what is decoded is our copy.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6};

use nix::{errno::Errno, libc};

/// Length of `struct sockaddr_in`; the kernel refuses less (`inet_stream_connect`).
const SOCKADDR_IN: usize = size_of::<libc::sockaddr_in>();
/// Least length of `struct sockaddr_in6`: without the scope (`SIN6_LEN_RFC2133`, net/ipv6/addrconf_core.c).
const SOCKADDR_IN6_SHORT: usize = 24;
/// Length of `struct sockaddr_storage`; the kernel refuses more (`move_addr_to_kernel`).
pub(crate) const SOCKADDR_MAX: usize = size_of::<libc::sockaddr_storage>();

/// What an address names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Address {
    /// A host and port. IPv4 within IPv6 and the unspecified address are resolved to what the kernel takes them for.
    Inet(SocketAddr),
    /// A Unix socket's path, as the caller wrote it.
    Path(Vec<u8>),
    /// A Unix socket in the abstract namespace, or one without a name.
    Nameless,
    /// Netlink: receiving port and multicast groups.
    Netlink { port: u32, groups: u32 },
    /// `AF_UNSPEC`: for `connect`, the end of a connection.
    Unspecified,
}

impl Address {
    /// Decodes an address that was given to a socket of family `domain`.
    pub fn decode(bytes: &[u8], domain: i32) -> nix::Result<Self> {
        let (family, rest) = bytes.split_first_chunk::<2>().ok_or(Errno::EINVAL)?;
        let family = i32::from(u16::from_ne_bytes(*family));
        if family == libc::AF_UNSPEC {
            return Ok(Self::Unspecified);
        }
        match (domain, family) {
            (libc::AF_INET | libc::AF_INET6, libc::AF_INET) => {
                // An IPv6 socket takes an IPv4 address in some calls only; none needs it.
                if domain != libc::AF_INET {
                    return Err(Errno::EAFNOSUPPORT);
                }
                let (&[p0, p1, a, b, c, d], _) = rest.split_first_chunk::<6>().ok_or(Errno::EINVAL)?;
                if bytes.len() < SOCKADDR_IN {
                    return Err(Errno::EINVAL);
                }
                let ip = Ipv4Addr::new(a, b, c, d);
                Ok(Self::Inet(SocketAddr::new(ip.into(), u16::from_be_bytes([p0, p1]))))
            }
            (libc::AF_INET6, libc::AF_INET6) => {
                if bytes.len() < SOCKADDR_IN6_SHORT {
                    return Err(Errno::EINVAL);
                }
                let (port, rest) = rest.split_first_chunk::<2>().ok_or(Errno::EINVAL)?;
                let (ip, rest) = rest.get(4..).and_then(|r| r.split_first_chunk::<16>()).ok_or(Errno::EINVAL)?;
                let scope = rest.first_chunk::<4>().map_or(0, |s| u32::from_ne_bytes(*s));
                let (ip, port) = (Ipv6Addr::from(*ip), u16::from_be_bytes(*port));
                Ok(Self::Inet(match ip.to_canonical() {
                    IpAddr::V4(ip) => SocketAddr::new(ip.into(), port),
                    IpAddr::V6(ip) => SocketAddrV6::new(ip, port, 0, scope).into(),
                }))
            }
            (libc::AF_UNIX, libc::AF_UNIX) => Ok(match rest.split(|b| *b == 0).next() {
                None | Some([]) => Self::Nameless,
                Some(path) => Self::Path(path.to_owned()),
            }),
            (libc::AF_NETLINK, libc::AF_NETLINK) => {
                let fields = rest.get(2..10).ok_or(Errno::EINVAL)?;
                let (port, groups) = fields.split_first_chunk::<4>().ok_or(Errno::EINVAL)?;
                let groups = groups.first_chunk::<4>().ok_or(Errno::EINVAL)?;
                Ok(Self::Netlink { port: u32::from_ne_bytes(*port), groups: u32::from_ne_bytes(*groups) })
            }
            (libc::AF_INET | libc::AF_INET6 | libc::AF_UNIX | libc::AF_NETLINK, _) => Err(Errno::EAFNOSUPPORT),
            _ => Err(Errno::EACCES),
        }
    }
}

/// The address that a destination means: the unspecified one is this machine (`ip_route_output_key`, ip(7)).
pub(crate) fn destination(to: SocketAddr) -> SocketAddr {
    match to.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => SocketAddr::new(Ipv4Addr::LOCALHOST.into(), to.port()),
        IpAddr::V6(ip) if ip.is_unspecified() => SocketAddr::new(Ipv6Addr::LOCALHOST.into(), to.port()),
        _ => to,
    }
}

/// In the kernel's form, for a socket of family `domain`. An IPv4 address on an IPv6 socket is mapped.
pub(crate) fn encode(to: SocketAddr, domain: i32) -> Vec<u8> {
    let mut out = Vec::with_capacity(28);
    match (to, domain) {
        (SocketAddr::V4(to), libc::AF_INET) => {
            family(&mut out, libc::AF_INET);
            out.extend(to.port().to_be_bytes());
            out.extend(to.ip().octets());
            out.extend([0; 8]);
        }
        (to, _) => {
            let (ip, scope) = match to {
                SocketAddr::V4(to) => (to.ip().to_ipv6_mapped(), 0),
                SocketAddr::V6(to) => (*to.ip(), to.scope_id()),
            };
            family(&mut out, libc::AF_INET6);
            out.extend(to.port().to_be_bytes());
            out.extend([0; 4]);
            out.extend(ip.octets());
            out.extend(scope.to_ne_bytes());
        }
    }
    out
}

/// A netlink address.
pub(crate) fn netlink(port: u32, groups: u32) -> Vec<u8> {
    let mut out = Vec::with_capacity(12);
    family(&mut out, libc::AF_NETLINK);
    out.extend([0; 2]);
    out.extend(port.to_ne_bytes());
    out.extend(groups.to_ne_bytes());
    out
}

/// The end of a connection.
pub(crate) fn unspecified() -> Vec<u8> {
    vec![0; SOCKADDR_IN]
}

/// The address of a Unix socket.
pub(crate) fn unix(path: &str) -> Vec<u8> {
    let mut out = Vec::with_capacity(path.len() + 3);
    family(&mut out, libc::AF_UNIX);
    out.extend(path.as_bytes());
    out.push(0);
    out
}

fn family(out: &mut Vec<u8>, family: i32) {
    out.extend(u16::try_from(family).unwrap_or_default().to_ne_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn inet(text: &str) -> Address {
        Address::Inet(text.parse().unwrap())
    }

    #[test]
    fn what_addresses_mean() {
        let of = |text: &str, domain| encode(text.parse().unwrap(), domain);
        let (v4, v6) = (libc::AF_INET, libc::AF_INET6);
        let mut path = unix("/run/x");
        path.extend([7; 20]);
        for (bytes, domain, want) in [
            (of("1.2.3.4:5", v4), v4, Ok(inet("1.2.3.4:5"))),
            (of("1.2.3.4:5", v6), v6, Ok(inet("1.2.3.4:5"))),
            (of("[2001:db8::1]:5", v6), v6, Ok(inet("[2001:db8::1]:5"))),
            (of("[fe80::1%3]:5", v6), v6, Ok(inet("[fe80::1%3]:5"))),
            (of("1.2.3.4:5", v4), v6, Err(Errno::EAFNOSUPPORT)),
            (of("[::1]:5", v6), v4, Err(Errno::EAFNOSUPPORT)),
            (of("1.2.3.4:5", v4), libc::AF_UNIX, Err(Errno::EAFNOSUPPORT)),
            (of("1.2.3.4:5", v4), libc::AF_VSOCK, Err(Errno::EACCES)),
            (of("1.2.3.4:5", v4)[..15].to_vec(), v4, Err(Errno::EINVAL)),
            (of("[::1]:5", v6)[..23].to_vec(), v6, Err(Errno::EINVAL)),
            (of("[::1]:5", v6)[..24].to_vec(), v6, Ok(inet("[::1]:5"))),
            (unspecified(), v4, Ok(Address::Unspecified)),
            (vec![1], v4, Err(Errno::EINVAL)),
            (Vec::new(), v4, Err(Errno::EINVAL)),
            (path, libc::AF_UNIX, Ok(Address::Path(b"/run/x".to_vec()))),
            (vec![1, 0], libc::AF_UNIX, Ok(Address::Nameless)),
            (vec![1, 0, 0, b'x'], libc::AF_UNIX, Ok(Address::Nameless)),
            (netlink(7, 0), libc::AF_NETLINK, Ok(Address::Netlink { port: 7, groups: 0 })),
            (netlink(7, 0)[..11].to_vec(), libc::AF_NETLINK, Err(Errno::EINVAL)),
        ] {
            assert_eq!(Address::decode(&bytes, domain), want, "{bytes:?} {domain}");
        }
        assert_eq!(destination("0.0.0.0:1".parse().unwrap()), "127.0.0.1:1".parse().unwrap());
        assert_eq!(destination("[::]:1".parse().unwrap()), "[::1]:1".parse().unwrap());
    }

    proptest! {
        #[test]
        fn decoding_never_fails_badly(bytes in prop::collection::vec(any::<u8>(), 0..SOCKADDR_MAX), domain in 0i32..45) {
            let _ = Address::decode(&bytes, domain);
        }

        #[test]
        fn what_is_encoded_reads_back(ip in any::<[u8; 16]>(), port in any::<u16>(), v4 in any::<bool>()) {
            let ip: IpAddr = if v4 { IpAddr::from([ip[0], ip[1], ip[2], ip[3]]) } else { IpAddr::from(ip).to_canonical() };
            let to = SocketAddr::new(ip, port);
            prop_assert_eq!(Address::decode(&encode(to, libc::AF_INET6), libc::AF_INET6), Ok(Address::Inet(to)));
        }
    }
}
