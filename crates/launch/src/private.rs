//! The private directories of one entry: its home, cache and temporary directory, and its packages.
//!
//! A server can write in its home, so what is found there may have been planted: every directory is opened by
//! descriptor without following symbolic links.

use std::{
    fs::{self, DirBuilder, File},
    io,
    os::{
        fd::AsFd as _,
        unix::fs::{DirBuilderExt as _, MetadataExt as _},
    },
    path::{Component, Path, PathBuf},
};

use firedoor_model::{Digest, EntryId, paths::Paths};
use nix::{
    errno::Errno,
    fcntl::{OFlag, openat, readlinkat},
    sys::stat::{Mode, mkdirat},
    unistd::symlinkat,
};

use crate::error::PlanError;

/// Hex digits of the entry's digest in a directory name. 96 bits, and short, because the paths of unix sockets in a
/// temporary directory are bounded by 107 bytes (unix(7)).
const NAME: usize = 24;

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

    /// Generations of installed packages; only single generations are granted.
    pub(crate) fn packages(&self) -> PathBuf {
        self.base.join("packages")
    }

    /// The record of the last install. Never granted.
    pub(crate) fn marker(&self) -> PathBuf {
        self.base.join("installed.json")
    }

    /// Creates what is missing, each directory with mode 0700.
    pub(crate) fn create(&self) -> Result<(), PlanError> {
        let io = |path: &Path, e| PlanError::io(path, "create the server's private directory", e);
        private_dir(&self.base).map_err(|e| io(&self.base, e))?;
        for dir in [self.home(), self.cache(), self.tmp(), self.packages()] {
            match DirBuilder::new().mode(0o700).create(&dir) {
                Ok(()) => {}
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists => check_dir(&dir)?,
                Err(e) => return Err(io(&dir, e)),
            }
        }
        Ok(())
    }

    /// Links `~/REST` of the private home to `target`. Whether the link is there afterwards: not when the private home
    /// has something of its own at that place.
    pub(crate) fn link(&self, rest: &Path, target: &Path) -> Result<bool, PlanError> {
        let home = self.home();
        let planted = |why| PlanError::Planted { path: home.join(rest), why };
        let failed = |e: Errno| PlanError::io(home.join(rest), "link the server's state", e.into());
        let parts: Vec<&std::ffi::OsStr> = rest
            .components()
            .map(|c| match c {
                Component::Normal(part) => Ok(part),
                _ => Err(planted("its path has a part that is no name")),
            })
            .collect::<Result<_, _>>()?;
        let Some((name, parents)) = parts.split_last() else { return Ok(false) };
        let flags = OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        let mut dir = nix::fcntl::open(&home, flags, Mode::empty()).map_err(failed)?;
        for part in parents {
            match mkdirat(dir.as_fd(), *part, Mode::S_IRWXU) {
                Ok(()) | Err(Errno::EEXIST) => {}
                Err(e) => return Err(failed(e)),
            }
            dir = openat(dir.as_fd(), *part, flags, Mode::empty()).map_err(|e| match e {
                Errno::ELOOP | Errno::ENOTDIR => planted("a part of its path is a symbolic link or a file"),
                e => failed(e),
            })?;
        }
        match symlinkat(target, dir.as_fd(), *name) {
            Ok(()) => Ok(true),
            Err(Errno::EEXIST) => match readlinkat(dir.as_fd(), *name) {
                Ok(there) if Path::new(&there) == target => Ok(true),
                Ok(_) => Err(planted("a symbolic link that leads elsewhere")),
                Err(Errno::EINVAL) => Ok(false),
                Err(e) => Err(failed(e)),
            },
            Err(e) => Err(failed(e)),
        }
    }
}

/// Creates a directory and what is missing above it, each with mode 0700.
fn private_dir(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}

/// A private directory must be a real directory of ours, closed to others.
fn check_dir(dir: &Path) -> Result<(), PlanError> {
    let meta =
        fs::symlink_metadata(dir).map_err(|e| PlanError::io(dir, "look at the server's private directory", e))?;
    let planted = |why| Err(PlanError::Planted { path: dir.to_owned(), why });
    if !meta.is_dir() {
        return planted("it is a symbolic link or a file");
    }
    if meta.uid() != nix::unistd::geteuid().as_raw() {
        return planted("it belongs to another user");
    }
    if meta.mode() & 0o077 != 0 {
        let open = |e| PlanError::io(dir, "close the server's private directory to other users", e);
        let mut mode = meta.permissions();
        std::os::unix::fs::PermissionsExt::set_mode(&mut mode, 0o700);
        // Through a descriptor, so that what was checked is what is changed.
        let file = File::open(dir).map_err(open)?;
        file.set_permissions(mode).map_err(open)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn private() -> (tempfile::TempDir, Private) {
        let dir = tempfile::tempdir().unwrap();
        let private = Private { base: dir.path().join("a/b/servers/x") };
        private.create().unwrap();
        (dir, private)
    }

    #[test]
    fn directories_are_closed_to_others() {
        let (_dir, private) = private();
        private.create().unwrap();
        for d in [private.home(), private.cache(), private.tmp(), private.packages(), private.base.clone()] {
            assert_eq!(fs::metadata(&d).unwrap().mode() & 0o777, 0o700, "{}", d.display());
        }
        std::os::unix::fs::PermissionsExt::set_mode(&mut fs::metadata(private.tmp()).unwrap().permissions(), 0o755);
        fs::set_permissions(private.tmp(), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        private.create().unwrap();
        assert_eq!(fs::metadata(private.tmp()).unwrap().mode() & 0o777, 0o700);
        fs::remove_dir(private.tmp()).unwrap();
        symlink("/tmp", private.tmp()).unwrap();
        assert!(matches!(private.create(), Err(PlanError::Planted { .. })));
    }

    #[test]
    fn state_is_linked_once() {
        let (dir, private) = private();
        let real = dir.path().join("real");
        for _ in 0..2 {
            assert!(private.link(Path::new(".config/gcloud"), &real).unwrap());
        }
        assert_eq!(fs::read_link(private.home().join(".config/gcloud")).unwrap(), real);
        fs::create_dir(private.home().join(".aws")).unwrap();
        assert!(!private.link(Path::new(".aws"), &real).unwrap());
    }

    #[test]
    fn planted_links_are_not_followed() {
        let (dir, private) = private();
        let outside = dir.path().join("outside");
        fs::create_dir(&outside).unwrap();
        symlink(&outside, private.home().join(".config")).unwrap();
        symlink(&outside, private.home().join(".aws")).unwrap();
        for rest in [".config/gcloud", ".aws", "../escape", "/etc/x"] {
            let got = private.link(Path::new(rest), Path::new("/real"));
            assert!(matches!(got, Err(PlanError::Planted { .. })), "{rest}: {got:?}");
        }
        assert_eq!(fs::read_dir(&outside).unwrap().count(), 0);
    }

    #[test]
    fn entries_have_their_own_directories() {
        let paths = Paths::from_env(|n| (n == "HOME").then(|| "/h".into())).unwrap();
        let of = |s: &str| Private::of(&paths, &EntryId::new("c", "user", s).unwrap()).base;
        assert_ne!(of("a"), of("b"));
        assert_eq!(of("a"), of("a"));
        assert!(of("a").starts_with("/h/.local/share/firedoor/servers"));
    }
}
