//! Reading one configuration file: bounded, regular files only, links resolved.

use std::{
    fs::{self, File},
    io::{self, Read as _},
    path::{Path, PathBuf},
};

use firedoor_model::Digest;

use crate::{error::FileError, sys};

/// Largest configuration file that is read at all.
pub(crate) const MAX_BYTES: u64 = 32 * 1024 * 1024;

/// One file as it was read.
pub(crate) struct Source {
    /// The name it was asked for by.
    pub path: PathBuf,
    /// The file itself, links resolved.
    pub target: PathBuf,
    /// All its bytes.
    pub bytes: Vec<u8>,
}

const BOM: &str = "\u{feff}";

impl Source {
    /// Reads `path`; `None` when there is no such file.
    pub fn read(path: &Path, max: u64) -> Result<Option<Self>, FileError> {
        let Some(target) = resolve(path)? else { return Ok(None) };
        let (bytes, _) = read_regular(path, &target, max.min(MAX_BYTES))?;
        Ok(Some(Self { path: path.to_owned(), target, bytes }))
    }

    /// Hash of the whole file.
    pub fn digest(&self) -> Digest {
        Digest::of(&self.bytes)
    }
}

/// Splits a file into its byte order mark and its text.
pub(crate) fn text_of<'b>(path: &Path, bytes: &'b [u8]) -> Result<(&'b str, &'b str), FileError> {
    let hint = match bytes {
        [0xFF, 0xFE, ..] | [0xFE, 0xFF, ..] | [0, _, ..] | [_, 0, ..] => " but UTF-16 or UTF-32",
        _ => "",
    };
    let all = match std::str::from_utf8(bytes) {
        Ok(text) if hint.is_empty() => text,
        _ => return Err(FileError::NotUtf8 { path: path.to_owned(), hint }),
    };
    Ok(match all.strip_prefix(BOM) {
        Some(text) => (BOM, text),
        None => ("", all),
    })
}

/// The file behind `path`; `None` when nothing has that name.
pub(crate) fn resolve(path: &Path) -> Result<Option<PathBuf>, FileError> {
    match sys::canonicalize(path) {
        Ok(target) => Ok(Some(target)),
        // ENOTDIR: a part of the way is a file, so there is no such file either.
        Err(e) if matches!(e.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            match fs::symlink_metadata(path) {
                Ok(_) => Err(FileError::Dangling { path: path.to_owned() }),
                Err(_) => Ok(None),
            }
        }
        Err(e) if sys::is_loop(&e) => Err(FileError::Loop { path: path.to_owned() }),
        Err(e) => Err(FileError::io("read", path, e)),
    }
}

/// Reads a regular file of at most `max` bytes. Opening does not block on a pipe and does not follow a link that has
/// appeared since `resolve`.
pub(crate) fn read_regular(path: &Path, target: &Path, max: u64) -> Result<(Vec<u8>, File), FileError> {
    let io = |e| FileError::io("read", path, e);
    // Asked before opening, too: opening a device can have effects.
    regular(path, &fs::symlink_metadata(target).map_err(io)?)?;
    let mut file = sys::open(target).map_err(io)?;
    regular(path, &file.metadata().map_err(io)?)?;
    let mut bytes = Vec::new();
    (&mut file).take(max.saturating_add(1)).read_to_end(&mut bytes).map_err(io)?;
    if bytes.len() as u64 > max {
        return Err(FileError::TooLarge { path: path.to_owned(), max });
    }
    Ok((bytes, file))
}

fn regular(path: &Path, meta: &fs::Metadata) -> Result<(), FileError> {
    let t = meta.file_type();
    let kind = match () {
        () if t.is_file() => return Ok(()),
        () if t.is_dir() => "a directory",
        () if t.is_symlink() => "a symbolic link",
        () => sys::kind(t),
    };
    Err(FileError::NotRegular { path: path.to_owned(), kind })
}
