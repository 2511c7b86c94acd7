//! The hosts of addresses in a text, however their numbers are written.

use std::{
    net::{IpAddr, Ipv4Addr},
    sync::LazyLock,
};

use memchr::memmem::Finder;

/// Names under which every address has one: what stands before is the address.
const NAMED: [&str; 4] = [".nip.io", ".xip.io", ".sslip.io", ".localtest.me"];

/// Where in a text an address goes on behind its scheme.
pub(crate) fn schemes(text: &str) -> impl Iterator<Item = usize> {
    static MARK: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new("://"));
    MARK.find_iter(text.as_bytes()).map(|at| at + 3)
}

/// The hosts of the addresses in a text, without names and passwords.
pub(crate) fn hosts(text: &str) -> impl Iterator<Item = &str> {
    schemes(text).filter_map(|at| text.get(at..)).map(|rest| {
        let authority = rest.split(['/', '?', '#', ' ', '"', '\'', '\n']).next().unwrap_or_default();
        let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
        match host.strip_prefix('[') {
            Some(six) => six.split(']').next().unwrap_or_default(),
            None => host.split(':').next().unwrap_or_default(),
        }
    })
}

/// Whether a host is not this machine or one of its network.
pub(crate) fn public(host: &str) -> bool {
    match host.parse::<IpAddr>() {
        Ok(IpAddr::V4(ip)) => !(ip.is_loopback() || ip.is_private() || ip.is_link_local() || ip.is_unspecified()),
        Ok(IpAddr::V6(ip)) => {
            !(ip.is_loopback() || ip.is_unique_local() || ip.is_unicast_link_local() || ip.is_unspecified())
        }
        Err(_) => {
            let host = host.to_ascii_lowercase();
            host.contains('.')
                && !["localhost", "local", "internal", "lan", "home", "test"]
                    .iter()
                    .any(|end| host.rsplit('.').next() == Some(end))
        }
    }
}

/// A text whose first host is an address that is not written as usual, with that as usual.
pub(crate) fn as_usual(text: &str) -> Option<String> {
    hosts(text).find_map(|host| {
        let usual = usual(host).filter(|usual| usual != host)?;
        Some(text.replacen(host, &usual, 1))
    })
}

/// An address as it is usually written: numbers of one to four parts in octal, decimal or hex (inet_aton(3)), IPv4 within IPv6 (RFC 4291
/// section 2.5.5, RFC 6052), or in a name that is made of it.
fn usual(host: &str) -> Option<String> {
    let host = host.trim_end_matches('.').to_ascii_lowercase();
    if let Some(before) = NAMED.iter().find_map(|end| host.strip_suffix(end)) {
        let numbers = before.replace('-', ".");
        let last: Vec<&str> = numbers.rsplit('.').take(4).collect();
        return numbered(&last.into_iter().rev().collect::<Vec<_>>().join(".")).map(|ip| ip.to_string());
    }
    if host.contains(':') {
        let IpAddr::V6(ip) = host.parse().ok()? else { return None };
        let [.., a, b] = ip.segments();
        let within = ip.to_ipv4_mapped().or_else(|| {
            let four = || Ipv4Addr::from(u32::from(a) << 16 | u32::from(b));
            matches!(ip.segments(), [0x64, 0xff9b, 0, 0, 0, 0, ..]).then(four)
        });
        return Some(within.map_or_else(|| ip.to_string(), |ip| ip.to_string()));
    }
    numbered(&host).map(|ip| ip.to_string())
}

fn numbered(host: &str) -> Option<Ipv4Addr> {
    let parts: Vec<u32> = host.split('.').take(5).map(number).collect::<Option<_>>()?;
    let (last, first) = parts.split_last().filter(|(_, first)| first.len() <= 3)?;
    let room = 8 * (4 - first.len() as u32);
    let fits = first.iter().all(|part| *part <= 255) && u64::from(*last) < 1u64 << room;
    let head = first.iter().fold(0u64, |number, part| number << 8 | u64::from(*part));
    fits.then(|| Ipv4Addr::from((head << room | u64::from(*last)) as u32))
}

fn number(part: &str) -> Option<u32> {
    match part.strip_prefix("0x") {
        Some(hex) => u32::from_str_radix(hex, 16).ok(),
        None if part.len() > 1 && part.starts_with('0') => u32::from_str_radix(part, 8).ok(),
        None => part.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_known_however_they_are_written() {
        for host in [
            "2852039166",
            "0xa9fea9fe",
            "0xA9.0xFE.0xA9.0xFE",
            "0251.0376.0251.0376",
            "169.16689662",
            "169.254.43518",
            "0xa9.254.0251.254",
            "169.254.169.254.nip.io",
            "a.169-254-169-254.sslip.io",
            "169.254.169.254.",
        ] {
            let text = format!("see http://me:pw@{host}:80/latest/meta-data");
            assert_eq!(as_usual(&text), Some("see http://me:pw@169.254.169.254:80/latest/meta-data".into()), "{host}");
        }
        for host in ["::ffff:169.254.169.254", "::ffff:a9fe:a9fe", "0:0:0:0:0:ffff:a9fe:a9fe", "64:ff9b::a9fe:a9fe"] {
            assert_eq!(usual(host).as_deref(), Some("169.254.169.254"), "{host}");
        }
        for text in [
            "http://169.254.169.254/",
            "https://example.net/a.b",
            "http://[::1]/",
            "http://1.2.3.4.5/",
            "http://999.1/",
            "http://08.1/",
            "://",
            "no address",
        ] {
            assert_eq!(as_usual(text), None, "{text}");
        }
    }

    proptest::proptest! {
        #[test]
        fn total(s in "\\PC*|(http://|0x|[0-9a-f:.]|nip.io|@|/)*") {
            as_usual(&s);
            hosts(&s).for_each(|host| { public(host); });
        }
    }
}
