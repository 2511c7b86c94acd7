//! Which file a command really runs: `PATH`, symbolic links, interpreters and version managers.

#[cfg(any(windows, test))]
mod batch;
#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

use std::{
    ffi::{OsStr, OsString},
    fs,
    path::{Component, Path, PathBuf},
};

use firedoor_model::paths::canonicalize;

use crate::{error::PlanError, sys};

/// Longest chain of interpreters. Linux allows 4 (fs/exec.c, `exec_binprm`).
const MAX_INTERPRETERS: usize = 4;
/// Longest chain of symbolic links (the kernel's own bound, path_resolution(7)).
const MAX_LINKS: usize = 40;

/// Where to look things up.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lookup<'a> {
    pub(crate) path: Option<&'a OsStr>,
    pub(crate) cwd: &'a Path,
    pub(crate) home: &'a Path,
    pub(crate) env: &'a [(OsString, OsString)],
}

/// A program and everything that must be readable to start it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Program {
    /// Absolute path to run.
    pub(crate) path: PathBuf,
    /// The file behind the last symbolic link.
    pub(crate) real: PathBuf,
    /// Every executable on the way, with each hop of its symbolic links: the program, its interpreter, and so on.
    pub(crate) files: Vec<PathBuf>,
    /// The last interpreter, when the program is a script.
    pub(crate) interpreter: Option<PathBuf>,
    /// Directories to put before `PATH`, because a version manager's stand-in was replaced.
    pub(crate) bin_dirs: Vec<PathBuf>,
    /// What it gets before its arguments: the script, where the system does not start an interpreter by itself.
    pub(crate) first: Vec<OsString>,
}

impl<'a> Lookup<'a> {
    /// A variable of the request.
    pub(crate) fn var(&self, name: &str) -> Option<&'a OsStr> {
        self.env.iter().rev().find(|(n, _)| sys::same_variable(n, OsStr::new(name))).map(|(_, v)| v.as_os_str())
    }

    /// Finds a command and follows it to what really runs.
    pub(crate) fn resolve(&self, name: &OsStr) -> Result<Program, PlanError> {
        self.resolve_at(self.find(name)?, 0)
    }
}

/// Each hop of a path's symbolic links (of its last part), the path itself first. Every directory above a hop is a real one
/// that holds it: of `../work/../app/x.py`, `work` is none.
pub(crate) fn links(path: &Path) -> Vec<PathBuf> {
    let mut hops = Vec::new();
    let mut next = standing(path);
    while hops.len() < MAX_LINKS
        && let Some(at) = next
    {
        let target = fs::read_link(&at).ok();
        next = target.and_then(|target| standing(&at.parent().unwrap_or(Path::new("/")).join(target)));
        hops.push(at);
    }
    if let Ok(real) = canonicalize(path)
        && hops.last() != Some(&real)
    {
        hops.push(real);
    }
    hops
}

/// A path with all but its last part resolved. What cannot be resolved is left as it is, unless it has a `..` in it, which
/// may then mean anything.
pub(crate) fn standing(path: &Path) -> Option<PathBuf> {
    let resolved = match (path.parent(), path.file_name()) {
        (Some(parent), Some(name)) => canonicalize(parent).map(|parent| parent.join(name)),
        _ => canonicalize(path),
    };
    let plain = !path.components().any(|c| c == Component::ParentDir);
    resolved.ok().or_else(|| plain.then(|| path.to_owned()))
}
