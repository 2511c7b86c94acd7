//! The decoders of what comes from servers, for the fuzz targets in `tests/fuzz`: bytes in, and a panic when a property
//! does not hold.
#![expect(clippy::panic, clippy::unwrap_used, reason = "properties of fuzz targets fail like tests")]

use std::net::IpAddr;

use nix::libc;

use super::{
    address::{self, Address},
    dns::{Answer, Question},
    message::{self, Header},
    stream,
};

/// A question is answered with a message of the same number and question, whose records end where it ends.
pub fn dns(packet: &[u8]) {
    let Some(question) = Question::parse(packet) else { return };
    let _ = question.reverse();
    let ips: Vec<IpAddr> = ["198.18.0.8", "198.18.0.9", "fd9d::8"].map(|ip| ip.parse().unwrap()).into();
    let answers = [Answer::Addresses(ips), Answer::Host("a.example".into()), Answer::NoSuchName, Answer::Failed];
    for answer in answers {
        let bytes = question.answer(&answer);
        assert_eq!(bytes[..2], packet[..2]);
        assert!(bytes[2] & 0x80 != 0 && bytes.len() <= 512);
        let mut at = 12 + bytes[12..].iter().scan(0usize, |left, b| name_goes_on(left, *b)).count() + 5;
        assert_eq!(bytes[12..at], packet[12..at]);
        for _ in 0..u16::from_be_bytes([bytes[6], bytes[7]]) {
            assert_eq!(bytes[at..at + 2], [0xc0, 12]);
            at += 12 + usize::from(u16::from_be_bytes([bytes[at + 10], bytes[at + 11]]));
        }
        assert_eq!(at, bytes.len());
        assert_eq!(Question::parse(&bytes), None, "an answer is no question");
    }
}

/// Whether this byte belongs to a name whose current label has `left` more bytes.
fn name_goes_on(left: &mut usize, byte: u8) -> Option<()> {
    if *left > 0 {
        *left -= 1;
    } else if byte == 0 {
        return None;
    } else {
        *left = usize::from(byte);
    }
    Some(())
}

/// Messages of a stream are cut out without losing a byte.
pub fn dns_stream(bytes: &[u8]) {
    let mut rest = bytes;
    while let Ok(Some((message, next))) = stream::split(rest) {
        assert_eq!(message.len() + next.len() + 2, rest.len());
        dns(message);
        rest = next;
    }
}

/// What is decoded means the same when it is encoded and decoded again. The first byte chooses the socket's family.
pub fn socket_address(bytes: &[u8]) {
    let Some((family, bytes)) = bytes.split_first() else { return };
    let families = [libc::AF_INET, libc::AF_INET6, libc::AF_UNIX, libc::AF_NETLINK, libc::AF_VSOCK];
    let domain = families[usize::from(*family) % families.len()];
    let Ok(found) = Address::decode(bytes, domain) else { return };
    let again = match &found {
        Address::Inet(to) => address::encode(*to, domain),
        Address::Netlink { port, groups } => address::netlink(*port, *groups),
        Address::Path(path) => {
            assert!(!path.is_empty() && !path.contains(&0));
            return;
        }
        Address::Nameless | Address::Unspecified => return,
    };
    assert_eq!(Address::decode(&again, domain), Ok(found));
}

/// Message headers, blocks and control data.
pub fn message(bytes: &[u8]) {
    let _ = (Header::decode(bytes), message::blocks(bytes), message::datagram_options(bytes));
    for at in message::rights(bytes).unwrap_or_default() {
        if message::right(bytes, at).is_err() {
            panic!("a descriptor outside the control data");
        }
    }
}

/// Starts of programs.
pub fn program(bytes: &[u8]) {
    let _ = crate::linux::elf::parse(bytes);
}
