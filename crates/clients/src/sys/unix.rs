//! Owners, modes and links as Unix has them.

use std::{
    fs::{self, DirBuilder, File, FileType, Metadata, OpenOptions},
    io,
    os::unix::fs::{DirBuilderExt as _, FileTypeExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
};

use rustix::fs::{CWD, RenameFlags, renameat_with};
use xattr::FileExt as _;

use crate::error::FileError;

/// How a file is made writable.
pub(crate) const MAKE_WRITABLE: &str = "chmod u+w";
/// What to do where something is denied.
pub(crate) const DENIED: &str = ". Make the file and its directory writable for you";

/// Opens to read, without waiting for a pipe's other end and without following a link.
pub(crate) fn open(path: &Path) -> io::Result<File> {
    let flags = nix::libc::O_NOFOLLOW | nix::libc::O_NONBLOCK | nix::libc::O_NOCTTY;
    OpenOptions::new().read(true).custom_flags(flags).open(path)
}

/// Opens a file of ours to be locked; it is made if it is not there.
pub(crate) fn open_lock(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.create(true).truncate(false).write(true).mode(0o600).custom_flags(nix::libc::O_NOFOLLOW).open(path)
}

/// The path without links.
pub(crate) fn canonicalize(path: &Path) -> io::Result<PathBuf> {
    fs::canonicalize(path)
}

/// Whether two paths are the same name, as the system tells names apart.
pub(crate) fn same_name(a: &Path, b: &Path) -> bool {
    a == b
}

/// Whether links led in a circle.
pub(crate) fn is_loop(e: &io::Error) -> bool {
    e.raw_os_error() == Some(nix::libc::ELOOP)
}

/// What something is that is neither a file nor a directory nor a link.
pub(crate) fn kind(of: FileType) -> &'static str {
    match () {
        () if of.is_fifo() => "a named pipe",
        () if of.is_socket() => "a socket",
        () => "a device",
    }
}

/// Owner and number of names, checked before a file is replaced.
pub(crate) fn replaceable(path: &Path, file: &File) -> Result<(), FileError> {
    let meta = file.metadata().map_err(|e| FileError::io("read", path, e))?;
    let me = nix::unistd::geteuid();
    if !me.is_root() && meta.uid() != me.as_raw() {
        return Err(FileError::Foreign { path: path.to_owned(), uid: meta.uid() });
    }
    // A rename would not ask: somebody has said that this file is not to be written.
    if meta.mode() & 0o200 == 0 {
        return Err(FileError::ReadOnly { path: path.to_owned() });
    }
    if meta.nlink() > 1 {
        return Err(FileError::HardLinks { path: path.to_owned(), links: meta.nlink() });
    }
    Ok(())
}

/// Whether a file can be made in a directory.
pub(crate) fn takes_files(dir: &Path) -> io::Result<()> {
    use rustix::fs::{Access, access};
    Ok(access(dir, Access::WRITE_OK | Access::EXEC_OK)?)
}

/// Whether this user made it.
pub(crate) fn is_ours(meta: &Metadata) -> bool {
    meta.uid() == nix::unistd::geteuid().as_raw()
}

/// Gives a new file the owner, mode and extended attributes of the one that it will replace.
pub(crate) fn copy_attributes(old: &File, new: &File) -> io::Result<()> {
    let (meta, own) = (old.metadata()?, new.metadata()?);
    if (own.uid(), own.gid()) != (meta.uid(), meta.gid()) {
        // The owner is ours or we are root (`replaceable`); a group that we are not in cannot be kept.
        let changed = std::os::unix::fs::fchown(new, Some(meta.uid()), Some(meta.gid()));
        if own.uid() != meta.uid() {
            changed?;
        }
    }
    // Where possible: labels are the system's business, and some file systems have none.
    for name in old.list_xattr().into_iter().flatten() {
        if let Ok(Some(value)) = old.get_xattr(&name) {
            let _ = new.set_xattr(&name, &value);
        }
    }
    // After the owner, because changing that clears bits; and after the attributes, because an ACL changes the mode.
    new.set_permissions(fs::Permissions::from_mode(meta.mode() & 0o7777))
}

/// Swaps two names of one directory, atomically: `renameat2` with `RENAME_EXCHANGE`, on macOS `renameatx_np` with `RENAME_SWAP`.
pub(crate) fn exchange(a: &Path, b: &Path) -> io::Result<()> {
    renameat_with(CWD, a, CWD, b, RenameFlags::EXCHANGE).map_err(io::Error::from)
}

/// Whether names cannot be swapped there at all.
pub(crate) fn cannot_exchange(e: &io::Error) -> bool {
    matches!(e.raw_os_error(), Some(nix::libc::EINVAL | nix::libc::ENOSYS | nix::libc::ENOTSUP))
}

/// Waits until the names in a directory are on the disk.
pub(crate) fn sync_names(dir: &Path) -> io::Result<()> {
    File::open(dir)?.sync_all()
}

/// Makes a directory that only the user can enter.
pub(crate) fn private_dir(dir: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
    if fs::metadata(dir)?.mode() & 0o077 != 0 {
        fs::set_permissions(dir, fs::Permissions::from_mode(0o700))?;
    }
    Ok(())
}

/// Whether the system watches no more directories for this user. inotify_add_watch(2).
pub(crate) fn no_more_watches(e: &io::Error) -> bool {
    e.raw_os_error() == Some(nix::libc::ENOSPC)
}

/// Whether the system lets no more programs of this user watch. inotify_init(2).
pub(crate) fn no_more_watchers(e: &io::Error) -> bool {
    e.raw_os_error() == Some(nix::libc::EMFILE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn somebody_elses_file_is_not_replaced() {
        let root = File::open("/").unwrap();
        let foreign = matches!(replaceable(Path::new("/"), &root), Err(FileError::Foreign { uid: 0, .. }));
        assert_eq!(foreign, !nix::unistd::geteuid().is_root(), "root may replace everything");
    }
}
