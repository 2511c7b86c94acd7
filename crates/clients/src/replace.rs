//! Replacing a file so that nobody's write is lost: written beside, exchanged atomically, and what came out is checked.

use std::{
    ffi::OsString,
    fs::{self, File},
    io::{self, Write as _},
    os::unix::fs::{MetadataExt as _, PermissionsExt as _},
    path::Path,
};

use firedoor_model::Digest;
use tempfile::NamedTempFile;
use xattr::FileExt as _;

use crate::{
    error::FileError,
    fault,
    source::{MAX_BYTES, read_regular, replaceable},
};

/// How an attempt ended.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// The new content is in place.
    Replaced,
    /// Somebody else wrote in between: their content is in place.
    Changed,
}

/// Replaces the content of `target` if its bytes still hash to `expected`. `path` is its name in messages.
pub(crate) fn replace(path: &Path, target: &Path, expected: Digest, new: &[u8]) -> Result<Outcome, FileError> {
    let (old, file) = read_regular(path, target, MAX_BYTES)?;
    if Digest::of(&old) != expected {
        return Ok(Outcome::Changed);
    }
    let meta = file.metadata().map_err(|e| FileError::io("read", path, e))?;
    replaceable(path, &meta)?;
    let dir = target.parent().ok_or_else(|| FileError::NotRegular { path: path.to_owned(), kind: "a directory" })?;
    let io = |e| FileError::io("write beside", path, e);
    let beside = write_beside(dir, target, &file, &meta, new).map_err(io)?;
    let io = |e| FileError::io("replace", path, e);
    fault::point();
    match exchange(beside.path(), target) {
        Ok(()) => {
            fault::point();
            // What came out must be what was read; else it goes back in.
            if content(path, beside.path()) != Some(expected) {
                exchange(beside.path(), target).map_err(io)?;
                // And if yet another write was thrown out by that, it goes in again: the last writer wins.
                if content(path, beside.path()) != Some(Digest::of(new)) {
                    exchange(beside.path(), target).map_err(io)?;
                }
                return Ok(Outcome::Changed);
            }
        }
        // Not every file system can exchange: check once more, then replace.
        Err(e) if matches!(e.raw_os_error(), Some(nix::libc::EINVAL | nix::libc::ENOSYS | nix::libc::ENOTSUP)) => {
            if content(path, target) != Some(expected) {
                return Ok(Outcome::Changed);
            }
            beside.persist(target).map_err(|e| io(e.error))?;
        }
        Err(e) => return Err(io(e)),
    }
    fault::point();
    File::open(dir).and_then(|d| d.sync_all()).map_err(|e| FileError::io("make durable", path, e))?;
    if content(path, target) != Some(Digest::of(new)) {
        return Err(FileError::ChangedAfter { path: path.to_owned() });
    }
    Ok(Outcome::Replaced)
}

fn content(path: &Path, target: &Path) -> Option<Digest> {
    read_regular(path, target, MAX_BYTES).ok().map(|(bytes, _)| Digest::of(&bytes))
}

/// Start of the names of files beside `target`.
fn prefix(target: &Path) -> OsString {
    let mut prefix = OsString::from(".");
    prefix.push(target.file_name().unwrap_or_default());
    prefix.push(".firedoor-");
    prefix
}

/// Removes what a killed process of ours has left beside `target`; the caller holds our lock on it. A file with content
/// that is not known stays: it may be somebody's last write, thrown out by an exchange that was not finished.
pub(crate) fn sweep(target: &Path, known: impl Fn(Digest) -> bool) {
    let prefix = prefix(target);
    let all = target.parent().and_then(|dir| fs::read_dir(dir).ok()).into_iter().flatten().flatten();
    for left in all.filter(|e| e.file_name().as_encoded_bytes().starts_with(prefix.as_encoded_bytes())) {
        let Ok((bytes, file)) = read_regular(target, &left.path(), MAX_BYTES) else { continue };
        let ours = file.metadata().is_ok_and(|m| m.uid() == nix::unistd::geteuid().as_raw());
        if ours && (bytes.is_empty() || known(Digest::of(&bytes))) {
            // It is swept again next time.
            let _ = fs::remove_file(left.path());
        }
    }
}

/// A durable file beside `target`, with its owner, mode and extended attributes. Removed when dropped.
fn write_beside(dir: &Path, target: &Path, old: &File, meta: &fs::Metadata, new: &[u8]) -> io::Result<NamedTempFile> {
    let mut beside = tempfile::Builder::new().prefix(&prefix(target)).tempfile_in(dir)?;
    fault::point();
    beside.write_all(new)?;
    fault::point();
    let file = beside.as_file();
    let own = file.metadata()?;
    if (own.uid(), own.gid()) != (meta.uid(), meta.gid()) {
        // The owner is ours or we are root (`replaceable`); a group that we are not in cannot be kept.
        let changed = std::os::unix::fs::fchown(file, Some(meta.uid()), Some(meta.gid()));
        if own.uid() != meta.uid() {
            changed?;
        }
    }
    copy_attributes(old, file);
    // After the owner, because changing that clears bits; and after the attributes, because an ACL changes the mode.
    file.set_permissions(fs::Permissions::from_mode(meta.permissions().mode() & 0o7777))?;
    file.sync_all()?;
    Ok(beside)
}

/// Extended attributes where possible: labels are the system's business, and some file systems have none.
fn copy_attributes(from: &File, to: &File) {
    for name in from.list_xattr().into_iter().flatten() {
        if let Ok(Some(value)) = from.get_xattr(&name) {
            let _ = to.set_xattr(&name, &value);
        }
    }
}

/// Swaps two names of one directory, atomically.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
fn exchange(a: &Path, b: &Path) -> io::Result<()> {
    use nix::fcntl::{AT_FDCWD, RenameFlags, renameat2};
    renameat2(AT_FDCWD, a, AT_FDCWD, b, RenameFlags::RENAME_EXCHANGE).map_err(io::Error::from)
}

/// Elsewhere the caller falls back to a plain rename.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
fn exchange(_: &Path, _: &Path) -> io::Result<()> {
    Err(io::Error::from_raw_os_error(nix::libc::ENOSYS))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_read_is_replaced() {
        let scratch = tempfile::tempdir().unwrap();
        let file = scratch.path().join("c.json");
        fs::write(&file, "now").unwrap();
        for (expected, want, content) in [("before", Outcome::Changed, "now"), ("now", Outcome::Replaced, "new")] {
            assert_eq!(replace(&file, &file, Digest::of(expected.as_bytes()), b"new").unwrap(), want);
            assert_eq!(fs::read_to_string(&file).unwrap(), content);
        }
        assert_eq!(fs::read_dir(scratch.path()).unwrap().count(), 1);
    }
}
