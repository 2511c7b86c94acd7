//! The catalog: which clients there are, where their files lie and what stands in them. Data, embedded from
//! `profiles/clients/`.

use std::{
    ffi::OsStr,
    path::{Path, PathBuf},
    sync::OnceLock,
};

use firedoor_model::EntryId;
use serde::{Deserialize, Serialize, de::DeserializeOwned};

use crate::{
    env::Env,
    findings::Packages,
    form::Form,
    place::{Base, Places, Project, expand, matched},
    plugins::{PluginRules, Plugins},
    source::Source,
};

/// File name and text of every client, listed by the build script.
const CLIENTS: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/clients.rs"));
const WRAPPERS: &str = include_str!("../../../profiles/wrappers.toml");
const PACKAGES: &str = include_str!("../../../profiles/packages.toml");

/// The clients that Firedoor knows.
#[derive(Clone, Debug)]
pub struct Clients {
    pub(crate) clients: Vec<Client>,
    pub(crate) wrappers: Wrappers,
    pub(crate) packages: Packages,
}

/// One client.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Client {
    pub id: String,
    pub name: String,
    pub confidence: Confidence,
    #[serde(default)]
    pub interpolation: Interpolation,
    #[serde(default)]
    pub directory: Directory,
    /// The inherited variables that it passes on, if those are a selection.
    passes: Option<Vec<String>>,
    /// The same on Windows, where names have no case.
    passes_on_windows: Option<Vec<String>>,
    #[serde(default, rename = "location")]
    pub locations: Vec<Location>,
    /// Where its plugins lie; what they hold are locations with the base `plugin`.
    #[serde(default)]
    pub plugins: Vec<Plugins>,
    #[serde(default)]
    pub in_plugins: PluginRules,
    #[serde(default)]
    pub unsupported: Vec<Unsupported>,
}

/// Where the facts about a client, or about one place of its files, come from; the surest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Confidence {
    /// The client was run.
    Ran,
    /// Its own source was read.
    Source,
    /// Its documentation was read.
    Docs,
    /// Other tools that edit its files were read.
    ThirdParty,
    /// From memory: nothing was looked up.
    Recalled,
    /// Concluded from its relatives.
    Guess,
}

/// A place where servers may stand that is shown and never touched, nor read but for one word.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Unsupported {
    pub scope: String,
    /// A file or a directory.
    #[serde(flatten)]
    pub places: Places,
    /// Why it is left alone: half a sentence.
    pub reason: String,
    /// What the user can do instead: a sentence.
    pub step: String,
    /// A word that stands in the file; without it there is nothing to show.
    pub mentions: Option<String>,
    /// See [`Location::confidence`].
    pub confidence: Option<Confidence>,
}

/// One place in one kind of file where servers stand.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Location {
    /// First part of the scope of its entries. Behind a colon follows what tells several of a kind apart: the project,
    /// or what a `*` stands for.
    pub scope: String,
    #[serde(flatten)]
    pub places: Places,
    /// Environment variable that names another directory than the base.
    pub variable: Option<String>,
    /// The file's name in that directory, where it is another one than in the base.
    pub variable_file: Option<PathBuf>,
    pub syntax: Syntax,
    /// Keys from the root to the map of servers; `*` matches every key and names the project. In a list a key is what stands
    /// at `name` of an element; in the file of a marketplace `*` is the plugin.
    pub servers: Vec<String>,
    /// How an entry is written.
    #[serde(default)]
    pub form: Form,
    #[serde(default = "max_bytes")]
    pub max_bytes: u64,
    /// What the client appends to the file's name for its own lock directory.
    pub lock_suffix: Option<String>,
    /// The file is another program's: without servers of this client in it, it is not shown here.
    #[serde(default)]
    pub shared: bool,
    /// Where this place is from, if that is not what is said of the client.
    pub confidence: Option<Confidence>,
}

/// Larger than any file that holds little but servers.
fn max_bytes() -> u64 {
    4 * 1024 * 1024
}

/// Where a client starts its servers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Directory {
    /// In the project, or where the client itself was started.
    #[default]
    Session,
    /// Wherever the client happens to be: a relative name means nothing.
    Undefined,
}

/// What the client's parser takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Syntax {
    /// RFC 8259. A comment or a trailing comma is an error to the client.
    Json,
    /// JSON with comments. A trailing comma or a byte order mark is an error to the client.
    JsonComments,
    /// JSON with comments and trailing commas.
    Jsonc,
    /// What <https://spec.json5.org> describes.
    Json5,
    /// YAML 1.2, one document.
    Yaml,
    /// TOML 1.1, which Codex 0.169.0 reads; a key or table that stands twice is an error.
    Toml,
}

