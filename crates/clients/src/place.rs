//! Where files lie: directories that are elsewhere on every system, and names with a `*` in them.

use std::{
    collections::HashSet,
    ffi::{OsStr, OsString},
    path::{Path, PathBuf},
};

use serde::Deserialize;

use crate::env::{Env, System};

/// Most files that the `*` of one name stand for.
pub(crate) const MAX_MATCHES: usize = 256;

/// Which directory a file's name is relative to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Base {
    Home,
    /// Where programs of this system keep their settings: `$XDG_CONFIG_HOME` or `~/.config`, `~/Library/Application
    /// Support`, `%APPDATA%`.
    Config,
    /// `$XDG_CONFIG_HOME` or `~/.config`, on every system.
    DotConfig,
    /// `%LOCALAPPDATA%`; elsewhere as `config`.
    LocalData,
    Project,
    /// The directory of a plugin: see [`crate::plugins::Plugins`].
    Plugin,
    /// The directory of a marketplace of plugins: see [`crate::plugins::Marketplace`].
    Marketplace,
    /// The root directory, on Windows `%ProgramData%`: the administrator's files.
    System,
    /// `%ProgramW6432%`, where Windows keeps programs; elsewhere nothing.
    Programs,
}

/// A file in another place than elsewhere, on one system.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Place {
    pub base: Base,
    pub file: PathBuf,
}

/// Where something lies, on each system that has it.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Places {
    pub base: Base,
    /// Relative to the base. Its parts may be, or begin with, a `*`.
    pub file: PathBuf,
    pub macos: Option<Place>,
    pub windows: Option<Place>,
    /// The systems that have it; without a word all.
    pub systems: Option<Vec<System>>,
}

impl Places {
    /// Base and file on this system, if it has it.
    pub fn on(&self, system: System) -> Option<(Base, &Path)> {
        if self.systems.as_ref().is_some_and(|all| !all.contains(&system)) {
            return None;
        }
        let own = match system {
            System::Linux => None,
            System::Macos => self.macos.as_ref(),
            System::Windows => self.windows.as_ref(),
        };
        Some(own.map_or((self.base, self.file.as_path()), |place| (place.base, &place.file)))
    }

    /// The directory outside of projects, and the name in it, where an environment variable may name another directory,
    /// in which the file may have another name.
    pub fn home_place(&self, env: &Env<'_>, variable: Option<&str>, name: Option<&Path>) -> Option<(PathBuf, PathBuf)> {
        let moved = variable.and_then(|v| env.var(v)).filter(|v| !v.is_empty());
        let (base, file) = self.on(env.system)?;
        let base = base.dir(env)?;
        Some(match moved {
            // The client resolves a relative value against its working directory.
            Some(dir) => (env.cwd.join(dir), name.unwrap_or(file).to_owned()),
            None => (base, file.to_owned()),
        })
    }
}

impl Base {
    /// The directory, but for projects, plugins and marketplaces.
    pub fn dir(self, env: &Env<'_>) -> Option<PathBuf> {
        let home = || env.paths.home.clone();
        // XDG Base Directory Specification: what is not absolute does not count.
        let named = |name| env.var(name).map(PathBuf::from).filter(|p| p.is_absolute());
        let dot = || named("XDG_CONFIG_HOME").unwrap_or_else(|| home().join(".config"));
        match (self, env.system) {
            (Self::Project | Self::Plugin | Self::Marketplace, _) => None,
            (Self::Home, _) => Some(home()),
            (Self::DotConfig, _) | (Self::Config | Self::LocalData, System::Linux) => Some(dot()),
            (Self::Config | Self::LocalData, System::Macos) => Some(home().join("Library/Application Support")),
            (Self::Config, System::Windows) => {
                Some(named("APPDATA").unwrap_or_else(|| home().join("AppData").join("Roaming")))
            }
            (Self::LocalData, System::Windows) => {
                Some(named("LOCALAPPDATA").unwrap_or_else(|| home().join("AppData").join("Local")))
            }
            (Self::System, System::Windows) => named("ProgramData"),
            (Self::Programs, System::Windows) => named("ProgramW6432"),
            (Self::Programs, _) => None,
            (Self::System, _) => Some(PathBuf::from("/")),
        }
    }
}

/// The files that a name below a directory can be, and what its `*` stand for in each, with a slash between them. Without
/// a `*` that is one file, whether it exists or not.
pub(crate) fn expand(base: &Path, file: &Path) -> Vec<(PathBuf, Option<String>)> {
    let mut found = vec![(base.to_owned(), None)];
    let mut parts = file.iter().peekable();
    while let Some(part) = parts.next() {
        let mut behind = PathBuf::new();
        if !starred(part) {
            behind.push(part);
        }
        behind.extend(std::iter::from_fn(|| parts.next_if(|part| !starred(part))));
        if starred(part) {
            let each = |(dir, stars): (PathBuf, Option<String>)| matches(&dir, part, &behind, stars.as_deref());
            found = found.into_iter().flat_map(each).take(MAX_MATCHES).collect();
        } else {
            found.iter_mut().for_each(|(dir, _)| dir.push(&behind));
        }
    }
    found.sort();
    found
}

