//! Unix sockets, by the path that they really have.
//!
//! The path is resolved once, as the caller would resolve it; what is judged and what is connected to is the same open
//! file. Abstract names are refused before this.
//!
//! What a grant names is found once, before the server runs ([`granted`]): what it makes of that name afterwards is no grant.

mod granted;

use std::{
    ffi::OsStr,
    fs,
    os::{
        fd::{AsFd, AsRawFd, OwnedFd},
        unix::ffi::OsStrExt,
    },
    path::{Path, PathBuf},
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
    /// Where they lay before the server ran.
    granted: Vec<PathBuf>,
    /// Firedoor's own directories. No grant leads into them.
    closed: Vec<PathBuf>,
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
    /// Finds the grants. The server does not run yet.
    pub fn new(granted: &[PathBuf], closed: Vec<PathBuf>, writable: &[PathBuf], trees: Trees) -> Self {
        let writable: Vec<PathBuf> = writable.iter().filter_map(|path| fs::canonicalize(path).ok()).collect();
        let is_writable = |path: &Path| {
            writable.iter().any(|root| path.starts_with(root)) || trees.judge(path, Kind::File) != Verdict::Outside
        };
        let granted = granted.iter().filter_map(|path| granted::find(path, is_writable)).collect();
        Self { granted, closed, writable, trees, own: Vec::new() }
    }

    /// The socket at a path, and whether it may be connected to.
    pub fn find(&self, thread: Pid, path: &[u8]) -> nix::Result<(Resolved, bool)> {
        let found = resolve(thread, path)?;
        if !found.is_socket() {
            return Err(Errno::ECONNREFUSED);
        }
        let own = self.own.iter().any(|o| (o.device, o.inode) == (found.stat.st_dev, found.stat.st_ino));
        let granted = self.granted.contains(&found.path) && !self.closed.iter().any(|dir| found.path.starts_with(dir));
        let allowed = own || granted;
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
        if !self.writable.iter().any(|root| parent.path.starts_with(root)) && !in_tree() {
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
    use std::os::unix::{fs::symlink, net::UnixListener};

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
        symlink(root.join("other"), root.join("link")).unwrap();
        symlink(root.join("granted"), root.join("good")).unwrap();
        symlink(format!("/proc/self/cwd/{}", root.join("other").display()), root.join("magic")).unwrap();
        // A grant may name a link.
        let sockets = Sockets::new(&[root.join("good")], Vec::new(), &[], Trees::default());
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
        symlink(root.join("closed"), root.join("open/link")).unwrap();
        let mut sockets = Sockets::new(&[], Vec::new(), &[root.join("open")], Trees::default());
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

    /// What a server, or another one before it, makes of a granted name is not granted.
    #[test]
    fn a_granted_name_does_not_become_another_socket() {
        let dir = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(dir.path()).unwrap();
        for name in ["project", "firedoor", "run"] {
            fs::create_dir(root.join(name)).unwrap();
        }
        let sockets =
            ["project/app", "project/other", "run/bus", "run/app", "firedoor/engine"].map(|name| root.join(name));
        let _listeners = sockets.each_ref().map(|path| UnixListener::bind(path).unwrap());
        let at = |name: &str| root.join(name);
        symlink(at("firedoor/engine"), at("run/engine")).unwrap();
        symlink(at("run/bus"), at("project/planted")).unwrap();
        symlink(at("run"), at("project/directory")).unwrap();
        symlink(at("project/planted"), at("run/indirect")).unwrap();
        symlink("other", at("project/within")).unwrap();
        symlink(at("run/later"), at("run/dangling")).unwrap();
        let allowed =
            |sockets: &Sockets, name: &str| sockets.find(Pid::this(), bytes(&at(name))).map(|(_, allowed)| allowed);
        let granted = [
            "project/app",
            "project/planted",
            "project/directory/app",
            "project/within",
            "project/later",
            "run/engine",
            "run/indirect",
            "run/dangling",
            "firedoor/engine",
        ]
        .map(at);
        for in_tree in [false, true] {
            let trees = if in_tree { Trees::new(&[at("project")], Default::default()) } else { Trees::default() };
            let writable = if in_tree { Vec::new() } else { vec![at("project")] };
            let sockets = Sockets::new(&granted, vec![at("firedoor")], &writable, trees);
            for (name, want) in [
                ("project/app", true),
                ("project/within", true),
                ("project/planted", false),
                ("project/directory/app", false),
                ("run/indirect", false),
                ("run/engine", false),
                ("firedoor/engine", false),
            ] {
                assert_eq!(allowed(&sockets, name), Ok(want), "{name}");
            }
            // Servers that are started later, and one that is started again.
            let _later = ["project/later", "run/later"].map(|name| UnixListener::bind(at(name)).unwrap());
            fs::remove_file(at("project/app")).unwrap();
            let _again = UnixListener::bind(at("project/app")).unwrap();
            for name in ["project/later", "run/later", "run/dangling", "project/app"] {
                assert_eq!(allowed(&sockets, name), Ok(true), "{name}");
            }
            for target in ["run/bus", "firedoor/engine"] {
                for name in ["project/app", "project/later"] {
                    fs::remove_file(at(name)).unwrap();
                    symlink(at(target), at(name)).unwrap();
                    assert_eq!(allowed(&sockets, name), Ok(false), "{name} as {target}");
                }
            }
            for name in ["project/later", "run/later", "project/app"] {
                fs::remove_file(at(name)).unwrap();
            }
            let _app = UnixListener::bind(at("project/app")).unwrap();
        }
    }
}