/// How the client fills in variables.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Interpolation {
    /// It is not known, or more than can be done here: what has a `$` in it is not filled in, and not verified.
    #[default]
    Unknown,
    /// Every character stands for itself.
    None,
    /// `${VAR}`, `${VAR:-default}`.
    ShellDefault,
    /// As before, and `$VAR`.
    Shell,
    /// As before, and in `env` a bare `VAR` that is set.
    ShellNames,
    /// `${env:VAR}`, `${userHome}`, `${workspaceFolder}` and relatives.
    Editor,
    /// `{env:VAR}`, `{file:PATH}`.
    Tags,
}

/// Other tools that put themselves in front of a server.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Wrappers {
    programs: Vec<String>,
    runners: Vec<String>,
}

/// The embedded catalog cannot be read: a defect of this build.
#[derive(Clone, Debug, thiserror::Error)]
#[error("the client catalog of this build is damaged at {file:?}, install Firedoor again: {source}")]
pub struct CatalogError {
    file: &'static str,
    source: toml::de::Error,
}

fn parse<T: DeserializeOwned>(file: &'static str, text: &str) -> Result<T, CatalogError> {
    toml::from_str(text).map_err(|source| CatalogError { file, source })
}

impl Client {
    /// Whether a server gets an inherited variable of this name.
    pub fn passes_on(&self, name: &OsStr) -> bool {
        let passes = if cfg!(windows) { &self.passes_on_windows } else { &self.passes };
        passes.as_ref().is_none_or(|passes| passes.iter().any(|own| same_variable(name, own)))
    }
}

/// Whether two names are those of one variable.
pub(crate) fn same_variable(name: &OsStr, other: &str) -> bool {
    if cfg!(windows) { name.eq_ignore_ascii_case(other) } else { name == other }
}

impl Clients {
    /// The embedded catalog. It is read once in a process: the engine wants it at every start of a server.
    pub fn load() -> Result<&'static Self, CatalogError> {
        static CATALOG: OnceLock<Result<Clients, CatalogError>> = OnceLock::new();
        CATALOG.get_or_init(Self::read).as_ref().map_err(Clone::clone)
    }

    fn read() -> Result<Self, CatalogError> {
        let clients = CLIENTS.iter().map(|(file, text)| parse(file, text)).collect::<Result<_, _>>()?;
        Ok(Self { clients, wrappers: parse("wrappers", WRAPPERS)?, packages: parse("packages", PACKAGES)? })
    }

    /// Id and name of every client in the catalog.
    pub fn known(&self) -> impl Iterator<Item = (&str, &str)> {
        self.clients.iter().map(|c| (c.id.as_str(), c.name.as_str()))
    }

    /// How the client of an entry fills in variables.
    pub(crate) fn interpolation(&self, id: &EntryId) -> Interpolation {
        self.client(id.client()).map_or(Interpolation::None, |client| client.interpolation)
    }

    pub(crate) fn client(&self, id: &str) -> Option<&Client> {
        self.clients.iter().find(|c| c.id == id)
    }
}

impl Unsupported {
    /// The directory outside of projects where it lies, and its name there; none for the administrator's.
    pub fn home_place(&self, env: &Env<'_>) -> Option<(PathBuf, PathBuf)> {
        let (base, file) = self.places.on(env.system)?;
        let dir = base.dir(env).filter(|_| !matches!(base, Base::System | Base::Programs))?;
        Some((dir, file.to_owned()))
    }

    /// What exists of it outside of projects, or in one.
    pub fn found(&self, env: &Env<'_>, project: Option<&Project>) -> Vec<PathBuf> {
        let Some((base, file)) = self.places.on(env.system) else { return Vec::new() };
        let dir = match project {
            None => base.dir(env),
            Some(project) => (base == Base::Project && project.may_hold(file)).then(|| project.dir.clone()),
        };
        let all = dir.map(|dir| expand(&dir, file)).unwrap_or_default();
        let there = all.into_iter().map(|(path, _)| path).filter(|path| path.symlink_metadata().is_ok());
        there.filter(|path| self.mentions.as_ref().is_none_or(|word| holds(path, word))).collect()
    }
}

/// Whether a file has a word in it. One that cannot be read has not.
fn holds(path: &Path, word: &str) -> bool {
    const MOST: u64 = 1024 * 1024;
    Source::read(path, MOST).is_ok_and(|file| file.is_some_and(|f| String::from_utf8_lossy(&f.bytes).contains(word)))
}

impl Location {
    /// The files that this location can be outside of projects, and what its `*` stands for in each. Without a `*`
    /// that is one file, whether it exists or not.
    pub fn home_files(&self, env: &Env<'_>) -> Vec<(PathBuf, Option<String>)> {
        self.home_place(env).map(|(dir, file)| expand(&dir, &file)).unwrap_or_default()
    }

    /// The directory outside of projects where the files lie, and their name there.
    pub fn home_place(&self, env: &Env<'_>) -> Option<(PathBuf, PathBuf)> {
        self.places.home_place(env, self.variable.as_deref(), self.variable_file.as_deref())
    }

