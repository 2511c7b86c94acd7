//! DNS messages (RFC 1035 §4), as far as a stub needs them: one question in, addresses out. Pure.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use firedoor_model::network;

const HEADER: usize = 12;
/// Longest question that is read. A name has at most 255 bytes; EDNS options follow it.
pub(crate) const MAX_QUERY: usize = 1232;
/// Type A (RFC 1035) and AAAA (RFC 3596).
const A: u16 = 1;
const AAAA: u16 = 28;
/// Which name an address has (RFC 1035 §3.5).
const PTR: u16 = 12;
/// All there is (RFC 8482: or a part of it).
const ANY: u16 = 255;
const CLASS_IN: u16 = 1;
/// Seconds for which an answer may be kept.
const TTL: u32 = 30;

/// One question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Question {
    /// The name in its normal form; `None` when it cannot be a host's.
    pub name: Option<String>,
    /// Asked for: addresses, or something else.
    pub family: Option<Family>,
    /// Header and question as they came.
    start: Vec<u8>,
}

/// Of addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Family {
    V4,
    V6,
    Any,
}

impl Family {
    pub fn has(self, ip: IpAddr) -> bool {
        match self {
            Self::V4 => ip.is_ipv4(),
            Self::V6 => ip.is_ipv6(),
            Self::Any => true,
        }
    }
}

/// What to answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// These; with none, the name exists without any.
    Addresses(Vec<IpAddr>),
    /// The address that was asked about is this host's.
    Host(String),
    /// There is no such name.
    NoSuchName,
    /// It could not be found out.
    Failed,
}

impl Question {
    /// Reads a query. `None` when it is no standard query with one question, which gets no answer.
    pub fn parse(packet: &[u8]) -> Option<Self> {
        let header = packet.first_chunk::<HEADER>()?;
        let [_, _, flags, _, count_high, count_low, ..] = *header;
        // QR is 0 (a query), the opcode is 0 (standard), one question.
        if flags & 0xf8 != 0 || (count_high, count_low) != (0, 1) {
            return None;
        }
        let mut at = HEADER;
        let mut labels: Vec<String> = Vec::new();
        let mut printable = true;
        loop {
            let length = usize::from(*packet.get(at)?);
            at += 1;
            if length == 0 {
                break;
            }
            // Two high bits mark a pointer, of which a query has none.
            if length > 63 || at + length - HEADER > 255 {
                return None;
            }
            let label = packet.get(at..at + length)?;
            at += length;
            printable &= label.is_ascii() && !label.contains(&b'.');
            labels.push(String::from_utf8_lossy(label).into_owned());
        }
        let (&[t0, t1, c0, c1], _) = packet.get(at..)?.split_first_chunk::<4>()?;
        at += 4;
        let family = match (u16::from_be_bytes([t0, t1]), u16::from_be_bytes([c0, c1])) {
            (A, CLASS_IN) => Some(Family::V4),
            (AAAA, CLASS_IN) => Some(Family::V6),
            (ANY, CLASS_IN) => Some(Family::Any),
            _ => None,
        };
        let name = if printable { network::name(&labels.join(".")).ok() } else { None };
        Some(Self { name, family, start: packet.get(..at)?.to_vec() })
    }

    /// The address whose name is asked for, when the name is of that kind. The outer `None`: it is not.
    pub fn reverse(&self) -> Option<Option<IpAddr>> {
        let name = self.name.as_deref()?;
        let parts = |text: &str, radix| -> Option<Vec<u8>> {
            text.rsplit('.').map(|part| u8::from_str_radix(part, radix).ok()).collect()
        };
        if let Some(text) = name.strip_suffix(".in-addr.arpa") {
            let octets: Option<[u8; 4]> = parts(text, 10).and_then(|p| p.try_into().ok());
            return Some(octets.map(|o| Ipv4Addr::from(o).into()));
        }
        let nibbles: Option<[u8; 32]> = parts(name.strip_suffix(".ip6.arpa")?, 16).and_then(|p| p.try_into().ok());
        let ip = nibbles.map(|n| n.iter().fold(0, |ip, n| (ip << 4) | u128::from(n & 0xf)));
        Some(ip.map(|ip| Ipv6Addr::from_bits(ip).into()))
    }

    /// The message that answers this question.
    pub fn answer(&self, answer: &Answer) -> Vec<u8> {
        let mut out = self.start.clone();
        let code: u8 = match answer {
            Answer::Addresses(_) | Answer::Host(_) => 0,
            Answer::NoSuchName => 3,
            Answer::Failed => 2,
        };
        let records: Vec<(u16, Vec<u8>)> = match answer {
            Answer::Addresses(all) => {
                let wanted = all.iter().filter(|ip| self.family.is_some_and(|f| f.has(**ip)));
                wanted
                    .map(|ip| match ip {
                        IpAddr::V4(ip) => (A, ip.octets().to_vec()),
                        IpAddr::V6(ip) => (AAAA, ip.octets().to_vec()),
                    })
                    .collect()
            }
            Answer::Host(name) if self.start.ends_with(&[0, PTR as u8, 0, CLASS_IN as u8]) => vec![(PTR, labels(name))],
            _ => Vec::new(),
        };
        let count = u16::try_from(records.len()).unwrap_or_default();
        for (kind, data) in records {
            // A pointer to the name in the question.
            out.extend([0xc0, HEADER as u8]);
            out.extend(kind.to_be_bytes());
            out.extend(CLASS_IN.to_be_bytes());
            out.extend(TTL.to_be_bytes());
            out.extend(u16::try_from(data.len()).unwrap_or_default().to_be_bytes());
            out.extend(data);
        }
        if let Some([_, _, flags, more, _, _, counts @ ..]) = out.first_chunk_mut::<HEADER>() {
            // Response, recursion desired as asked, recursion available.
            *flags = 0x80 | (*flags & 1);
            *more = 0x80 | code;
            let [a0, a1, rest @ ..] = counts;
            [*a0, *a1] = count.to_be_bytes();
            *rest = [0; 4];
        }
        out
    }
}

