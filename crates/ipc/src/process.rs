//! Who is at the other end: processes and their ancestry.

use serde::{Deserialize, Serialize};

#[cfg(target_os = "linux")]
#[path = "process/linux.rs"]
mod system;
#[cfg(target_os = "macos")]
#[path = "process/macos.rs"]
mod system;
#[cfg(windows)]
#[path = "process/windows.rs"]
mod system;

#[cfg(windows)]
pub use system::windows_directory;
#[cfg(windows)]
pub(crate) use system::{Sid, giver, own_user, owned, user_of};
pub use system::{all, arguments, executable, name, space, stat};
#[cfg(unix)]
pub use system::{group, peer, user};

/// Longest chain of parents followed.
const MAX_ANCESTRY: usize = 256;

/// A process: its number and its start time, since numbers are used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Process {
    /// Process id.
    pub pid: u32,
    /// Linux: clock ticks since boot (field 22 of /proc/PID/stat). macOS: microseconds since 1970. Windows: tenths of them
    /// since 1601.
    pub start: u64,
}

/// Which processes a process sees. In another one it sees others, and numbers mean others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Space {
    /// Number of the namespace of processes; zero where the system has none.
    pub processes: u64,
    /// Number of the namespace of users; zero where the system has none.
    pub users: u64,
}

impl Space {
    /// Linux's first ones (include/linux/proc_ns.h): whoever is in both sees every process as it is.
    const FIRST: Self = Self { processes: 0xEFFF_FFFC, users: 0xEFFF_FFFD };
    /// Where the system has none.
    pub const ONLY: Self = Self { processes: 0, users: 0 };

    /// Whether every process of the machine is seen from here.
    pub fn sees_all(self) -> bool {
        self == Self::FIRST || self == Self::ONLY
    }
}

/// What the system says about a process.
#[derive(Clone, Copy, Debug)]
pub struct Stat {
    /// The process.
    pub process: Process,
    /// Its parent's number; 0 for the first process.
    pub parent: u32,
    /// Its session's leader.
    #[cfg(unix)]
    pub session: u32,
    /// Device of its controlling terminal; 0 for none.
    #[cfg(unix)]
    pub terminal: i32,
}

/// The process and its ancestors, nearest first. Ends early where a process is gone.
pub fn ancestry(pid: u32) -> Vec<Stat> {
    ancestors(pid).collect()
}

fn ancestors(pid: u32) -> impl Iterator<Item = Stat> {
    let parent = |child: &Stat| {
        let found = stat(child.parent).ok().filter(|_| child.parent != 0)?;
        // Windows tells the number that the parent had, which another process may have by now.
        (!cfg!(windows) || found.process.start <= child.process.start).then_some(found)
    };
    let first = if pid == 0 { None } else { stat(pid).ok() };
    std::iter::successors(first, parent).take(MAX_ANCESTRY)
}

/// The process with this number, and whether it descends from another one. `None` when it is gone.
pub fn descendant(pid: u32, of: Process) -> Option<(Process, bool)> {
    let mut chain = ancestors(pid);
    let own = chain.next()?.process;
    Some((own, chain.any(|stat| stat.process == of)))
}

/// The user and process at the other end of a connection, as the kernel recorded them at `connect`.
#[derive(Clone, Copy, Debug)]
pub struct Peer {
    /// User id. On Windows there is no connection with another user.
    #[cfg(unix)]
    pub uid: u32,
    /// The process. Its start time is read now: a process that connected and exited at once is an error.
    pub process: Process,
}

/// The arguments in what macOS keeps of a program's start (KERN_PROCARGS2): their number, the executable's path, zeros, then each
/// argument with a zero behind it, and the environment, which is passed over.
#[cfg(any(target_os = "macos", all(unix, test)))]
fn parse_arguments(bytes: &[u8]) -> Vec<String> {
    let Some((count, rest)) = bytes.split_first_chunk::<4>() else { return Vec::new() };
    let count = usize::try_from(i32::from_ne_bytes(*count)).unwrap_or(0);
    let path = rest.iter().position(|b| *b == 0).unwrap_or(rest.len());
    let start = rest.iter().skip(path).position(|b| *b != 0).map_or(rest.len(), |zeros| path + zeros);
    let words = rest.get(start..).unwrap_or_default().split(|b| *b == 0).take(count);
    words.map(|word| String::from_utf8_lossy(word).into_owned()).collect()
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use std::os::{fd::AsFd, unix::net::UnixStream};

    use super::*;

    #[test]
    fn arguments_as_macos_keeps_them() {
        let kept = |count: i32, rest: &[u8]| [&count.to_ne_bytes()[..], rest].concat();
        for (bytes, want) in [
            (kept(2, b"/bin/x\0\0\0x\0-v\0KEY=secret\0"), vec!["x", "-v"]),
            (kept(3, b"/bin/x\0x\0\0b\0KEY=secret\0"), vec!["x", "", "b"]),
            (kept(0, b"/bin/x\0x\0"), vec![]),
            (kept(-1, b"/bin/x\0x\0"), vec![]),
            (kept(1, b"/bin/x"), vec![""]),
            (b"\x01\0".to_vec(), vec![]),
        ] {
            assert_eq!(parse_arguments(&bytes), want);
        }
    }

    #[test]
    fn we_are_our_own_peer_and_have_ancestors() {
        let (a, _b) = UnixStream::pair().unwrap();
        let peer = peer(a.as_fd()).unwrap();
        assert_eq!(peer.process.pid, std::process::id());
        let chain = ancestry(peer.process.pid);
        assert_eq!(chain[0].process, peer.process);
        assert!(chain.len() > 1);
        let parent = chain[1].process;
        assert_eq!(descendant(std::process::id(), parent), Some((peer.process, true)));
        assert_eq!(descendant(parent.pid, peer.process), Some((parent, false)));
        let elsewhen = Process { start: parent.start + 1, ..parent };
        assert_eq!(descendant(std::process::id(), elsewhen), Some((peer.process, false)), "another of this number");
        assert!(!arguments(peer.process.pid).is_empty());
        assert!(executable(peer.process.pid).is_some());
        assert!(all().contains(&peer.process.pid));
        assert!(name(peer.process.pid).is_some_and(|name| !name.ends_with('\n')));
        assert_eq!(user(peer.process.pid), Some(nix::unistd::getuid().as_raw()));
        assert_eq!(group(peer.process.pid), group(std::process::id()));
    }
}
