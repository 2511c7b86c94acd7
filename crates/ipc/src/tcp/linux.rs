//! Asked of the kernel by the connection's own addresses (sock_diag(7)), which takes the same time however many connections
//! there are; where the kernel has no such answer, read from /proc/net/tcp (proc_pid_net(5)).

use std::{
    fs, io,
    net::{Ipv4Addr, SocketAddr, SocketAddrV4},
    os::fd::AsRawFd as _,
};

use nix::sys::socket::{AddressFamily, MsgFlags, NetlinkAddr, SockFlag, SockProtocol, SockType, recv, sendto, socket};

use super::OtherEnd;

/// Requests for one kind of socket (linux/sock_diag.h).
const SOCK_DIAG_BY_FAMILY: u16 = 20;
/// `NLM_F_REQUEST` (netlink(7)).
const REQUEST: u16 = 1;
/// Length of the request: a header of 16 bytes, 8 of what is wanted, and the addresses (linux/inet_diag.h).
const REQUEST_LENGTH: usize = 72;
/// Where the answer has the user and the inode: behind the header, 4 bytes, 48 of addresses and three numbers.
const UID: usize = 16 + 64;

/// See [`super::other_end`].
pub fn other_end(theirs: SocketAddr, ours: SocketAddr) -> io::Result<OtherEnd> {
    let (SocketAddr::V4(theirs), SocketAddr::V4(ours)) = (theirs, ours) else {
        return Err(io::Error::other("it is not an IPv4 connection"));
    };
    asked(theirs, ours).or_else(|_| listed(theirs, ours))
}

fn asked(theirs: SocketAddrV4, ours: SocketAddrV4) -> io::Result<OtherEnd> {
    let kind = (AddressFamily::Netlink, SockType::Datagram, SockFlag::SOCK_CLOEXEC);
    let diag = socket(kind.0, kind.1, kind.2, SockProtocol::NetlinkSockDiag)?;
    let request = request(theirs, ours);
    sendto(diag.as_raw_fd(), &request, &NetlinkAddr::new(0, 0), MsgFlags::empty())?;
    let mut answer = [0; 512];
    let count = recv(diag.as_raw_fd(), &mut answer, MsgFlags::MSG_DONTWAIT)?;
    read(answer.get(..count).unwrap_or_default()).ok_or_else(|| io::Error::other("the kernel knows no such socket"))
}

fn request(theirs: SocketAddrV4, ours: SocketAddrV4) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(REQUEST_LENGTH);
    bytes.extend((REQUEST_LENGTH as u32).to_ne_bytes());
    bytes.extend(SOCK_DIAG_BY_FAMILY.to_ne_bytes());
    bytes.extend(REQUEST.to_ne_bytes());
    bytes.extend([0; 8]);
    // AF_INET, TCP, nothing else about it, in every state.
    bytes.extend([2, 6, 0, 0]);
    bytes.extend(u32::MAX.to_ne_bytes());
    bytes.extend(theirs.port().to_be_bytes());
    bytes.extend(ours.port().to_be_bytes());
    for address in [theirs.ip(), ours.ip()] {
        bytes.extend(address.octets());
        bytes.extend([0; 12]);
    }
    bytes.extend([0; 4]);
    // Whatever its cookie is.
    bytes.extend([0xff; 8]);
    bytes
}

fn read(answer: &[u8]) -> Option<OtherEnd> {
    let number = |at: usize| Some(u32::from_ne_bytes(answer.get(at..at + 4)?.try_into().ok()?));
    let kind = u16::from_ne_bytes(answer.get(4..6)?.try_into().ok()?);
    let found = OtherEnd { uid: number(UID)?, inode: number(UID + 4)? };
    (kind == SOCK_DIAG_BY_FAMILY && found.inode != 0).then_some(found)
}

fn listed(theirs: SocketAddrV4, ours: SocketAddrV4) -> io::Result<OtherEnd> {
    // Programs that use IPv6 sockets for everything are in the second table.
    let tables = ["/proc/net/tcp", "/proc/net/tcp6"].map(fs::read_to_string);
    let find = |text: &String| text.lines().find_map(|line| of_line(line, theirs, ours));
    let found = tables.iter().filter_map(|text| text.as_ref().ok()).find_map(find);
    found.ok_or_else(|| io::Error::other("the kernel lists no such socket"))
}

