//! What a path means for a thread that waits for our answer: resolved once, to an open file and to where that file lies.
//!
//! Nothing is followed that means something else to us than to the caller: magic links (`/proc/PID/fd/N`, `cwd`, `root`)
//! are refused, and by [`Named`] so is `/proc`, where `self` would be us, but for paths that name a descriptor in the usual
//! way.

use std::{
    ffi::{CString, OsStr, OsString},
    fs,
    os::{
        fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd},
        unix::ffi::{OsStrExt, OsStringExt},
    },
    path::{Path, PathBuf},
};

use nix::{
    errno::Errno,
    fcntl::{OFlag, open},
    libc,
    sys::stat::Mode,
    unistd::Pid,
};

use crate::linux::{network::caller::Caller, procfs, sys};

/// A file that was opened for its path only, and where it lies.
#[derive(Debug)]
pub(crate) struct Resolved {
    pub fd: OwnedFd,
    /// Canonical at the moment of the look.
    pub path: PathBuf,
}

/// A path as a caller wrote it, and where it begins.
#[derive(Debug)]
pub(crate) struct Named {
    /// None for a path that begins at the root. Changing the root and entering namespaces are denied
    /// (`profiles/seccomp/linux.toml`): the caller's root is ours.
    pub start: Option<OwnedFd>,
    pub path: Vec<u8>,
    /// The file that the path names by the number of a descriptor (`/proc/self/fd/N`), which only its owner can resolve.
    pub own: Option<OwnedFd>,
}

impl Named {
    /// A path of a caller's. A relative one begins at `base`, a descriptor of the caller's or `AT_FDCWD`.
    pub fn of(caller: &Caller<'_>, base: i32, path: Vec<u8>) -> nix::Result<Self> {
        let start = start(caller, base, &path)?;
        let own = own_descriptor(&path, |pid| is_own(caller, pid)).and_then(|fd| caller.descriptor(fd).ok());
        Ok(Self { start, path, own })
    }

    /// Where a symbolic link leads that lies in `parent`.
    pub fn through(target: OsString, parent: OwnedFd) -> Self {
        let path = target.into_vec();
        let start = (!path.starts_with(b"/")).then_some(parent);
        Self { start, path, own: None }
    }

    /// The existing file.
    pub fn resolve(&self, follow: bool) -> nix::Result<Resolved> {
        match resolve_from(self.start.as_ref().map(AsFd::as_fd), &self.path, follow) {
            // What our own /proc/self shows is another process's.
            Ok(found) if found.path.starts_with("/proc") => self.resolve_own(follow).ok_or(Errno::ELOOP),
            // Of our own descriptors there may be none with that number.
            Err(errno @ (Errno::ELOOP | Errno::ENOENT)) => self.resolve_own(follow).ok_or(errno),
            other => other,
        }
    }

    fn resolve_own(&self, follow: bool) -> Option<Resolved> {
        if !follow {
            return None;
        }
        let fd = self.own.as_ref()?.try_clone().ok()?;
        let path = path_of(fd.as_fd()).ok()?;
        Some(Resolved { fd, path })
    }
}

/// What a path names for a caller, for those who only look: what lies below `/proc` may be another process's.
pub(crate) fn resolve(caller: &Caller<'_>, base: i32, path: &[u8], follow: bool) -> nix::Result<Resolved> {
    resolve_from(start(caller, base, path)?.as_ref().map(AsFd::as_fd), path, follow)
}

/// Where a path begins for a caller.
fn start(caller: &Caller<'_>, base: i32, path: &[u8]) -> nix::Result<Option<OwnedFd>> {
    if path.starts_with(b"/") {
        return Ok(None);
    }
    if base != libc::AT_FDCWD {
        return caller.descriptor(base).map(Some);
    }
    let start = start_of(caller.thread, path)?;
    // The directory is the caller's only if it is still there.
    caller.still_waits()?;
    Ok(start)
}

/// Where a path begins for a thread: in its working directory, or at the root.
pub(crate) fn start_of(thread: Pid, path: &[u8]) -> nix::Result<Option<OwnedFd>> {
    if path.starts_with(b"/") {
        return Ok(None);
    }
    let flags = OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
    open(format!("/proc/{thread}/cwd").as_str(), flags, Mode::empty()).map(Some)
}

/// What a path names that begins in a directory, or without one at the root; at the end of it a symbolic link is followed or
/// not.
pub(crate) fn resolve_from(start: Option<BorrowedFd<'_>>, path: &[u8], follow: bool) -> nix::Result<Resolved> {
    if path.is_empty() {
        return Err(Errno::ENOENT);
    }
    if start.is_none() && is_plain(path) {
        match sys::open_without_links(Path::new(OsStr::from_bytes(path))) {
            Ok(fd) => {
                let end = path.iter().rposition(|b| *b != b'/').map_or(0, |at| at + 1);
                let path = OsStr::from_bytes(path.get(..end).unwrap_or_default()).into();
                return Ok(Resolved { fd, path });
            }
            // There is a link on the way.
            Err(Errno::ELOOP) => {}
            Err(errno) => return Err(errno),
        }
    }
    let name = CString::new(path).map_err(|_| Errno::EINVAL)?;
    let fd = sys::open_resolved(start, &name, follow)?;
    let path = path_of(fd.as_fd())?;
    Ok(Resolved { fd, path })
}

