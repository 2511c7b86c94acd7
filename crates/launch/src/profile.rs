//! Sandbox profiles: what a known server needs beyond the base set.

mod built_in;
mod endpoints;
mod load;
mod parse;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use firedoor_model::{limits::Limits, network::HostGrant};
use serde::Deserialize;

pub(crate) use endpoints::Endpoints;
pub(crate) use load::Found;
pub use load::{Problem, Profiles};
#[cfg(test)]
#[cfg(unix)]
pub(crate) use parse::parse;

/// What paths in a server's arguments are granted for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub enum ArgumentAccess {
    /// To read.
    #[serde(rename = "ro")]
    Read,
    /// To read and to write.
    #[serde(rename = "rw")]
    Write,
}

/// How a server is launched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// An npm package, through npx.
    Npx,
    /// A PyPI package, through uvx.
    Uvx,
    /// A script of node's.
    Node,
    /// A script, module or project of Python's.
    Python,
    /// A script of deno's.
    Deno,
    /// A script of bun's.
    Bun,
    /// A container, through docker or podman.
    Docker,
    /// A WebAssembly module.
    Wasm,
    /// Any other program.
    Native,
}

/// Which servers a profile is for. Names are compared whole; PyPI names in their normal form (PEP 503).
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Match {
    /// Packages started through npx or npm exec.
    pub npm: Vec<String>,
    /// Packages started through uvx or uv tool run.
    pub pypi: Vec<String>,
    /// File names of executables.
    pub executable: Vec<String>,
    /// All servers that are launched so. What this profile says holds beneath the one that is for the server by name.
    pub kind: Vec<Kind>,
}

/// What one kind of server may have. Paths are absolute or begin with `~/`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    /// The file's name without `.toml`.
    #[serde(skip)]
    pub name: String,
    /// For people.
    pub description: String,
    /// For which servers.
    #[serde(rename = "match")]
    pub matches: Match,
    /// The name of the profile that this one adds to. All of that profile holds but its description and its match.
    #[serde(default)]
    pub extends: Option<String>,
    /// Paths to read.
    #[serde(default)]
    pub read: Vec<String>,
    /// Paths to write.
    #[serde(default)]
    pub write: Vec<String>,
    /// Directories to list.
    #[serde(default)]
    pub list: Vec<String>,
    /// Paths of the user's home that appear in the private home: to write, or to read when they stand in `read` too.
    #[serde(default)]
    pub state: Vec<String>,
    /// Whether paths in the arguments are granted.
    #[serde(default)]
    pub args: Option<ArgumentAccess>,
    /// Arguments that the server gets besides its own, unless it has them already.
    #[serde(default)]
    pub arguments: Vec<String>,
    /// Variables that stay although they look like credentials.
    #[serde(default)]
    pub env: Vec<String>,
    /// Variables that are set unless the server gets them anyway. A value that begins with `~/` is a path of the private
    /// home.
    #[serde(default)]
    pub variables: BTreeMap<String, String>,
    /// Variables that name a file of the user's, which is granted to write.
    #[serde(default)]
    pub path_variables: Vec<String>,
    /// Files of the private home that are written at each start: their place in it, and what is in them.
    #[serde(default)]
    pub files: BTreeMap<String, String>,
    /// Files of the private home that are copied once from what the server kept beside its own code: their place in it, and which files
    /// of its npm package they may be.
    #[serde(default)]
    pub carried: BTreeMap<String, Vec<String>>,
    /// Hosts to connect to: `api.example.com:443`, `*.example.com`, `127.0.0.1:5432`, or `*` for all public ones.
    #[serde(default)]
    pub hosts: Vec<HostGrant>,
    /// Hosts that the entry itself names.
    #[serde(default)]
    pub endpoints: Endpoints,
    /// Hosts that nobody is asked about: refused unless somebody granted them. For what a server can do without, such as
    /// telemetry.
    #[serde(default)]
    pub refuse: Vec<HostGrant>,
    /// Unix sockets to connect to.
    #[serde(default)]
    pub unix: Vec<String>,
    /// Whether the server may listen, on the loopback interface.
    #[serde(default)]
    pub listen: bool,
    /// What the server may use up; what is left out is as in `base.toml`.
    #[serde(default)]
    pub limits: Limits,
}

impl Profile {
    /// This profile, and what `beneath` says besides: lists are joined, single values and variables are this one's where
    /// both have them. Name, description and match are this one's.
    pub(crate) fn over(mut self, beneath: &Self) -> Self {
        let lists = |own: &mut Vec<String>, more: &[String]| {
            let new: Vec<String> = more.iter().filter(|m| !own.contains(m)).cloned().collect();
            own.extend(new);
        };
        lists(&mut self.read, &beneath.read);
        lists(&mut self.write, &beneath.write);
        lists(&mut self.list, &beneath.list);
        lists(&mut self.state, &beneath.state);
        lists(&mut self.env, &beneath.env);
        lists(&mut self.arguments, &beneath.arguments);
        lists(&mut self.path_variables, &beneath.path_variables);
        lists(&mut self.unix, &beneath.unix);
        let hosts = |own: &mut Vec<HostGrant>, more: &[HostGrant]| {
            let new: Vec<HostGrant> = more.iter().filter(|m| !own.contains(m)).cloned().collect();
            own.extend(new);
        };
        hosts(&mut self.hosts, &beneath.hosts);
        hosts(&mut self.refuse, &beneath.refuse);
        for (name, value) in &beneath.variables {
            self.variables.entry(name.clone()).or_insert_with(|| value.clone());
        }
        for (name, text) in &beneath.files {
            self.files.entry(name.clone()).or_insert_with(|| text.clone());
        }
        for (name, from) in &beneath.carried {
            self.carried.entry(name.clone()).or_insert_with(|| from.clone());
        }
        self.endpoints = self.endpoints.over(&beneath.endpoints);
        self.args = self.args.or(beneath.args);
        self.listen |= beneath.listen;
        self.limits = self.limits.over(beneath.limits);
        self
    }
}

/// What is known about a server when its profile is looked up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject<'a> {
    /// An npm package's name.
    Npm(&'a str),
    /// A PyPI package's name.
    Pypi(&'a str),
    /// An executable's file name.
    Executable(&'a str),
}

impl Subject<'_> {
    /// The list of [`Match`] that names of this kind stand in.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Self::Npm(_) => "npm",
            Self::Pypi(_) => "pypi",
            Self::Executable(_) => "executable",
        }
    }

    pub(crate) fn name(&self) -> &str {
        match self {
            Self::Npm(n) | Self::Pypi(n) | Self::Executable(n) => n,
        }
    }
}

impl Match {
    fn fits(&self, subject: Subject<'_>) -> bool {
        match subject {
            Subject::Npm(name) => self.npm.iter().any(|n| n == name),
            Subject::Pypi(name) => self.pypi.iter().any(|n| normal(n) == normal(name)),
            Subject::Executable(name) => self.executable.iter().any(|n| n == name),
        }
    }
}

/// PyPI's normal form of a name (PEP 503): lower case, runs of `-`, `_` and `.` as one `-`.
pub(crate) fn normal(name: &str) -> String {
    let mut out = String::with_capacity(name.len());
    for c in name.chars() {
        let c = if matches!(c, '-' | '_' | '.') { '-' } else { c.to_ascii_lowercase() };
        if c != '-' || !out.ends_with('-') {
            out.push(c);
        }
    }
    out
}