/// Reads one line: number, local address, remote address, state, queues, timer, retransmissions, user, timeout, inode.
fn of_line(line: &str, theirs: SocketAddrV4, ours: SocketAddrV4) -> Option<OtherEnd> {
    let fields: Vec<&str> = line.split_ascii_whitespace().collect();
    let is = |field: usize, address: SocketAddrV4| fields.get(field).and_then(|text| endpoint(text)) == Some(address);
    if !is(1, theirs) || !is(2, ours) {
        return None;
    }
    Some(OtherEnd {
        uid: fields.get(7)?.parse().ok()?,
        inode: fields.get(9)?.parse().ok().filter(|inode| *inode != 0)?,
    })
}

/// An address as the kernel prints it: words of 32 bits in the machine's order, and the port. Of IPv6 only what stands for
/// IPv4.
fn endpoint(text: &str) -> Option<SocketAddrV4> {
    let (address, port) = text.split_once(':')?;
    let last = match address.len() {
        8 => address,
        32 => address.strip_prefix("0000000000000000FFFF0000")?,
        _ => return None,
    };
    let word = u32::from_str_radix(last, 16).ok()?;
    Some(SocketAddrV4::new(Ipv4Addr::from(word.to_ne_bytes()), u16::from_str_radix(port, 16).ok()?))
}

/// The numbers of a process's sockets.
pub fn sockets(pid: u32) -> impl Iterator<Item = u32> {
    let descriptors = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    descriptors.filter_map(|entry| {
        let target = fs::read_link(entry.path()).ok()?;
        target.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok()
    })
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use super::{super::Holders, *};
    use crate::process;

    #[test]
    fn the_other_end_is_found_both_ways() {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let ours = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (theirs, from) = listener.accept().unwrap();
        let (SocketAddr::V4(from), SocketAddr::V4(to)) = (from, theirs.local_addr().unwrap()) else { panic!() };
        let own = process::stat(std::process::id()).unwrap().process;
        let found = [asked(from, to).unwrap(), listed(from, to).unwrap()];
        for end in found {
            assert_eq!(end.uid, nix::unistd::getuid().as_raw());
            assert_eq!(Holders::default().of(end, &[]), Some(own));
            assert_eq!(Holders::default().of(end, &[own]), Some(own));
        }
        drop(ours);
        assert_eq!(Holders::default().of(found[0], &[own]), None);
        assert!(other_end(SocketAddr::V4(SocketAddrV4::new(*from.ip(), 1)), SocketAddr::V4(to)).is_err());
    }

    #[test]
    fn rows_of_the_table() {
        let at = |text: &str| text.parse::<SocketAddrV4>().unwrap();
        let of = |row: &str| of_line(row, at("127.0.0.1:8080"), at("127.0.0.1:7"));
        let word = format!("{:08X}", u32::from_ne_bytes([127, 0, 0, 1]));
        let row = |here: &str, port: &str, uid: u32, inode: u32| {
            format!("0: {here}:{port} {word}:0007 01 00000000:00000000 00:00000000 00000000 {uid} 0 {inode} 1 0")
        };
        let mapped = format!("0000000000000000FFFF0000{word}");
        for here in [&word, &mapped] {
            assert_eq!(of(&row(here, "1F90", 1001, 5)), Some(OtherEnd { uid: 1001, inode: 5 }));
            assert_eq!(of(&row(here, "1F91", 1001, 5)), None);
            assert_eq!(of(&row(here, "1F90", 0, 0)), None, "closed");
        }
        for odd in ["", "x", "0: a b c d e f g h i j", "0: 0100007F:0 :1 0 0 0 0 0 0 1"] {
            assert_eq!(of(odd), None, "{odd:?}");
        }
    }

    #[test]
    fn addresses_as_the_kernel_prints_them() {
        let want = Some("127.0.0.1:80".parse().unwrap());
        let word = format!("{:08X}", u32::from_ne_bytes([127, 0, 0, 1]));
        assert_eq!(endpoint(&format!("{word}:0050")), want);
        assert_eq!(endpoint(&format!("0000000000000000FFFF0000{word}:0050")), want);
        for text in ["", "x", "0100007F", "00000000000000000000000001000000:0050", "0100007F:x"] {
            assert_eq!(endpoint(text), None, "{text}");
        }
    }
}
