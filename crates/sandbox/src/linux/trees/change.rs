//! Creating, moving and removing names.

use std::{ffi::OsStr, os::fd::AsFd, os::unix::ffi::OsStrExt};

use nix::{
    errno::Errno,
    fcntl::{AT_FDCWD, AtFlags, RenameFlags, renameat2},
    libc,
    sys::stat::{Mode, SFlag, mkdirat, mknodat},
    unistd::{UnlinkatFlags, linkat, symlinkat, unlinkat},
};

use super::{
    Answer, Kind, Trees, Verdict, masked,
    spot::{self, Spot},
};
use crate::linux::paths::{self, Named};

/// `mkdir(2)`.
pub(super) fn make_directory(
    trees: &Trees,
    at: &Named,
    mode: u32,
    mask: impl Fn() -> nix::Result<Option<Mode>>,
) -> nix::Result<Answer> {
    let Ok(spot) = Spot::of(at) else { return Ok(Answer::Kernel) };
    match trees.judge_name(&spot.path, Kind::Directory) {
        Verdict::Outside => Ok(Answer::Kernel),
        Verdict::Protected => Ok(spot.refused(false)),
        Verdict::Open => {
            let mode = Mode::from_bits_truncate(mode);
            masked(mask()?, || mkdirat(&spot.parent, spot.last.as_os_str(), mode)).map(|()| Answer::Done)
        }
    }
}

/// `mknod(2)` of files, pipes and sockets. Devices are for Landlock to refuse.
pub(super) fn make_node(
    trees: &Trees,
    at: &Named,
    mode: u32,
    mask: impl Fn() -> nix::Result<Option<Mode>>,
) -> nix::Result<Answer> {
    let kind = match mode & libc::S_IFMT {
        0 | libc::S_IFREG => SFlag::S_IFREG,
        libc::S_IFIFO => SFlag::S_IFIFO,
        libc::S_IFSOCK => SFlag::S_IFSOCK,
        _ => return Ok(Answer::Kernel),
    };
    let Ok(spot) = Spot::of(at) else { return Ok(Answer::Kernel) };
    match trees.judge_name(&spot.path, Kind::File) {
        Verdict::Outside => Ok(Answer::Kernel),
        Verdict::Protected => Ok(spot.refused(false)),
        Verdict::Open => {
            let mode = Mode::from_bits_truncate(mode);
            masked(mask()?, || mknodat(&spot.parent, spot.last.as_os_str(), kind, mode, 0)).map(|()| Answer::Done)
        }
    }
}

/// `unlink(2)` and `rmdir(2)`.
pub(super) fn remove(trees: &Trees, at: &Named, directory: bool) -> nix::Result<Answer> {
    let Ok(spot) = Spot::of(at) else { return Ok(Answer::Kernel) };
    let (kind, flags) = match directory {
        true => (Kind::Directory, UnlinkatFlags::RemoveDir),
        false => (Kind::File, UnlinkatFlags::NoRemoveDir),
    };
    match trees.judge_name(&spot.path, kind) {
        Verdict::Outside => Ok(Answer::Kernel),
        Verdict::Protected => Ok(spot.refused(true)),
        Verdict::Open => unlinkat(&spot.parent, spot.last.as_os_str(), flags).map(|()| Answer::Done),
    }
}

/// `symlink(2)`. Where it leads is of no importance: what is opened through it is judged where it lies.
pub(super) fn symlink(trees: &Trees, target: &[u8], at: &Named) -> nix::Result<Answer> {
    let Ok(spot) = Spot::of(at) else { return Ok(Answer::Kernel) };
    match trees.judge_name(&spot.path, Kind::Symlink) {
        Verdict::Outside => Ok(Answer::Kernel),
        Verdict::Protected => Ok(spot.refused(false)),
        Verdict::Open => {
            symlinkat(OsStr::from_bytes(target), &spot.parent, spot.last.as_os_str()).map(|()| Answer::Done)
        }
    }
}

/// `rename(2)`. To the server, the trees are a file system of their own: what left them, changed, and came back would bring
/// protected names along.
pub(super) fn rename(trees: &Trees, from: &Named, to: &Named, flags: u32) -> nix::Result<Answer> {
    let exchange = flags == libc::RENAME_EXCHANGE;
    if !exchange && flags & !libc::RENAME_NOREPLACE != 0 {
        return Ok(Answer::Kernel);
    }
    let (Ok(from), Ok(to)) = (Spot::of(from), Spot::of(to)) else { return Ok(Answer::Kernel) };
    let mut kinds = match from.kind(true) {
        Ok(kind) => vec![kind],
        Err(_) => return Ok(Answer::Kernel),
    };
    if exchange {
        kinds.push(match to.kind(true) {
            Ok(kind) => kind,
            Err(_) => return Ok(Answer::Kernel),
        });
    }
    let worst = |spot: &Spot| {
        kinds.iter().map(|kind| trees.judge_name(&spot.path, *kind)).fold(Verdict::Outside, |worst, one| {
            if worst == Verdict::Protected || one == Verdict::Outside { worst } else { one }
        })
    };
    match (worst(&from), worst(&to)) {
        (Verdict::Outside, Verdict::Outside) => Ok(Answer::Kernel),
        (Verdict::Protected, _) => Ok(Answer::Protected(from.path)),
        (_, Verdict::Protected) => Ok(Answer::Protected(to.path)),
        (Verdict::Open, Verdict::Open) => {
            let flags = RenameFlags::from_bits_truncate(flags);
            renameat2(&from.parent, from.last.as_os_str(), &to.parent, to.last.as_os_str(), flags)
                .map(|()| Answer::Done)
        }
        (Verdict::Outside, Verdict::Open) | (Verdict::Open, Verdict::Outside) => Err(Errno::EXDEV),
    }
}

/// `link(2)`. A second name for a protected file would open it, and one outside of the trees any file in them.
pub(super) fn link(trees: &Trees, from: &Named, to: &Named, follow: bool) -> nix::Result<Answer> {
    let (Ok(from), Ok(to)) = (from.resolve(follow), Spot::of(to)) else { return Ok(Answer::Kernel) };
    let (kind, stat) = spot::kind(&from.fd)?;
    // A file that was opened without a name (O_TMPFILE) has none that could be judged; its opener made it.
    let source = if stat.st_nlink == 0 { Verdict::Open } else { trees.judge(&from.path, kind) };
    match (source, trees.judge_name(&to.path, kind)) {
        (Verdict::Outside, Verdict::Outside) => Ok(Answer::Kernel),
        (_, Verdict::Outside) if stat.st_nlink == 0 => Ok(Answer::Kernel),
        (Verdict::Protected, _) => Ok(Answer::Protected(from.path)),
        (_, Verdict::Protected) => Ok(to.refused(false)),
        (Verdict::Open, Verdict::Open) => {
            let own = paths::own(from.fd.as_fd());
            // Of a symbolic link this path leads to the link itself.
            linkat(AT_FDCWD, &own, &to.parent, to.last.as_os_str(), AtFlags::AT_SYMLINK_FOLLOW).map(|()| Answer::Done)
        }
        (Verdict::Outside, Verdict::Open) | (Verdict::Open, Verdict::Outside) => Err(Errno::EXDEV),
    }
}
