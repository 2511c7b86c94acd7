//! The private directories of one entry: its home, cache and temporary directory, and its packages.
//!
//! A server can write in its home, so what is found there may have been planted: no link in it is followed.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use firedoor_model::{Digest, EntryId, paths::Paths};

use crate::{error::PlanError, sys};

#[cfg(unix)]
#[path = "private/unix.rs"]
mod system;
#[cfg(windows)]
#[path = "private/windows.rs"]
mod system;

use system::check_dir;

/// Hex digits of the entry's digest in a directory name. 96 bits, and short, because the paths of unix sockets in a
/// temporary directory are bounded by 107 bytes (unix(7)).
const NAME: usize = 24;
/// Hex digits in the short name of a temporary directory.
const SHORT: usize = 12;

/// Removes the private directories of an entry that will not run again, and what is in them.
pub fn forget(paths: &Paths, entry: &EntryId) -> Result<(), PlanError> {
    let private = Private::of(paths, entry);
    let link = private.short_link(&paths.runtime);
    for (path, gone) in [(&link, fs::remove_file(&link)), (&private.base, fs::remove_dir_all(&private.base))] {
        match gone {
            Err(e) if e.kind() != io::ErrorKind::NotFound => {
                return Err(PlanError::io(path, "remove the server's private directory", e));
            }
            _ => {}
        }
    }
    Ok(())
}

/// Most files and directories of a private home that are looked at, and how deep.
const MAX_LOOKED: usize = 2_000;
const MAX_DEPTH: usize = 6;

/// The private home of an entry, if the server has written files there that are more than settings and traces: none of what begins
/// with a dot counts. Bounded, so that of very many files some may not be seen.
pub fn home_with_files(paths: &Paths, entry: &EntryId) -> Option<PathBuf> {
    let home = Private::of(paths, entry).home();
    let mut open = vec![(home.clone(), 0)];
    let mut left = MAX_LOOKED;
    while let Some((directory, depth)) = open.pop() {
        for found in fs::read_dir(directory).into_iter().flatten().flatten() {
            left = left.checked_sub(1)?;
            // The type of the link itself: none is followed.
            let Ok(kind) = found.file_type() else { continue };
            match found.file_name().as_encoded_bytes().starts_with(b".") {
                true => {}
                false if kind.is_file() => return Some(home),
                false if kind.is_dir() && depth < MAX_DEPTH => open.push((found.path(), depth + 1)),
                false => {}
            }
        }
    }
    None
}

/// What became of a link in the private home.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(unix, expect(dead_code, reason = "who may make links is a matter of Windows'"))]
pub(crate) enum Linked {
    /// It is there.
    Yes,
    /// The private home has something of its own at that place.
    TheServersOwn,
    /// The system does not let this user make one.
    NotAllowed,
}

/// The private directories of one entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Private {
    base: PathBuf,
}

impl Private {
    pub(crate) fn of(paths: &Paths, entry: &EntryId) -> Self {
        let mut name = Digest::of(entry.to_string().as_bytes()).to_string();
        name.truncate(NAME);
        Self { base: paths.data.join("servers").join(name) }
    }

    pub(crate) fn home(&self) -> PathBuf {
        self.base.join("home")
    }

    pub(crate) fn cache(&self) -> PathBuf {
        self.base.join("cache")
    }

    pub(crate) fn tmp(&self) -> PathBuf {
        self.base.join("tmp")
    }

    fn short_link(&self, runtime: &Path) -> PathBuf {
        let name = self.base.file_name().and_then(|n| n.to_str()).and_then(|n| n.get(..SHORT)).unwrap_or_default();
        runtime.join("tmp").join(name)
    }

    /// Generations of installed packages; only single generations are granted.
    pub(crate) fn packages(&self) -> PathBuf {
        self.base.join("packages")
    }

    /// Certificates that were made for single starts of the server; only single ones are granted, to be read.
    pub(crate) fn trust(&self) -> PathBuf {
        self.base.join("trust")
    }

    /// The record of the last install. Never granted.
    pub(crate) fn marker(&self) -> PathBuf {
        self.base.join("installed.json")
    }

    /// Says that what the server kept elsewhere was copied. Never granted.
    fn carried_marker(&self) -> PathBuf {
        self.base.join("carried")
    }

    /// Whether what the server kept elsewhere was copied into its home before.
    pub(crate) fn was_carried(&self) -> bool {
        self.carried_marker().exists()
    }

    /// From now on it was.
    pub(crate) fn carried(&self) -> Result<(), PlanError> {
        let marker = self.carried_marker();
        fs::write(&marker, "").map_err(|e| PlanError::io(&marker, "remember that the server's files were copied", e))
    }

    /// A file that is empty for certain.
    pub(crate) fn empty_file(&self) -> PathBuf {
        sys::empty_file(&self.base)
    }

    /// Creates what is missing, each directory closed to other users.
    pub(crate) fn create(&self) -> Result<(), PlanError> {
        let io = |path: &Path, e| PlanError::io(path, "create the server's private directory", e);
        private_dir(&self.base).map_err(|e| io(&self.base, e))?;
        let in_home = sys::HOME_DIRECTORIES.iter().map(|name: &&str| self.home().join(name));
        for dir in [self.home(), self.cache(), self.tmp(), self.packages()].into_iter().chain(in_home) {
            match sys::private_directories().create(&dir) {
                Ok(()) => {}
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists => check_dir(&dir)?,
                Err(e) => return Err(io(&dir, e)),
            }
        }
        Ok(())
    }
}

/// Creates a directory and what is missing above it, each closed to other users.
fn private_dir(path: &Path) -> io::Result<()> {
    sys::private_directories().recursive(true).create(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_server_has_written_is_told_from_traces() {
        let root = tempfile::tempdir().unwrap();
        let paths = Paths::from_env(|name| (name == "HOME").then(|| root.path().into())).unwrap();
        let entry: EntryId = "c/user/s".parse().unwrap();
        assert_eq!(home_with_files(&paths, &entry), None);
        let home = Private::of(&paths, &entry).home();
        fs::create_dir_all(home.join(".npm/logs")).unwrap();
        fs::create_dir_all(home.join("notes/deep")).unwrap();
        fs::write(home.join(".npm/logs/a"), "x").unwrap();
        #[cfg(unix)]
        std::os::unix::fs::symlink("/etc", home.join("link")).unwrap();
        assert_eq!(home_with_files(&paths, &entry), None);
        fs::write(home.join("notes/deep/graph.jsonl"), "x").unwrap();
        assert_eq!(home_with_files(&paths, &entry), Some(home));
    }

    #[test]
    fn entries_have_their_own_directories() {
        let (variable, home) = if cfg!(windows) { ("USERPROFILE", r"C:\h") } else { ("HOME", "/h") };
        let paths = Paths::from_env(|n| (n == variable).then(|| home.into())).unwrap();
        let of = |s: &str| Private::of(&paths, &EntryId::new("c", "user", s).unwrap()).base;
        assert_ne!(of("a"), of("b"));
        assert_eq!(of("a"), of("a"));
        assert!(of("a").starts_with(paths.data.join("servers")));
    }
}
