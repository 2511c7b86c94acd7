//! Where to look: the caller's directories and variables.

use std::{
    ffi::OsString,
    fmt,
    path::{Path, PathBuf},
    sync::{Arc, OnceLock},
};

use firedoor_model::{Keychain, KeychainError, paths::Paths};
use serde::Deserialize;

use crate::seal::SealKey;

/// A kind of operating system, each with its own places for files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum System {
    /// Linux, and what resembles it.
    Linux,
    /// macOS.
    Macos,
    /// Windows.
    Windows,
}

impl System {
    /// The one that this program was built for.
    const THIS: Self = match () {
        () if cfg!(target_os = "macos") => Self::Macos,
        () if cfg!(target_os = "windows") => Self::Windows,
        () => Self::Linux,
    };
}

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
    /// Whose places files are looked for in.
    pub(crate) system: System,
    lookup: Lookup<'a>,
    keychain: Option<Arc<dyn Keychain>>,
    /// Its key for backups, or why it cannot be used; found out once.
    usable: OnceLock<Result<SealKey, String>>,
}

impl<'a> Env<'a> {
    /// An environment that looks variables up through `lookup`.
    pub fn new(
        paths: Paths,
        cwd: impl Into<PathBuf>,
        lookup: impl Fn(&str) -> Option<OsString> + Send + Sync + 'a,
    ) -> Self {
        Self {
            paths,
            cwd: cwd.into(),
            projects: Vec::new(),
            shim: None,
            system: System::THIS,
            lookup: Box::new(lookup),
            keychain: None,
            usable: OnceLock::new(),
        }
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

    /// Looks in the places of another system.
    #[must_use]
    pub fn with_system(mut self, system: System) -> Self {
        self.system = system;
        self
    }

    /// Gives a keychain for the secrets of entries. Without one they stay where they are.
    #[must_use]
    pub fn with_keychain(mut self, keychain: Arc<dyn Keychain>) -> Self {
        self.keychain = Some(keychain);
        self
    }

    /// The keychain to read from.
    pub(crate) fn keychain(&self) -> Result<&dyn Keychain, KeychainError> {
        let none = || KeychainError::Absent { why: "this program was given none".into() };
        self.keychain.as_deref().ok_or_else(none)
    }

    /// The keychain to write to and its key for backups, or why it cannot be used.
    pub(crate) fn vault(&self) -> Result<(&dyn Keychain, &SealKey), String> {
        let keychain = self.keychain().map_err(|e| e.to_string())?;
        let usable = self.usable.get_or_init(|| SealKey::known_or_new(keychain).map_err(|e| e.to_string()));
        usable.as_ref().map(|key| (keychain, key)).map_err(Clone::clone)
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
