//! The directory and the name that a path comes down to, and what stands there.

use std::{
    ffi::{OsStr, OsString},
    os::{
        fd::{AsFd, OwnedFd},
        unix::ffi::OsStrExt,
    },
    path::PathBuf,
};

use nix::{
    errno::Errno,
    fcntl::AtFlags,
    libc,
    sys::stat::{FileStat, SFlag, fstat, fstatat},
};

use super::{Answer, Kind};
use crate::linux::paths::{self, Named};

/// A name in a directory that is open.
#[derive(Debug)]
pub(super) struct Spot {
    pub parent: OwnedFd,
    /// With the slashes that the caller wrote behind it, which tell the kernel that a directory is meant.
    pub last: OsString,
    /// Canonical, but for the name itself.
    pub path: PathBuf,
}

impl Spot {
    /// The spot of a path whose last name need not exist. An error is for the kernel to find again.
    pub fn of(named: &Named) -> nix::Result<Self> {
        let end = named.path.iter().rposition(|b| *b != b'/').map_or(0, |at| at + 1);
        let cut = named.path.get(..end).and_then(|p| p.iter().rposition(|b| *b == b'/')).map_or(0, |at| at + 1);
        let name = named.path.get(cut..end).unwrap_or_default();
        if matches!(name, b"" | b"." | b"..") {
            return Err(Errno::EINVAL);
        }
        let above = named.path.get(..cut).filter(|p| !p.is_empty()).unwrap_or(b".");
        let parent = paths::resolve_from(named.start.as_ref().map(AsFd::as_fd), above, true)?;
        let path = parent.path.join(OsStr::from_bytes(name));
        let last = OsStr::from_bytes(named.path.get(cut..).unwrap_or_default()).to_owned();
        Ok(Self { parent: parent.fd, last, path })
    }

    /// Whether slashes follow the name.
    pub fn means_directory(&self) -> bool {
        self.last.as_bytes().ends_with(b"/")
    }

    /// The refusal of a call that needs the name to be there, or not to be. What is wrong with that the kernel says before
    /// Landlock has a say.
    pub fn refused(self, when_there: bool) -> Answer {
        if self.kind(false).is_ok() == when_there { Answer::Protected(self.path) } else { Answer::Kernel }
    }

    /// What stands there now.
    pub fn kind(&self, moved: bool) -> nix::Result<Kind> {
        let name = self.path.file_name().unwrap_or_default();
        let stat = fstatat(&self.parent, name, AtFlags::AT_SYMLINK_NOFOLLOW)?;
        Ok(match kind_of(&stat) {
            Kind::Directory if moved => Kind::MovedDirectory,
            other => other,
        })
    }
}

/// The kind of an open file.
pub(super) fn kind(file: &OwnedFd) -> nix::Result<(Kind, FileStat)> {
    fstat(file).map(|stat| (kind_of(&stat), stat))
}

fn kind_of(stat: &FileStat) -> Kind {
    match SFlag::from_bits_truncate(stat.st_mode) & SFlag::S_IFMT {
        SFlag::S_IFDIR => Kind::Directory,
        SFlag::S_IFLNK => Kind::Symlink,
        _ => Kind::File,
    }
}

/// Whether the guardian may open this for somebody else: devices and sockets may do anything.
pub(super) fn is_plain(stat: &FileStat) -> bool {
    matches!(stat.st_mode & libc::S_IFMT, libc::S_IFREG | libc::S_IFIFO)
}
