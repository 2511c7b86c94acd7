//! Replacing a file so that nobody's write is lost: written beside, exchanged atomically, and what came out is checked.

use std::{
    ffi::OsString,
    fs::{self, File},
    io::{self, Write as _},
    path::Path,
};

use firedoor_model::Digest;
use tempfile::NamedTempFile;

use crate::{
    error::FileError,
    fault,
    source::{MAX_BYTES, Source, read_regular},
    sys,
};

/// How an attempt ended.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// The new content is in place.
    Replaced,
    /// Somebody else wrote in between: their content is in place.
    Changed,
}

/// Why a file could not be replaced, as far as that can be seen before.
pub(crate) fn can_replace(source: &Source) -> Result<(), FileError> {
    let (path, target) = (&source.path, &source.target);
    let file = sys::open(target).map_err(|e| FileError::io("read", path, e))?;
    sys::replaceable(path, &file)?;
    let dir = target.parent().unwrap_or(target);
    sys::takes_files(dir).map_err(|e| FileError::io("write beside", path, e))
}

/// Replaces the content of `target` if its bytes still hash to `expected`. `path` is its name in messages.
pub(crate) fn replace(path: &Path, target: &Path, expected: Digest, new: &[u8]) -> Result<Outcome, FileError> {
    let (old, file) = read_regular(path, target, MAX_BYTES)?;
    if Digest::of(&old) != expected {
        return Ok(Outcome::Changed);
    }
    sys::replaceable(path, &file)?;
    let dir = target.parent().ok_or_else(|| FileError::NotRegular { path: path.to_owned(), kind: "a directory" })?;
    let io = |e| FileError::io("write beside", path, e);
    let beside = write_beside(dir, target, &file, new).map_err(io)?;
    // On Windows a file that is open is not replaced.
    drop(file);
    let io = |e| FileError::io("replace", path, e);
    fault::point();
    match sys::exchange(beside.path(), target) {
        Ok(()) => {
            fault::point();
            // What came out must be what was read; else it goes back in.
            if content(path, beside.path()) != Some(expected) {
                sys::exchange(beside.path(), target).map_err(io)?;
                // And if yet another write was thrown out by that, it goes in again: the last writer wins.
                if content(path, beside.path()) != Some(Digest::of(new)) {
                    sys::exchange(beside.path(), target).map_err(io)?;
                }
                return Ok(Outcome::Changed);
            }
        }
        // Not every file system can exchange: check once more, then replace.
        Err(e) if sys::cannot_exchange(&e) => {
            if content(path, target) != Some(expected) {
                return Ok(Outcome::Changed);
            }
            beside.persist(target).map_err(|e| io(e.error))?;
        }
        Err(e) => return Err(io(e)),
    }
    fault::point();
    sys::sync_names(dir).map_err(|e| FileError::io("make durable", path, e))?;
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
        let ours = file.metadata().is_ok_and(|m| sys::is_ours(&m));
        if ours && (bytes.is_empty() || known(Digest::of(&bytes))) {
            // It is swept again next time.
            let _ = fs::remove_file(left.path());
        }
    }
}

/// A durable file beside `target`, with its owner, mode and extended attributes. Removed when dropped.
fn write_beside(dir: &Path, target: &Path, old: &File, new: &[u8]) -> io::Result<NamedTempFile> {
    let mut beside = tempfile::Builder::new().prefix(&prefix(target)).tempfile_in(dir)?;
    fault::point();
    beside.write_all(new)?;
    fault::point();
    let file = beside.as_file();
    sys::copy_attributes(old, file)?;
    file.sync_all()?;
    Ok(beside)
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
