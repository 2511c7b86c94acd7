//! Processes on Linux, from /proc (proc(5)).

use std::{
    fs::{self, File},
    io::{self, Read as _},
    os::{fd::BorrowedFd, unix::fs::MetadataExt as _},
    path::PathBuf,
};

use nix::sys::{
    socket::{getsockopt, sockopt::PeerCredentials},
    statfs::{PROC_SUPER_MAGIC, fstatfs, statfs},
};

use super::{Peer, Process, Space, Stat};

/// A short file about a process. Mostly the first read gives all there is: the kernel makes the text at once (seq_file.rst).
fn about(pid: u32, file: &str) -> io::Result<Vec<u8>> {
    read(File::open(format!("/proc/{pid}/{file}"))?, pid, file)
}

fn read(mut open: File, pid: u32, file: &str) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; 4096];
    let length = open.read(&mut bytes)?;
    if length == bytes.len() {
        return fs::read(format!("/proc/{pid}/{file}"));
    }
    bytes.truncate(length);
    Ok(bytes)
}

/// Reads one process. `NotFound` when it is gone.
///
/// Only of the kernel's own word: in a namespace of mounts that a process made, anything may lie over a file of `/proc`.
pub fn stat(pid: u32) -> io::Result<Stat> {
    let file = File::open(format!("/proc/{pid}/stat"))?;
    if fstatfs(&file)?.filesystem_type() != PROC_SUPER_MAGIC {
        return Err(io::Error::other(format!("/proc/{pid}/stat is not the kernel's")));
    }
    let text = read(file, pid, "stat")?;
    parse_stat(pid, &text).ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, format!("/proc/{pid}/stat")))
}

fn parse_stat(pid: u32, text: &[u8]) -> Option<Stat> {
    // The second field is the command name in parentheses, which may itself hold spaces and parentheses.
    let end = text.iter().rposition(|b| *b == b')')?;
    // That of another process may have been laid over it.
    let says: u32 = std::str::from_utf8(text.split(|b| *b == b' ').next()?).ok()?.parse().ok()?;
    if says != pid {
        return None;
    }
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

/// The namespaces that say which processes this one sees, and as whom (pid_namespaces(7), user_namespaces(7)), by their numbers.
/// An error where `/proc` is something else than the kernel's.
pub fn space() -> io::Result<Space> {
    if statfs("/proc")?.filesystem_type() != PROC_SUPER_MAGIC {
        return Err(io::Error::other("/proc is not the kernel's"));
    }
    let number = |name: &str| fs::metadata(format!("/proc/self/ns/{name}")).map(|file| file.ino());
    Ok(Space { processes: number("pid")?, users: number("user")? })
}

/// Every process there is now.
pub fn all() -> Vec<u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

/// The name of the executable, at most 15 bytes of it. A process may change its own.
pub fn name(pid: u32) -> Option<String> {
    let bytes = about(pid, "comm").ok()?;
    Some(String::from_utf8_lossy(bytes.trim_ascii_end()).into_owned())
}

/// The real user id.
pub fn user(pid: u32) -> Option<u32> {
    let text = about(pid, "status").ok()?;
    let line = text.split(|b| *b == b'\n').find_map(|line| line.strip_prefix(b"Uid:"))?;
    std::str::from_utf8(line).ok()?.split_ascii_whitespace().next()?.parse().ok()
}

/// The control groups (cgroups(7)), as one text.
pub fn group(pid: u32) -> Option<String> {
    String::from_utf8(about(pid, "cgroup").ok()?).ok()
}

/// The executable, where it may be read.
pub fn executable(pid: u32) -> Option<PathBuf> {
    fs::read_link(format!("/proc/{pid}/exe")).ok()
}

/// The arguments, the program's name first. At most 64 KiB are read.
pub fn arguments(pid: u32) -> Vec<String> {
    let mut bytes = Vec::with_capacity(4096);
    if let Ok(file) = File::open(format!("/proc/{pid}/cmdline"))
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
    use super::*;

    #[test]
    fn names_with_parentheses_do_not_confuse() {
        let line = b"42 (a) S 9 (x) R 7 42 43 34816 42 4194304 1 2 3 4 5 6 7 8 20 0 1 0 777 1000 10 0";
        let stat = parse_stat(42, line).unwrap();
        assert_eq!((stat.parent, stat.session, stat.terminal, stat.process.start), (7, 43, 34816, 777));
        assert!(parse_stat(1, b"1 (x").is_none());
        assert!(parse_stat(1, b"1 (x) S").is_none());
    }
}
