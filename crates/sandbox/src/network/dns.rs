//! DNS messages (RFC 1035 §4), as far as a stub needs them: one question in, addresses out. Pure.

use std::net::IpAddr;

use firedoor_model::network;

const HEADER: usize = 12;
/// Longest question that is read. A name has at most 255 bytes; EDNS options follow it.
pub(crate) const MAX_QUERY: usize = 1232;
/// Type A (RFC 1035) and AAAA (RFC 3596).
const A: u16 = 1;
const AAAA: u16 = 28;
const CLASS_IN: u16 = 1;
/// Seconds for which an answer may be kept.
const TTL: u32 = 30;

/// One question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Question {
    /// The name in its normal form; `None` when it cannot be a host's.
    pub name: Option<String>,
    /// Asked for: IPv4 addresses, IPv6 addresses, or something else.
    pub family: Option<Family>,
    /// Header and question as they came.
    start: Vec<u8>,
}

/// Of addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Family {
    V4,
    V6,
}

/// What to answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// These; with none, the name exists without any.
    Addresses(Vec<IpAddr>),
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
            _ => None,
        };
        let name = if printable { network::name(&labels.join(".")).ok() } else { None };
        Some(Self { name, family, start: packet.get(..at)?.to_vec() })
    }

    /// The message that answers this question.
    pub fn answer(&self, answer: &Answer) -> Vec<u8> {
        let mut out = self.start.clone();
        let (code, addresses): (u8, &[IpAddr]) = match answer {
            Answer::Addresses(addresses) => (0, addresses),
            Answer::NoSuchName => (3, &[]),
            Answer::Failed => (2, &[]),
        };
        let mut count: u16 = 0;
        for address in addresses {
            let (kind, data) = match (self.family, address) {
                (Some(Family::V4), IpAddr::V4(ip)) => (A, ip.octets().to_vec()),
                (Some(Family::V6), IpAddr::V6(ip)) => (AAAA, ip.octets().to_vec()),
                _ => continue,
            };
            // A pointer to the name in the question.
            out.extend([0xc0, HEADER as u8]);
            out.extend(kind.to_be_bytes());
            out.extend(CLASS_IN.to_be_bytes());
            out.extend(TTL.to_be_bytes());
            out.extend(u16::try_from(data.len()).unwrap_or_default().to_be_bytes());
            out.extend(data);
            count += 1;
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
