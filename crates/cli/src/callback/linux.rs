//! Whose a connection is on Linux: the table of TCP sockets says it (proc_pid_net(5), `/proc/net/tcp`).

use std::{
    fs,
    net::{IpAddr, SocketAddr},
};

/// Whether the socket at the other end is one of the user's programs, or of root, who can do all that anyway.
pub fn is_ours(peer: SocketAddr, own: SocketAddr) -> bool {
    let user = nix::unistd::geteuid().as_raw();
    ["/proc/net/tcp", "/proc/net/tcp6"]
        .iter()
        .filter_map(|table| fs::read_to_string(table).ok())
        .any(|table| owner(&table, peer, own).is_some_and(|owner| owner == user || owner == 0))
}

/// The user whose socket has these addresses. One that nobody has open any more is nobody's: its row says root.
fn owner(table: &str, local: SocketAddr, remote: SocketAddr) -> Option<u32> {
    table.lines().skip(1).find_map(|row| {
        let fields: Vec<&str> = row.split_ascii_whitespace().collect();
        let ([_, here, there, ..], Some(uid), Some(inode)) = (fields.as_slice(), fields.get(7), fields.get(9)) else {
            return None;
        };
        let same = address(here) == Some(local) && address(there) == Some(remote);
        (same && *inode != "0").then(|| uid.parse().ok()).flatten()
    })
}

/// `0100007F:1F90`: 32-bit words in the machine's order, then the port.
fn address(text: &str) -> Option<SocketAddr> {
    let (ip, port) = text.split_once(':')?;
    let words: Option<Vec<u32>> =
        (0..ip.len() / 8).map(|at| u32::from_str_radix(ip.get(at * 8..at * 8 + 8)?, 16).ok()).collect();
    let bytes: Vec<u8> = words?.into_iter().flat_map(u32::to_ne_bytes).collect();
    let ip: IpAddr = match bytes.len() {
        4 => <[u8; 4]>::try_from(bytes).ok()?.into(),
        16 => <[u8; 16]>::try_from(bytes).ok()?.into(),
        _ => return None,
    };
    // A socket for IPv6 may have connected to an address of IPv4.
    Some(SocketAddr::new(ip.to_canonical(), u16::from_str_radix(port, 16).ok()?))
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use super::*;

    #[test]
    fn rows_of_the_table() {
        let head = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n";
        let row = |here: &str, uid: u32, inode: u32| {
            format!("{head}   0: {here} 0100007F:0007 01 00000000:00000000 00:00000000 00000000 {uid} 0 {inode} 1 0\n")
        };
        let at = |text: &str| text.parse::<SocketAddr>().unwrap();
        let of = |table: &str| owner(table, at("127.0.0.1:8080"), at("127.0.0.1:7"));
        if cfg!(target_endian = "little") {
            assert_eq!(of(&row("0100007F:1F90", 1001, 5)), Some(1001));
            assert_eq!(of(&row("0000000000000000FFFF00000100007F:1F90", 1001, 5)), Some(1001));
            assert_eq!(of(&row("0100007F:1F91", 1001, 5)), None);
            assert_eq!(of(&row("0200007F:1F90", 1001, 5)), None);
            assert_eq!(of(&row("0100007F:1F90", 0, 0)), None, "closed");
        }
        for odd in ["", head, "x\ny", "x\n0: a b c d e f g h i j", "x\n0: 0100007F:0 :1 0 0 0 0 0 0 1"] {
            assert_eq!(of(odd), None, "{odd:?}");
        }
    }

    #[test]
    fn our_own_connection_is_ours() {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let own = listener.local_addr().unwrap();
        let stream = TcpStream::connect(own).unwrap();
        let (accepted, peer) = listener.accept().unwrap();
        assert!(is_ours(peer, own));
        assert!(!is_ours("127.0.0.1:1".parse().unwrap(), own));
        drop((stream, accepted));
    }
}