/// What exists below a directory at a pattern and the parts behind it.
fn matches(dir: &Path, pattern: &OsStr, behind: &Path, stars: Option<&str>) -> Vec<(PathBuf, Option<String>)> {
    let names = std::fs::read_dir(dir).into_iter().flatten().flatten().map(|entry| entry.file_name());
    let whole = |name: &OsStr| {
        let path = dir.join(name);
        // Joining nothing would make a file a directory.
        if behind.as_os_str().is_empty() { path } else { path.join(behind) }
    };
    let of = |own: String| stars.map_or_else(|| own.clone(), |stars| format!("{stars}/{own}"));
    let all = names.filter_map(|name| Some((whole(&name), Some(of(matched(pattern, &name)?)))));
    let mut there: Vec<_> = all.filter(|(path, _)| path.symlink_metadata().is_ok()).take(MAX_MATCHES).collect();
    there.sort();
    there
}

/// Whether a part of a name stands for several.
pub(crate) fn starred(part: &OsStr) -> bool {
    part.as_encoded_bytes().starts_with(b"*")
}

/// The names in a directory; `None` when they cannot be listed, or are too many to go through.
pub(crate) fn names_in(dir: &Path) -> Option<Vec<OsString>> {
    const MOST: usize = 10_000;
    let names: Vec<OsString> = std::fs::read_dir(dir).ok()?.flatten().map(|e| e.file_name()).take(MOST).collect();
    (names.len() < MOST).then_some(names)
}

/// A project, and what lies in its own directory: listed once, because most files of most clients are not there, and
/// looking for each by itself costs more than everything else.
pub(crate) struct Project {
    pub dir: PathBuf,
    names: Option<HashSet<OsString>>,
}

impl Project {
    pub fn new(dir: PathBuf) -> Self {
        // Some file systems do not tell "a" from "A".
        let names = names_in(&dir).map(|all| all.iter().map(|name| name.to_ascii_lowercase()).collect());
        Self { dir, names }
    }

    /// Whether a file of this name may be there: not, when its first part is not.
    pub fn may_hold(&self, file: &Path) -> bool {
        let (Some(names), Some(first)) = (&self.names, file.iter().next()) else { return true };
        starred(first) || names.contains(&first.to_ascii_lowercase())
    }
}

/// What the `*` at the start of a pattern stands for; all of the name when the two are the same.
pub(crate) fn matched(pattern: &OsStr, name: &OsStr) -> Option<String> {
    let (pattern, name) = (pattern.to_str()?, name.to_str()?);
    match pattern.strip_prefix('*') {
        Some(end) => name.strip_suffix(end).filter(|star| !star.is_empty()).map(str::to_owned),
        None => (pattern == name).then(|| name.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use firedoor_model::paths::Paths;

    #[test]
    fn what_a_project_may_hold() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join(".Cursor")).unwrap();
        let project = Project::new(dir.path().to_owned());
        for (file, want) in [(".cursor/mcp.json", true), (".mcp.json", false), ("*.code-workspace", true)] {
            assert_eq!(project.may_hold(Path::new(file)), want, "{file}");
        }
        assert!(Project::new(dir.path().join("none")).may_hold(Path::new("x")));
    }

    #[test]
    fn each_star_stands_for_a_part() {
        let dir = tempfile::tempdir().unwrap();
        for path in ["p/m/one/1", "p/m/two/1", "p/n/one/2", "p/m/one/1/x.json", "p/n/one/2/x.json"] {
            let path = dir.path().join(path);
            match path.extension() {
                Some(_) => std::fs::write(path, "").unwrap(),
                None => std::fs::create_dir_all(path).unwrap(),
            }
        }
        let found = |file: &str| -> Vec<String> {
            let shown = |(path, stars): (PathBuf, Option<String>)| {
                format!("{} {}", path.strip_prefix(dir.path()).unwrap().display(), stars.unwrap_or_default())
            };
            expand(dir.path(), Path::new(file)).into_iter().map(shown).collect()
        };
        assert_eq!(found("p/*/*/*/x.json"), ["p/m/one/1/x.json m/one/1", "p/n/one/2/x.json n/one/2"]);
        assert_eq!(found("p/*/one/*"), ["p/m/one/1 m/1", "p/n/one/2 n/2"]);
        assert_eq!(found("p/none/*"), [""; 0]);
        assert_eq!(found("p/none"), ["p/none "]);
    }

    #[test]
    fn every_system_has_its_own_directories() {
        let vars = [("HOME", "/h"), ("APPDATA", "/r"), ("ProgramData", "/p"), ("XDG_CONFIG_HOME", "relative")];
        let look = |name: &str| vars.iter().find(|(n, _)| *n == name).map(|(_, v)| v.into());
        for (system, base, want) in [
            (System::Linux, Base::Config, "/h/.config"),
            (System::Linux, Base::LocalData, "/h/.config"),
            (System::Linux, Base::System, "/"),
            (System::Macos, Base::Config, "/h/Library/Application Support"),
            (System::Macos, Base::DotConfig, "/h/.config"),
            (System::Macos, Base::System, "/"),
            (System::Windows, Base::Config, "/r"),
            (System::Windows, Base::LocalData, "/h/AppData/Local"),
            (System::Windows, Base::DotConfig, "/h/.config"),
            (System::Windows, Base::System, "/p"),
        ] {
            let env = Env::new(Paths::from_env(look).unwrap(), "/", look).with_system(system);
            assert_eq!(base.dir(&env), Some(PathBuf::from(want)), "{system:?} {base:?}");
        }
    }
}
