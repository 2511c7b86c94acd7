//! Where Firedoor keeps its things, from the environment of the process that asks.

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
};

/// Every directory Firedoor uses. Built once at a program's start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Paths {
    /// The user's home.
    pub home: PathBuf,
    /// `$XDG_CONFIG_HOME/firedoor`: settings and the user's own profiles.
    pub config: PathBuf,
    /// `$XDG_STATE_HOME/firedoor`: database, backups of client configurations, journal.
    pub state: PathBuf,
    /// `$XDG_DATA_HOME/firedoor`: private homes and caches of servers.
    pub data: PathBuf,
    /// `$XDG_RUNTIME_DIR/firedoor`: the engine's socket and lock. Mode 0700.
    pub runtime: PathBuf,
}

/// `HOME` is missing or not absolute.
#[derive(Debug, thiserror::Error)]
#[error("HOME is not set to an absolute path: set it to your home directory and try again")]
pub struct NoHome;

impl Paths {
    /// Reads `HOME` and the XDG variables through `var`. As the XDG Base Directory Specification (0.8) asks, a variable
    /// that is not an absolute path is ignored. Without `XDG_RUNTIME_DIR` the runtime directory lies in the state
    /// directory, which only the user can write.
    pub fn from_env(var: impl Fn(&str) -> Option<OsString>) -> Result<Self, NoHome> {
        let absolute = |name: &str| var(name).map(PathBuf::from).filter(|p| p.is_absolute());
        let home = absolute("HOME").ok_or(NoHome)?;
        let xdg = |name: &str, default: &str| absolute(name).unwrap_or_else(|| home.join(default)).join("firedoor");
        let state = xdg("XDG_STATE_HOME", ".local/state");
        Ok(Self {
            config: xdg("XDG_CONFIG_HOME", ".config"),
            data: xdg("XDG_DATA_HOME", ".local/share"),
            runtime: absolute("XDG_RUNTIME_DIR").map_or_else(|| state.join("run"), |p| p.join("firedoor")),
            state,
            home,
        })
    }

    /// The engine's socket.
    pub fn socket(&self) -> PathBuf {
        self.runtime.join("engine.sock")
    }

    /// Locked while an engine starts or runs.
    pub fn lock(&self) -> PathBuf {
        self.runtime.join("engine.lock")
    }

    /// Exists while the user has switched Firedoor off.
    pub fn off(&self) -> PathBuf {
        self.runtime.join("off")
    }

    /// The database.
    pub fn database(&self) -> PathBuf {
        self.state.join("firedoor.db")
    }

    /// Where secrets are kept in a file, if the user wants that.
    pub fn secrets(&self) -> PathBuf {
        self.state.join("secrets")
    }

    /// Says that they are, and what opens the file: [`crate::keychain::KeptInFile`].
    pub fn kept_in_file(&self) -> PathBuf {
        self.secrets().join("kept.json")
    }

    /// Directories that no sandboxed server may ever be granted.
    pub fn own(&self) -> [&Path; 4] {
        [&self.config, &self.state, &self.data, &self.runtime]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(vars: &[(&str, &str)]) -> Result<Paths, NoHome> {
        Paths::from_env(|name| vars.iter().find(|(n, _)| *n == name).map(|(_, v)| v.into()))
    }

    #[test]
    fn xdg_variables_count_when_absolute() {
        let p =
            paths(&[("HOME", "/h"), ("XDG_STATE_HOME", "rel"), ("XDG_CONFIG_HOME", "/c"), ("XDG_RUNTIME_DIR", "/r")])
                .unwrap();
        assert_eq!(p.state, Path::new("/h/.local/state/firedoor"));
        assert_eq!(p.config, Path::new("/c/firedoor"));
        assert_eq!(p.socket(), Path::new("/r/firedoor/engine.sock"));
    }

    #[test]
    fn no_runtime_directory_falls_back_to_state() {
        let p = paths(&[("HOME", "/h")]).unwrap();
        assert_eq!(p.runtime, Path::new("/h/.local/state/firedoor/run"));
        assert!(paths(&[]).is_err());
        assert!(paths(&[("HOME", "x")]).is_err());
    }
}
