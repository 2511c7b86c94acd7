//! The catalog: which clients there are, where their files lie and what stands in them. Data, embedded from
//! `profiles/clients/`.

use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::env::Env;

const CLIENTS: [&str; 2] =
    [include_str!("../../../profiles/clients/claude-code.toml"), include_str!("../../../profiles/clients/cursor.toml")];
const WRAPPERS: &str = include_str!("../../../profiles/clients/wrappers.toml");

/// The clients that Firedoor knows.
#[derive(Clone, Debug)]
pub struct Clients {
    pub(crate) clients: Vec<Client>,
    pub(crate) wrappers: Wrappers,
}

/// One client.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Client {
    pub id: String,
    pub name: String,
    pub interpolation: Interpolation,
    #[serde(rename = "location")]
    pub locations: Vec<Location>,
}

/// One place in one kind of file where servers stand.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Location {
    pub scope: ScopeKind,
    pub base: Base,
    /// Environment variable that names another directory than the home.
    pub variable: Option<String>,
    pub file: PathBuf,
    pub syntax: Syntax,
    /// Keys from the root to the map of servers; `*` matches every key and names the project.
    pub servers: Vec<String>,
    pub max_bytes: u64,
    /// What the client appends to the file's name for its own lock directory.
    pub lock_suffix: Option<String>,
}

/// The three kinds of scope, widest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ScopeKind {
    User,
    Local,
    Project,
}

/// Which directory a file's name is relative to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Base {
    Home,
    Project,
}

/// What the client's parser takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Syntax {
    /// RFC 8259. A comment or a trailing comma is an error to the client.
    Json,
    /// JSON with comments and trailing commas.
    Jsonc,
}

/// How the client fills in variables.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Interpolation {
    /// `${VAR}`, `${VAR:-default}`.
    ShellDefault,
    /// `${env:VAR}`, `${userHome}`, `${workspaceFolder}` and relatives.
    Editor,
}

/// Other tools that put themselves in front of a server.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Wrappers {
    programs: Vec<String>,
    runners: Vec<String>,
}

/// The embedded catalog cannot be read: a defect of this build.
#[derive(Debug, thiserror::Error)]
#[error("the client catalog of this build is damaged, install Firedoor again: {0}")]
pub struct CatalogError(#[from] toml::de::Error);

impl Clients {
    /// Reads the embedded catalog.
    pub fn load() -> Result<Self, CatalogError> {
        let clients = CLIENTS.iter().map(|text| toml::from_str(text)).collect::<Result<_, _>>()?;
        Ok(Self { clients, wrappers: toml::from_str(WRAPPERS)? })
    }

    /// Id and name of every client in the catalog.
    pub fn known(&self) -> impl Iterator<Item = (&str, &str)> {
        self.clients.iter().map(|c| (c.id.as_str(), c.name.as_str()))
    }

    pub(crate) fn client(&self, id: &str) -> Option<&Client> {
        self.clients.iter().find(|c| c.id == id)
    }
}

impl Location {
    /// The file of a location that lies in the home (or where its variable points).
    pub fn home_file(&self, env: &Env<'_>) -> PathBuf {
        let moved = self.variable.as_deref().and_then(|v| env.var(v)).filter(|v| !v.is_empty());
        match moved {
            // The client resolves a relative value against its working directory.
            Some(dir) => env.cwd.join(dir).join(&self.file),
            None => env.paths.home.join(&self.file),
        }
    }

    /// The file of a project location in one project.
    pub fn project_file(&self, project: &Path) -> PathBuf {
        project.join(&self.file)
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

    #[test]
    fn the_embedded_catalog_reads() {
        let clients = Clients::load().unwrap();
        let ids: Vec<&str> = clients.known().map(|(id, _)| id).collect();
        assert_eq!(ids, ["claude-code", "cursor"]);
        for client in &clients.clients {
            for location in &client.locations {
                assert!(location.file.is_relative(), "{}", client.id);
                assert!(location.max_bytes <= crate::source::MAX_BYTES, "{}", client.id);
                assert_eq!(location.scope == ScopeKind::Project, location.base == Base::Project);
            }
        }
    }

    #[test]
    fn other_wrappers() {
        let wrappers = Clients::load().unwrap().wrappers;
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
