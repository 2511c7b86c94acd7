//! Who is at the other end: processes and their ancestry, from /proc (proc(5)).

use std::{fs, io, os::fd::BorrowedFd, path::PathBuf};

use nix::sys::socket::{getsockopt, sockopt::PeerCredentials};
use serde::{Deserialize, Serialize};

/// Longest chain of parents followed.
const MAX_ANCESTRY: usize = 256;

/// A process: its number and its start time in clock ticks since boot, since numbers are used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Process {
    /// Process id.
    pub pid: u32,
    /// Field 22 of /proc/PID/stat.
    pub start: u64,
}

/// What /proc/PID/stat says.
#[derive(Clone, Copy, Debug)]
pub struct Stat {
    /// The process.
    pub process: Process,
    /// Its parent's number; 0 for the first process.
    pub parent: u32,
    /// Its session's leader.
    pub session: u32,
    /// Device of its controlling terminal; 0 for none.
    pub terminal: i32,
}

/// Reads one process. `NotFound` when it is gone.
pub fn stat(pid: u32) -> io::Result<Stat> {
    let text = fs::read(format!("/proc/{pid}/stat"))?;
    parse_stat(pid, &text).ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, format!("/proc/{pid}/stat")))
}

fn parse_stat(pid: u32, text: &[u8]) -> Option<Stat> {
    // The second field is the command name in parentheses, which may itself hold spaces and parentheses.
    let end = text.iter().rposition(|b| *b == b')')?;
    let rest = std::str::from_utf8(text.get(end + 1..)?).ok()?;
    let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
    // rest[0] is field 3, the state.
    Some(Stat {
        process: Process { pid, start: fields.get(19)?.parse().ok()? },
        parent: fields.get(1)?.parse().ok()?,
        session: fields.get(3)?.parse().ok()?,
        terminal: fields.get(4)?.parse().ok()?,
    })
}

/// The process and its ancestors, nearest first. Ends early where a process is gone.
pub fn ancestry(pid: u32) -> Vec<Stat> {
    let mut chain = Vec::new();
    let mut next = pid;
    while next != 0 && chain.len() < MAX_ANCESTRY {
        let Ok(stat) = stat(next) else { break };
        chain.push(stat);
        next = stat.parent;
    }
    chain
}

/// Every process there is now.
pub fn all() -> Vec<u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

/// The name of the executable, at most 15 bytes of it. A process may change its own.
pub fn name(pid: u32) -> Option<String> {
    let bytes = fs::read(format!("/proc/{pid}/comm")).ok()?;
    Some(String::from_utf8_lossy(bytes.trim_ascii_end()).into_owned())
}

/// The real user id.
pub fn user(pid: u32) -> Option<u32> {
    let text = fs::read(format!("/proc/{pid}/status")).ok()?;
    let line = text.split(|b| *b == b'\n').find_map(|line| line.strip_prefix(b"Uid:"))?;
    std::str::from_utf8(line).ok()?.split_ascii_whitespace().next()?.parse().ok()
}

/// The control groups (cgroups(7)), as one text.
pub fn group(pid: u32) -> Option<String> {
    fs::read_to_string(format!("/proc/{pid}/cgroup")).ok()
}

/// The executable, where it may be read.
pub fn executable(pid: u32) -> Option<PathBuf> {
    fs::read_link(format!("/proc/{pid}/exe")).ok()
}

/// The arguments, the program's name first. At most 64 KiB are read.
pub fn arguments(pid: u32) -> Vec<String> {
    use io::Read;
    let mut bytes = Vec::new();
    if let Ok(file) = fs::File::open(format!("/proc/{pid}/cmdline"))
        && file.take(64 << 10).read_to_end(&mut bytes).is_ok()
    {
        return bytes
            .split(|b| *b == 0)
            .map(|part| String::from_utf8_lossy(part).into_owned())
            .take_while(|part| !part.is_empty())
            .collect();
    }
    Vec::new()
}

/// The user and process at the other end of a connected Unix socket, as the kernel recorded them at `connect`.
#[derive(Clone, Copy, Debug)]
pub struct Peer {
    /// User id.
    pub uid: u32,
    /// The process. Its start time is read now: a process that connected and exited at once is an error.
    pub process: Process,
}

/// Asks the kernel for the peer (SO_PEERCRED, unix(7)).
pub fn peer(socket: BorrowedFd<'_>) -> io::Result<Peer> {
    let credentials = getsockopt(&socket, PeerCredentials)?;
    let pid = u32::try_from(credentials.pid()).map_err(io::Error::other)?;
    if pid == 0 {
        return Err(io::Error::other("the process at the other end is in another pid namespace"));
    }
    Ok(Peer { uid: credentials.uid(), process: stat(pid)?.process })
}

#[cfg(test)]
mod tests {
    use std::os::{fd::AsFd, unix::net::UnixStream};

    use super::*;

    #[test]
    fn names_with_parentheses_do_not_confuse() {
        let line = b"42 (a) S 9 (x) R 7 42 43 34816 42 4194304 1 2 3 4 5 6 7 8 20 0 1 0 777 1000 10 0";
        let stat = parse_stat(42, line).unwrap();
        assert_eq!((stat.parent, stat.session, stat.terminal, stat.process.start), (7, 43, 34816, 777));
        assert!(parse_stat(1, b"1 (x").is_none());
        assert!(parse_stat(1, b"1 (x) S").is_none());
    }

    #[test]
    fn we_are_our_own_peer_and_have_ancestors() {
        let (a, _b) = UnixStream::pair().unwrap();
        let peer = peer(a.as_fd()).unwrap();
        assert_eq!(peer.process.pid, std::process::id());
        let chain = ancestry(peer.process.pid);
        assert_eq!(chain[0].process, peer.process);
        assert!(chain.len() > 1);
        assert!(!arguments(peer.process.pid).is_empty());
        assert!(executable(peer.process.pid).is_some());
        assert!(all().contains(&peer.process.pid));
        assert!(name(peer.process.pid).is_some_and(|name| !name.ends_with('\n')));
        assert_eq!(user(peer.process.pid), Some(nix::unistd::getuid().as_raw()));
        assert_eq!(group(peer.process.pid), group(std::process::id()));
    }
}