/// Whether an absolute path is canonical as it is written, if no link is on the way: that saves asking the kernel where the open
/// file lies. Not for names that some file system takes for others: other alphabets (case folding of ext4), short names (`~`)
/// and streams (`:`) of FAT and NTFS, which drop dots and spaces at the end, too.
fn is_plain(path: &[u8]) -> bool {
    let plain = |b: &u8| b.is_ascii_alphanumeric() || b"_.+=@,-".contains(b);
    let name = |name: &[u8]| !name.is_empty() && !name.ends_with(b".") && name.iter().all(plain);
    match path {
        [b'/', rest @ .., b'/'] | [b'/', rest @ ..] => rest.split(|b| *b == b'/').all(name),
        _ => false,
    }
}

/// Where an open file lies now. For what has no place, such as a pipe, this is no absolute path.
pub(crate) fn path_of(file: BorrowedFd<'_>) -> nix::Result<PathBuf> {
    fs::read_link(own(file)).map_err(|_| Errno::EACCES)
}

/// The path by which this process reaches exactly this open file.
pub(crate) fn own(file: BorrowedFd<'_>) -> PathBuf {
    Path::new("/proc/self/fd").join(file.as_raw_fd().to_string())
}

fn is_own(caller: &Caller<'_>, pid: &str) -> bool {
    let own = caller.thread.to_string();
    pid == own || procfs::status_field(caller.thread, "Tgid").is_some_and(|group| group == pid)
}

/// The number in a path that names one of the caller's descriptors in the usual way.
fn own_descriptor(path: &[u8], is_own: impl Fn(&str) -> bool) -> Option<i32> {
    let path = str::from_utf8(path).ok()?;
    match path {
        "/dev/stdin" => return Some(0),
        "/dev/stdout" => return Some(1),
        "/dev/stderr" => return Some(2),
        _ => {}
    }
    let number = match path.strip_prefix("/dev/fd/") {
        Some(number) => number,
        None => {
            let (process, number) = path.strip_prefix("/proc/")?.split_once("/fd/")?;
            if !matches!(process, "self" | "thread-self") && !is_own(process) {
                return None;
            }
            number
        }
    };
    let plain = !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit());
    number.parse().ok().filter(|_| plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descriptors_by_path() {
        for (path, want) in [
            ("/proc/self/fd/7", Some(7)),
            ("/proc/thread-self/fd/7", Some(7)),
            ("/proc/12/fd/7", Some(7)),
            ("/proc/13/fd/7", None),
            ("/dev/fd/0", Some(0)),
            ("/dev/stdout", Some(1)),
            ("/proc/self/fd/", None),
            ("/proc/self/fd/7/x", None),
            ("/proc/self/fd/+7", None),
            ("/proc/self/fd/99999999999", None),
            ("/proc/self/cwd", None),
            ("proc/self/fd/7", None),
        ] {
            assert_eq!(own_descriptor(path.as_bytes(), |pid| pid == "12"), want, "{path}");
        }
    }

    /// What is canonical as it is written is what the kernel says of the open file.
    #[test]
    fn plain_paths() {
        let dir = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(dir.path()).unwrap();
        fs::create_dir_all(root.join("a.b/c")).unwrap();
        fs::write(root.join("a.b/c/f-1"), "").unwrap();
        std::os::unix::fs::symlink("a.b", root.join("link")).unwrap();
        for (path, plain, want) in [
            ("/a.b/c/f-1", true, Ok("/a.b/c/f-1")),
            ("/a.b/c/", true, Ok("/a.b/c")),
            ("/a.b/c/f-1/", true, Err(Errno::ENOTDIR)),
            ("/a.b/none", true, Err(Errno::ENOENT)),
            ("/link/c", true, Ok("/a.b/c")),
            ("/link", true, Ok("/a.b")),
            ("/link/none", true, Err(Errno::ENOENT)),
            ("/a.b/./c", false, Ok("/a.b/c")),
            ("/a.b/../a.b", false, Ok("/a.b")),
            ("/a.b//c", false, Ok("/a.b/c")),
            ("/a.b/c//", false, Ok("/a.b/c")),
            ("/a~1", false, Err(Errno::ENOENT)),
            ("/a b", false, Err(Errno::ENOENT)),
            ("/.v\u{17f}code", false, Err(Errno::ENOENT)),
            ("/a.b.", false, Err(Errno::ENOENT)),
        ] {
            assert_eq!(is_plain(path.as_bytes()), plain, "{path}");
            let whole = format!("{}{path}", root.display());
            let found = resolve_from(None, whole.as_bytes(), true).map(|r| {
                assert_eq!(path_of(r.fd.as_fd()).unwrap(), r.path, "{path}");
                r.path
            });
            assert_eq!(found, want.map(|w| root.join(&w[1..])), "{path}");
        }
        let link = format!("{}/link", root.display());
        assert_eq!(resolve_from(None, link.as_bytes(), false).unwrap().path, root.join("link"));
        for path in ["a", "", "/", "//"] {
            assert!(!is_plain(path.as_bytes()), "{path}");
        }
    }
}