    /// The files of a project location in one project, and the path that names their scope: the project's, or with a
    /// `*` the file's.
    pub fn project_files(&self, env: &Env<'_>, project: &Project) -> Vec<(PathBuf, PathBuf)> {
        let Some((Base::Project, file)) = self.places.on(env.system) else { return Vec::new() };
        if !project.may_hold(file) {
            return Vec::new();
        }
        expand(&project.dir, file)
            .into_iter()
            .map(|(file, star)| (file.clone(), if star.is_some() { file } else { project.dir.clone() }))
            .collect()
    }

    /// The directory that its files' names are relative to.
    pub fn base(&self, env: &Env<'_>) -> Option<Base> {
        self.places.on(env.system).map(|(base, _)| base)
    }

    /// Whether its files lie in plugins, or in marketplaces of them.
    pub fn in_plugins(&self, env: &Env<'_>) -> bool {
        matches!(self.base(env), Some(Base::Plugin | Base::Marketplace))
    }

    /// Whether a file of this name can be of this location, outside of projects.
    pub fn may_be(&self, env: &Env<'_>, name: &OsStr) -> bool {
        let of = |file: &Path| file.file_name().is_some_and(|own| matched(own, name).is_some());
        let Some((base, file)) = self.places.on(env.system) else { return false };
        base != Base::Project && of(file) || self.variable_file.as_deref().is_some_and(of)
    }
}

impl Wrappers {
    /// The tool that already stands in front of this command, if it is a known one.
    pub fn wraps(&self, command: &str, args: &[String]) -> Option<String> {
        let program = stem(command);
        if self.programs.contains(&program) {
            return Some(program);
        }
        if !self.runners.contains(&program) {
            return None;
        }
        let package = args.iter().find(|a| !a.starts_with('-'))?;
        // "@scope/name@1.2" and "name==1.2" name the package "name".
        let name = package.rsplit('/').next().unwrap_or(package);
        let name = name.split(['@', '=']).next().unwrap_or(name).to_owned();
        self.programs.contains(&name).then_some(name)
    }
}

/// A program's file name without directory and `.exe`, whichever separator is used.
pub(crate) fn stem(command: &str) -> String {
    let name = command.rsplit(['/', '\\']).next().unwrap_or(command).to_ascii_lowercase();
    name.strip_suffix(".exe").map(str::to_owned).unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::env::System;

    #[test]
    fn the_embedded_catalog_reads() {
        let clients = Clients::load().unwrap();
        let mut files = std::collections::HashMap::new();
        for ((file, _), client) in CLIENTS.iter().zip(&clients.clients) {
            assert_eq!(*file, client.id);
            assert!(client.locations.len() + client.unsupported.len() > 0, "{file}");
            for place in &client.unsupported {
                assert!(
                    place.places.file.is_relative() && place.step.ends_with('.') && !place.reason.ends_with('.'),
                    "{file}"
                );
            }
            for location in &client.locations {
                for system in [System::Linux, System::Macos, System::Windows] {
                    let Some((base, file)) = location.places.on(system) else { continue };
                    assert!(file.is_relative(), "{}", client.id);
                    // What is written to a file is remembered for one client, to find it where a variable was.
                    let owner = files.insert((system, base, file), &client.id);
                    let one = matches!(base, Base::Plugin | Base::Marketplace)
                        || owner.is_none_or(|owner| *owner == client.id);
                    assert!(one || location.variable.is_none(), "{file:?}");
                    // The administrator's files are not edited.
                    assert_ne!(base, Base::System, "{}", client.id);
                }
                let json = !matches!(location.syntax, Syntax::Toml | Syntax::Yaml);
                assert!(json || !location.form.bare && !location.form.parts, "{}", client.id);
                assert!(location.max_bytes <= crate::source::MAX_BYTES, "{}", client.id);
                // A scope is a word, and one file has each only once: entries are told apart by it.
                assert!(location.scope.bytes().all(|b| b.is_ascii_lowercase() || b == b'-'), "{}", location.scope);
                let same = |l: &&Location| l.scope == location.scope;
                assert_eq!(client.locations.iter().filter(same).count(), 1, "{} {}", client.id, location.scope);
            }
        }
    }

    #[test]
    fn other_wrappers() {
        let wrappers = &Clients::load().unwrap().wrappers;
        for (command, args, want) in [
            ("/usr/local/bin/mcp-guardian", &["--", "npx"][..], Some("mcp-guardian")),
            ("uvx", &["mcp-scan@latest", "proxy"], Some("mcp-scan")),
            ("npx", &["-y", "@x/mcp-defender@1"], Some("mcp-defender")),
            ("npx", &["-y", "srv", "nono"], None),
            ("node", &["mcp-scan"], None),
        ] {
            let args: Vec<String> = args.iter().map(|s| (*s).to_owned()).collect();
            assert_eq!(wrappers.wraps(command, &args).as_deref(), want, "{command} {args:?}");
        }
    }
}
