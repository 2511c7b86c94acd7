//! Attributes and links as Windows has them. Who may read and write a file is its access list's business: a new file has
//! that of its directory, which in a user's own directories lets in nobody else.

use std::{
    fs::{self, File, FileType, Metadata, OpenOptions},
    io,
    os::windows::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
};

use crate::error::FileError;

/// `FILE_FLAG_OPEN_REPARSE_POINT`: a link is opened itself, and is then no regular file.
const NO_LINKS: u32 = 0x0020_0000;
/// `ERROR_CANT_RESOLVE_FILENAME`.
const LOOP: i32 = 1921;

/// How a file is made writable.
pub(crate) const MAKE_WRITABLE: &str = "attrib -r";
/// What to do where something is denied: also a file that a program has open without letting others replace it.
pub(crate) const DENIED: &str =
    ". Make the file and its directory writable for you, and end the program that has it open";

/// Opens to read, without following a link.
pub(crate) fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).custom_flags(NO_LINKS).open(path)
}

/// Opens a file of ours to be locked; it is made if it is not there.
pub(crate) fn open_lock(path: &Path) -> io::Result<File> {
    OpenOptions::new().create(true).truncate(false).write(true).custom_flags(NO_LINKS).open(path)
}

/// The path without links.
pub(crate) fn canonicalize(path: &Path) -> io::Result<PathBuf> {
    firedoor_model::paths::canonicalize(path)
}

/// Whether two paths are the same name: `C:` and `c:` are, and what was typed is what a program is told of its own path.
pub(crate) fn same_name(a: &Path, b: &Path) -> bool {
    a.as_os_str().eq_ignore_ascii_case(b.as_os_str())
}

/// Whether links led in a circle.
pub(crate) fn is_loop(e: &io::Error) -> bool {
    e.raw_os_error() == Some(LOOP)
}

/// What something is that is neither a file nor a directory nor a link.
pub(crate) fn kind(_: FileType) -> &'static str {
    "a device"
}

/// Attributes and number of names, checked before a file is replaced.
pub(crate) fn replaceable(path: &Path, file: &File) -> Result<(), FileError> {
    let io = |e| FileError::io("read", path, e);
    if file.metadata().map_err(io)?.permissions().readonly() {
        return Err(FileError::ReadOnly { path: path.to_owned() });
    }
    let links = winapi_util::file::information(file).map_err(io)?.number_of_links();
    if links > 1 {
        return Err(FileError::HardLinks { path: path.to_owned(), links });
    }
    Ok(())
}

/// Whether a file can be made in a directory. Access lists say it at the attempt only.
pub(crate) fn takes_files(_: &Path) -> io::Result<()> {
    Ok(())
}

/// Whether this user made it. A file with our name in a user's directory: its content says the rest.
pub(crate) fn is_ours(_: &Metadata) -> bool {
    true
}

/// A new file has what its directory gives it.
pub(crate) fn copy_attributes(_: &File, _: &File) -> io::Result<()> {
    Ok(())
}

/// The caller falls back to replacing, which `MoveFileEx` does at once.
pub(crate) fn exchange(_: &Path, _: &Path) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Whether names cannot be swapped there at all.
pub(crate) fn cannot_exchange(e: &io::Error) -> bool {
    e.kind() == io::ErrorKind::Unsupported
}

/// A directory cannot be flushed; NTFS keeps a journal of names.
pub(crate) fn sync_names(_: &Path) -> io::Result<()> {
    Ok(())
}

/// Makes a directory below the user's own.
pub(crate) fn private_dir(dir: &Path) -> io::Result<()> {
    fs::create_dir_all(dir)
}

/// `ReadDirectoryChangesW` knows no bound for a user.
pub(crate) fn no_more_watches(_: &io::Error) -> bool {
    false
}

/// As above.
pub(crate) fn no_more_watchers(_: &io::Error) -> bool {
    false
}
