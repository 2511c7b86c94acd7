//! Unix sockets, by the path that they really have.
//!
//! The path is resolved once, as the caller would resolve it; what is judged and what is connected to is the same open
//! file. Abstract names are refused before this.

use std::{
    ffi::OsStr,
    fs,
    os::{
        fd::{AsFd, AsRawFd, OwnedFd},
        unix::ffi::OsStrExt,
    },
    path::PathBuf,
};

use nix::{
    errno::Errno,
    fcntl::{OFlag, openat},
    sys::stat::{FileStat, Mode, SFlag, fstat},
    unistd::Pid,
};

use super::address;
use crate::linux::{
    paths, sys,
    trees::{Kind, Trees, Verdict},
};

/// Sockets of its own that one server may make.
const MAX_OWN: usize = 64;
/// What the C library asks by itself before it goes on without: not worth a word.
const ASKED_BY_LIBC: [&str; 4] = ["/run/nscd", "/var/run/nscd", "/run/systemd", "/run/dbus"];

/// What one server may reach and make.
#[derive(Debug, Default)]
pub(crate) struct Sockets {
    granted: Vec<PathBuf>,
    writable: Vec<PathBuf>,
    trees: Trees,
    /// The sockets that were bound for it. Open, so that no other file gets their numbers.
    own: Vec<Own>,
}

#[derive(Debug)]
struct Own {
    _open: OwnedFd,
    device: u64,
    inode: u64,
}

/// An open path.
pub(crate) struct Resolved {
    fd: OwnedFd,
    pub path: PathBuf,
    stat: FileStat,
}

impl Resolved {
    fn is_socket(&self) -> bool {
        SFlag::from_bits_truncate(self.stat.st_mode) & SFlag::S_IFMT == SFlag::S_IFSOCK
    }

    /// The address by which the kernel reaches exactly this socket.
    pub fn address(&self) -> Vec<u8> {
        address::unix(&paths::own(self.fd.as_fd()).to_string_lossy())
    }

    /// Whether the C library asks here by itself.
    pub fn is_asked_by_libc(&self) -> bool {
        ASKED_BY_LIBC.iter().any(|p| self.path.starts_with(p))
    }
}

/// Resolves a path as a thread would.
fn resolve(thread: Pid, path: &[u8]) -> nix::Result<Resolved> {
    let base = paths::start_of(thread, path)?;
    let paths::Resolved { fd, path } = paths::resolve_from(base.as_ref().map(AsFd::as_fd), path, true)?;
    let stat = fstat(&fd)?;
    Ok(Resolved { fd, path, stat })
}

impl Sockets {
    pub fn new(granted: Vec<PathBuf>, writable: Vec<PathBuf>, trees: Trees) -> Self {
        Self { granted, writable, trees, own: Vec::new() }
    }

    /// The socket at a path, and whether it may be connected to.
    pub fn find(&self, thread: Pid, path: &[u8]) -> nix::Result<(Resolved, bool)> {
        let found = resolve(thread, path)?;
        if !found.is_socket() {
            return Err(Errno::ECONNREFUSED);
        }
        let own = self.own.iter().any(|o| (o.device, o.inode) == (found.stat.st_dev, found.stat.st_ino));
        let granted = || self.granted.iter().any(|g| fs::canonicalize(g).is_ok_and(|g| g == found.path));
        let allowed = own || granted();
        Ok((found, allowed))
    }

