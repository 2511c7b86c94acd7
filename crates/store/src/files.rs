//! The files around the database: its directory, its lock, and damaged ones set aside.

use std::{
    ffi::OsString,
    fs::{self, DirBuilder, File, OpenOptions, TryLockError},
    io,
    path::{Path, PathBuf},
};

use firedoor_model::Millis;

use crate::StoreError;

/// Most names tried for a file that is set aside.
const MAX_NAMES: u32 = 1000;

/// `path` with `suffix` added to its file name.
fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(suffix);
    PathBuf::from(name)
}

/// Creates the directory of `path`, readable by its owner only. One that exists is left as it is.
pub(crate) fn private_directory(path: &Path) -> Result<(), StoreError> {
    let Some(directory) = path.parent().filter(|d| !d.as_os_str().is_empty()) else { return Ok(()) };
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(directory).map_err(StoreError::io(directory, "create the directory"))
}

/// Opens `path` for writing, creating it, so that only its owner can read it. SQLite gives its `-wal` and `-shm` files
/// the mode of the database, so this covers them too.
pub(crate) fn private_file(path: &Path) -> Result<File, StoreError> {
    match fs::metadata(path) {
        // Opening a FIFO would block, and SQLite's own error for a directory says little.
        Ok(found) if !found.is_file() => return Err(StoreError::NotAFile { path: path.to_owned() }),
        Ok(_) => {}
        Err(e) if e.kind() == io::ErrorKind::NotFound => {}
        Err(e) => return Err(StoreError::io(path, "look at")(e)),
    }
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let file = options.open(path).map_err(StoreError::io(path, "open"))?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = file.metadata().map_err(StoreError::io(path, "look at"))?.permissions().mode();
        if mode & 0o077 != 0 {
            file.set_permissions(fs::Permissions::from_mode(0o600)).map_err(StoreError::io(path, "make private"))?;
        }
    }
    Ok(file)
}

/// Takes the lock that makes its holder the only engine on this database. SQLite's own locks are held during
/// transactions only, so they would let two engines in.
pub(crate) fn lock(path: &Path) -> Result<File, StoreError> {
    let lock_path = beside(path, ".lock");
    let file = private_file(&lock_path)?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(StoreError::Locked { path: path.to_owned() }),
        Err(TryLockError::Error(e)) => Err(StoreError::io(&lock_path, "lock")(e)),
    }
}

/// Renames a damaged database and its `-wal` and `-shm` to a name that nothing has; the caller holds the lock.
///
/// The database goes last: SQLite deletes a `-wal` that it finds beside no database, and nothing may be deleted here.
pub(crate) fn set_aside(path: &Path, now: Millis) -> Result<PathBuf, StoreError> {
    const PARTS: [&str; 3] = ["-wal", "-shm", ""];
    let free = |base: &PathBuf| PARTS.iter().all(|part| beside(base, part).symlink_metadata().is_err());
    let names = (0..MAX_NAMES).map(|n| match n {
        0 => beside(path, &format!(".corrupt-{}", now.0)),
        n => beside(path, &format!(".corrupt-{}-{n}", now.0)),
    });
    let Some(aside) = names.into_iter().find(free) else {
        let taken = io::Error::new(io::ErrorKind::AlreadyExists, "too many damaged databases stand beside it");
        return Err(StoreError::io(path, "set aside")(taken));
    };
    for part in PARTS {
        match fs::rename(beside(path, part), beside(&aside, part)) {
            Ok(()) => {}
            Err(e) if e.kind() == io::ErrorKind::NotFound => {}
            Err(e) => return Err(StoreError::io(path, "set aside")(e)),
        }
    }
    Ok(aside)
}
