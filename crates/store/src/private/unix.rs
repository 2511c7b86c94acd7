//! As Unix has them: owners and modes say whose a file is.

use std::{
    fs::{self, File, OpenOptions, TryLockError},
    io::{self, Read as _, Write as _},
    os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
    thread,
    time::{Duration, Instant},
};

use firedoor_model::KeychainError;
use nix::libc::{O_NOFOLLOW, O_NONBLOCK};

use super::{Links, fault};

/// How long another process is waited for. One that moves secrets may wait for a person.
const PATIENCE: Duration = Duration::from_secs(10);
/// How often it is looked whether that one is done.
const PAUSE: Duration = Duration::from_millis(10);

fn cannot<'a>(path: &'a Path, doing: &'a str) -> impl FnOnce(io::Error) -> KeychainError + 'a {
    move |e| fault(path, format!("cannot {doing}: {e}"))
}

/// Never waits for the other end of a pipe.
fn options(links: Links) -> OpenOptions {
    let follow = if links == Links::Refuse { O_NOFOLLOW } else { 0 };
    let mut options = OpenOptions::new();
    options.mode(0o600).custom_flags(follow | O_NONBLOCK);
    options
}

/// Whether a file is the user's, or root's where that will do.
fn is_ours(meta: &fs::Metadata, or_roots: bool) -> bool {
    meta.uid() == nix::unistd::geteuid().as_raw() || or_roots && meta.uid() == 0
}

/// Whether others than its owner may do something with it.
fn is_open_to_others(meta: &fs::Metadata) -> bool {
    meta.permissions().mode() & 0o077 != 0
}

/// Makes a directory that its owner alone may enter, or makes sure that it is one.
pub(crate) fn directory(path: &Path) -> Result<(), KeychainError> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(cannot(path, "make the directory"))?;
    checked_directory(path)
}

/// That a directory is one of ours alone.
pub(crate) fn checked_directory(path: &Path) -> Result<(), KeychainError> {
    let meta = fs::symlink_metadata(path).map_err(cannot(path, "look at it"))?;
    match meta.is_dir() && is_ours(&meta, false) && !is_open_to_others(&meta) {
        true => Ok(()),
        false => Err(fault(path, "this must be a directory of yours with mode 0700: fix it, or move it away")),
    }
}

/// A file's content, at most so many bytes of it; `None` when there is no file.
pub(crate) fn read(path: &Path, most: u64, links: Links) -> Result<Option<Vec<u8>>, KeychainError> {
    let file = match options(links).read(true).open(path) {
        Ok(file) => file,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(_) if links == Links::Refuse && fs::symlink_metadata(path).is_ok_and(|m| m.is_symlink()) => {
            return Err(fault(path, "this is a link, which is not followed: put the file itself there"));
        }
        Err(e) => return Err(cannot(path, "read it")(e)),
    };
    let meta = file.metadata().map_err(cannot(path, "look at it"))?;
    if !meta.is_file() {
        return Err(fault(path, "this is not a regular file: move it away"));
    }
    if !is_ours(&meta, links == Links::Follow) {
        return Err(fault(path, "this belongs to another user: move it away, or take it over with chown"));
    }
    if links == Links::Follow && is_open_to_others(&meta) {
        return Err(fault(path, "others than you may read this: run chmod 600 on it, and think of who has"));
    }
    let mut bytes = Vec::new();
    // It may grow while it is read.
    (&file).take(most + 1).read_to_end(&mut bytes).map_err(cannot(path, "read it"))?;
    if bytes.len() as u64 > most {
        return Err(fault(path, format!("this is longer than {most} bytes, so it is not what Firedoor wrote")));
    }
    Ok(Some(bytes))
}

/// Makes a file that must not be there yet.
pub(crate) fn create(path: &Path, bytes: &[u8]) -> Result<(), KeychainError> {
    let opened = options(Links::Refuse).write(true).create_new(true).open(path);
    let mut file = opened.map_err(cannot(path, "make it"))?;
    let written = file.write_all(bytes).and_then(|()| file.sync_all());
    if written.is_err() {
        // A piece of it would be taken for all of it.
        let _ = fs::remove_file(path);
    }
    written.map_err(cannot(path, "write it"))?;
    synced(path)
}

/// Puts a new content in the place of a file: whoever reads gets the old one or the new one, also after a power cut. Whoever calls
/// holds the lock of its directory.
pub(crate) fn replace(path: &Path, bytes: &[u8]) -> Result<(), KeychainError> {
    let mut beside = path.as_os_str().to_owned();
    beside.push(".new");
    let beside = PathBuf::from(beside);
    // What somebody who died has left.
    remove(&beside)?;
    let written = create(&beside, bytes).and_then(|()| fs::rename(&beside, path).map_err(cannot(path, "replace it")));
    if written.is_err() {
        let _ = fs::remove_file(&beside);
    }
    written?;
    synced(path)
}

/// Removes a file; whether it was there.
pub(crate) fn remove(path: &Path) -> Result<bool, KeychainError> {
    match fs::remove_file(path) {
        Ok(()) => synced(path).map(|()| true),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(e) => Err(cannot(path, "remove it")(e)),
    }
}

/// A name is on disk once its directory is.
fn synced(path: &Path) -> Result<(), KeychainError> {
    let Some(directory) = path.parent() else { return Ok(()) };
    File::open(directory).and_then(|d| d.sync_all()).map_err(cannot(directory, "write it"))
}

/// Held while files of a directory are changed. Given back when it is dropped, and by the system when its holder dies.
pub(crate) struct Lock(#[expect(dead_code, reason = "closing it gives the lock back")] File);

impl Lock {
    /// Takes the lock of a directory.
    pub(crate) fn take(directory: &Path) -> Result<Self, KeychainError> {
        let path = directory.join("lock");
        let file = options(Links::Refuse).read(true).write(true).create(true).truncate(false).open(&path);
        let file = file.map_err(cannot(&path, "open it"))?;
        let end = Instant::now() + PATIENCE;
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(Self(file)),
                Err(TryLockError::WouldBlock) if Instant::now() < end => thread::sleep(PAUSE),
                Err(TryLockError::WouldBlock) => {
                    let why = format!(
                        "another command of Firedoor's has had this for {} s: end it, and try again",
                        PATIENCE.as_secs()
                    );
                    return Err(fault(&path, why));
                }
                Err(TryLockError::Error(e)) => return Err(cannot(&path, "lock it")(e)),
            }
        }
    }
}