/// A name in its normal form, as a message has it.
fn labels(name: &str) -> Vec<u8> {
    let label = |l: &str| [&[l.len() as u8], l.as_bytes()].concat();
    name.split('.').flat_map(label).chain([0]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn query(name: &str, kind: u16) -> Vec<u8> {
        let mut out = vec![0x12, 0x34, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0];
        for label in name.split('.').filter(|l| !l.is_empty()) {
            out.push(label.len().try_into().unwrap());
            out.extend(label.bytes());
        }
        out.push(0);
        out.extend(kind.to_be_bytes());
        out.extend([0, 1]);
        out
    }

    #[test]
    fn questions_and_answers() {
        let asked = Question::parse(&query("Api.Example.com", 1)).unwrap();
        assert_eq!((asked.name.as_deref(), asked.family), (Some("api.example.com"), Some(Family::V4)));
        let ips: Vec<IpAddr> = ["198.18.0.8", "::1"].map(|t| t.parse().unwrap()).into();
        let answer = asked.answer(&Answer::Addresses(ips.clone()));
        assert_eq!(answer[..12], [0x12, 0x34, 0x81, 0x80, 0, 1, 0, 1, 0, 0, 0, 0]);
        assert!(answer.windows(11).any(|w| w == b"Api\x07Example"), "the name is echoed in its own case");
        assert!(answer.ends_with(&[0, 4, 198, 18, 0, 8]));
        assert_eq!(asked.answer(&Answer::NoSuchName)[2..8], [0x81, 0x83, 0, 1, 0, 0]);
        assert_eq!(asked.answer(&Answer::Failed)[3], 0x82);
        let asked = Question::parse(&query("a.example", 28)).unwrap();
        assert!(
            asked.answer(&Answer::Addresses(ips)).ends_with(&[0, 16, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1])
        );
        assert_eq!(Question::parse(&query("a.example", 65)).unwrap().family, None);
    }

    #[test]
    fn other_kinds_of_questions() {
        let of = |name: &str, kind| Question::parse(&query(name, kind)).unwrap();
        let ips: Vec<IpAddr> = ["198.18.0.8", "fd9d::8"].map(|t| t.parse().unwrap()).into();
        for (kind, count) in [(A, 1), (AAAA, 1), (ANY, 2), (PTR, 0), (16, 0), (33, 0), (65, 0)] {
            let answer = of("a.example", kind).answer(&Answer::Addresses(ips.clone()));
            assert_eq!(answer[..8], [0x12, 0x34, 0x81, 0x80, 0, 1, 0, count], "type {kind}");
        }
        let six = format!("8{}.d.9.d.f.ip6.arpa", ".0".repeat(27));
        for (name, want) in [
            ("a.example", None),
            ("8.0.18.198.in-addr.arpa", Some(Some(ips[0]))),
            ("8.0.18.198.in-addr.arpa.example", None),
            ("0.18.198.in-addr.arpa", Some(None)),
            ("256.0.18.198.in-addr.arpa", Some(None)),
            (six.as_str(), Some(Some(ips[1]))),
            (&six[2..], Some(None)),
        ] {
            assert_eq!(of(name, PTR).reverse(), want, "{name}");
        }
        let answer = of("8.0.18.198.in-addr.arpa", PTR).answer(&Answer::Host("a.example".into()));
        assert!(answer.ends_with(b"\0\x0c\0\x01\0\0\0\x1e\0\x0b\x01a\x07example\0"), "{answer:?}");
        let answer = of("8.0.18.198.in-addr.arpa", A).answer(&Answer::Host("a.example".into()));
        assert_eq!(answer[7], 0, "no other type");
    }

    #[test]
    fn what_is_no_question() {
        let good = query("a.example", 1);
        for (at, byte) in [(2, 0x81), (2, 0x28), (5, 2), (5, 0), (12, 0xc0), (12, 64)] {
            let mut bad = good.clone();
            bad[at] = byte;
            assert_eq!(Question::parse(&bad), None, "{at}");
        }
        assert!((0..good.len()).all(|n| Question::parse(&good[..n]).is_none()));
        assert_eq!(Question::parse(&query(&"abcdefgh.".repeat(40), 1)), None, "longer than a name");
        assert_eq!(Question::parse(&query("a b.example", 1)).unwrap().name, None);
        assert_eq!(Question::parse(&query("", 1)).unwrap().name, None);
    }

    proptest! {
        #[test]
        fn any_packet_is_survived(packet in prop::collection::vec(any::<u8>(), 0..300)) {
            if let Some(question) = Question::parse(&packet) {
                let answer = question.answer(&Answer::Addresses(vec!["198.18.0.8".parse().unwrap()]));
                prop_assert!(answer.len() <= packet.len() + 28);
                prop_assert_eq!(&answer[..2], &packet[..2]);
            }
        }
    }
}
