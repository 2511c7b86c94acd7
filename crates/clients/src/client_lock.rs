//! A client's own lock on its file, so that neither writes over what the other has just read.
//!
//! Claude Code 2.1.197 saves `~/.claude.json` under the npm package `proper-lockfile`: a directory `<file>.lock`, stale
//! when its mtime is 10 s old; a save that meets the lock reads the file again and writes without it. Holding it is a
//! help, not a guarantee: [`crate::replace`] finds out about every write in between.

use std::{
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

/// `proper-lockfile`: default of `stale`.
const STALE: Duration = Duration::from_secs(10);
const STEP: Duration = Duration::from_millis(20);

/// The lock, given back when dropped.
pub(crate) struct ClientLock(Option<PathBuf>);

impl ClientLock {
    /// Takes the lock, waiting at most `tries` steps of 20 ms for a client that holds it; `None` when it still does.
    /// A stale lock is removed, as the package does it; where no lock can be made the caller goes on without.
    pub fn take(file: &Path, suffix: Option<&str>, tries: u32) -> Option<Self> {
        let Some(suffix) = suffix else { return Some(Self(None)) };
        let mut name = OsString::from(file);
        name.push(suffix);
        let dir = PathBuf::from(name);
        for _ in 0..tries {
            match fs::create_dir(&dir) {
                Ok(()) => return Some(Self(Some(dir))),
                Err(e) if e.kind() != std::io::ErrorKind::AlreadyExists => return Some(Self(None)),
                Err(_) if fresh(&dir) => std::thread::sleep(STEP),
                // Only ever an empty directory: whatever else has this name stays.
                Err(_) if fs::remove_dir(&dir).is_ok() => {}
                Err(_) => return Some(Self(None)),
            }
        }
        None
    }
}

fn fresh(dir: &Path) -> bool {
    // Gone in the meantime counts as fresh: try again.
    let Ok(modified) = fs::symlink_metadata(dir).and_then(|m| m.modified()) else { return true };
    // A time in the future is no reason to wait for it.
    modified.elapsed().is_ok_and(|age| age < STALE)
}

impl Drop for ClientLock {
    fn drop(&mut self) {
        if let Some(dir) = &self.0 {
            // Left behind, it is stale after ten seconds and removed by the client.
            let _ = fs::remove_dir(dir);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_holder_at_a_time() {
        let scratch = tempfile::tempdir().unwrap();
        let file = scratch.path().join("c.json");
        let held = ClientLock::take(&file, Some(".lock"), 1).unwrap();
        assert!(scratch.path().join("c.json.lock").is_dir());
        assert!(ClientLock::take(&file, Some(".lock"), 1).is_none());
        drop(held);
        assert!(!scratch.path().join("c.json.lock").exists());
        assert!(ClientLock::take(&file, None, 1).is_some());
    }

    #[test]
    fn a_stale_lock_does_not_stop_us() {
        let scratch = tempfile::tempdir().unwrap();
        let dir = scratch.path().join("c.json.lock");
        fs::create_dir(&dir).unwrap();
        let old = std::time::SystemTime::now() - STALE * 2;
        fs::File::open(&dir).unwrap().set_modified(old).unwrap();
        assert!(ClientLock::take(&scratch.path().join("c.json"), Some(".lock"), 2).unwrap().0.is_some());
        assert!(!dir.exists());
        fs::write(&dir, "not a lock").unwrap();
        fs::File::open(&dir).unwrap().set_modified(old).unwrap();
        assert!(ClientLock::take(&scratch.path().join("c.json"), Some(".lock"), 2).unwrap().0.is_none());
        assert!(dir.exists());
    }
}