    /// Binds a socket below a writable grant. It can be connected to afterwards.
    pub fn bind(&mut self, thread: Pid, socket: &OwnedFd, path: &[u8]) -> nix::Result<()> {
        let cut = path.iter().rposition(|b| *b == b'/');
        let (parent, name) = match cut {
            Some(at) => (path.get(..=at).unwrap_or_default(), path.get(at + 1..).unwrap_or_default()),
            None => (b".".as_slice(), path),
        };
        if name.is_empty() || name == b"." || name == b".." {
            return Err(Errno::EADDRINUSE);
        }
        let parent = resolve(thread, parent)?;
        let name = OsStr::from_bytes(name);
        let in_tree = || self.trees.judge_name(&parent.path.join(name), Kind::File) == Verdict::Open;
        let writable = |g: &PathBuf| fs::canonicalize(g).is_ok_and(|g| parent.path.starts_with(g));
        if !self.writable.iter().any(writable) && !in_tree() {
            return Err(Errno::EACCES);
        }
        if self.own.len() >= MAX_OWN {
            return Err(Errno::ENOSPC);
        }
        let at = format!("/proc/self/fd/{}/", parent.fd.as_raw_fd());
        let name_text = name.to_str().ok_or(Errno::EINVAL)?;
        let target = address::unix(&format!("{at}{name_text}"));
        // `sun_path` has 108 bytes (unix(7)).
        if target.len() > 2 + 108 {
            return Err(Errno::ENAMETOOLONG);
        }
        let before = sys::file_time();
        sys::bind(socket.as_fd(), &target)?;
        // Meanwhile another thread may have put something else there, which must not count as made now.
        let flags = OFlag::O_PATH | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        let made = openat(&parent.fd, name, flags, Mode::empty())?;
        let stat = fstat(&made)?;
        let new = before.is_some() && sys::born(made.as_fd()).is_some_and(|born| Some(born) >= before);
        if new && SFlag::from_bits_truncate(stat.st_mode) & SFlag::S_IFMT == SFlag::S_IFSOCK {
            self.own.push(Own { _open: made, device: stat.st_dev, inode: stat.st_ino });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{os::unix::net::UnixListener, path::Path};

    fn bytes(path: &Path) -> &[u8] {
        path.as_os_str().as_bytes()
    }

    #[test]
    fn sockets_are_judged_where_they_lie() {
        let dir = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(dir.path()).unwrap();
        let own = Pid::this();
        for name in ["granted", "other"] {
            UnixListener::bind(root.join(name)).unwrap();
        }
        fs::write(root.join("file"), "").unwrap();
        std::os::unix::fs::symlink(root.join("other"), root.join("link")).unwrap();
        std::os::unix::fs::symlink(root.join("granted"), root.join("good")).unwrap();
        std::os::unix::fs::symlink(format!("/proc/self/cwd/{}", root.join("other").display()), root.join("magic"))
            .unwrap();
        // A grant may name a link.
        let sockets = Sockets::new(vec![root.join("good")], Vec::new(), Trees::default());
        for (name, want) in [
            ("granted", Ok(true)),
            ("good", Ok(true)),
            ("other", Ok(false)),
            ("link", Ok(false)),
            ("none/../granted", Err(Errno::ENOENT)),
            ("./granted", Ok(true)),
            ("file", Err(Errno::ECONNREFUSED)),
            ("none", Err(Errno::ENOENT)),
            ("magic", Err(Errno::ELOOP)),
        ] {
            let found = sockets.find(own, bytes(&root.join(name)));
            assert_eq!(found.map(|(_, allowed)| allowed), want, "{name}");
        }
    }

    #[test]
    fn sockets_are_made_below_writable_grants_only() {
        let dir = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(dir.path()).unwrap();
        for name in ["open", "closed"] {
            fs::create_dir(root.join(name)).unwrap();
        }
        std::os::unix::fs::symlink(root.join("closed"), root.join("open/link")).unwrap();
        let mut sockets = Sockets::new(Vec::new(), vec![root.join("open")], Trees::default());
        for (path, want) in [
            ("open/s", Ok(())),
            ("open/s", Err(Errno::EADDRINUSE)),
            ("closed/s", Err(Errno::EACCES)),
            ("open/link/s", Err(Errno::EACCES)),
            ("open/../closed/s", Err(Errno::EACCES)),
            ("open/..", Err(Errno::EADDRINUSE)),
            ("open/", Err(Errno::EADDRINUSE)),
            ("none/s", Err(Errno::ENOENT)),
        ] {
            let (a, _b) = std::os::unix::net::UnixDatagram::pair().unwrap();
            // A fresh socket: a pair's end has no name yet either.
            assert_eq!(sockets.bind(Pid::this(), &a.into(), bytes(&root.join(path))), want, "{path}");
        }
        assert!(matches!(sockets.find(Pid::this(), bytes(&root.join("open/s"))), Ok((_, true))));
    }
}
