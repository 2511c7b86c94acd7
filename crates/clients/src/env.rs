//! Where to look: the caller's directories and variables.

use std::{
    ffi::OsString,
    fmt,
    path::{Path, PathBuf},
};

use firedoor_model::paths::Paths;

type Lookup<'a> = Box<dyn Fn(&str) -> Option<OsString> + Send + Sync + 'a>;

/// The surroundings of one call. Nothing is read from this process's own environment.
pub struct Env<'a> {
    /// The user's directories.
    pub paths: Paths,
    /// Working directory: it and the directories above it are looked at as projects.
    pub cwd: PathBuf,
    /// Further project directories.
    pub projects: Vec<PathBuf>,
    /// The shim in use, if known: an entry that starts another one is shown as misrouted.
    pub shim: Option<PathBuf>,
    lookup: Lookup<'a>,
}

impl<'a> Env<'a> {
    /// An environment that looks variables up through `lookup`.
    pub fn new(
        paths: Paths,
        cwd: impl Into<PathBuf>,
        lookup: impl Fn(&str) -> Option<OsString> + Send + Sync + 'a,
    ) -> Self {
        Self { paths, cwd: cwd.into(), projects: Vec::new(), shim: None, lookup: Box::new(lookup) }
    }

    /// Adds project directories given by the user.
    #[must_use]
    pub fn with_projects(mut self, projects: impl IntoIterator<Item = PathBuf>) -> Self {
        self.projects.extend(projects);
        self
    }

    /// Names the shim in use.
    #[must_use]
    pub fn with_shim(mut self, shim: &Path) -> Self {
        self.shim = Some(shim.to_owned());
        self
    }

    pub(crate) fn var(&self, name: &str) -> Option<OsString> {
        (self.lookup)(name)
    }

    /// Where backups and the journal lie.
    pub(crate) fn backups(&self) -> PathBuf {
        self.paths.state.join("backups")
    }
}

impl fmt::Debug for Env<'_> {
    /// Without the variables: they hold secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Env")
            .field("paths", &self.paths)
            .field("cwd", &self.cwd)
            .field("projects", &self.projects)
            .field("shim", &self.shim)
            .finish_non_exhaustive()
    }
}
