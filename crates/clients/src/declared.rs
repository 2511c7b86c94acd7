//! The environment variables that an entry declares itself.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};

use firedoor_model::EntryId;

use crate::{
    catalog::Clients,
    discover::{ConfigFile, Located},
    document::{Shape, Stdio},
    env::Env,
    interpolate::Variables,
    plugins::Plugin,
    scan::located,
    source::{Source, read_regular, resolve, text_of},
};

/// Largest `envFile` that is read.
const MAX_ENV_FILE: u64 = 1024 * 1024;

/// Where an entry reaches its server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    /// The address.
    pub url: String,
    /// The entry says itself who the user is (`Authorization`).
    pub authorized: bool,
}

/// One entry as it stands in its file now.
pub(crate) struct Found {
    pub file: ConfigFile,
    /// The project it belongs to, if it belongs to one.
    pub project: Option<String>,
    /// Its file belongs to the project, so that whoever wrote that, for instance a repository's author, wrote the entry.
    pub brought: bool,
    /// The plugin that it belongs to.
    pub plugin: Option<Plugin>,
    pub stdio: Stdio,
    /// The address, when it starts the shim for a server that is reached over HTTP.
    pub url: Option<String>,
}

impl Clients {
    /// Names of the variables that the entry declares now: the keys of its `env`, those it names to be passed on, and
    /// those in its `envFile` if that can be read. `None` when there is no such entry, or it starts no program.
    pub fn declared_env(&self, env: &Env<'_>, id: &EntryId) -> Option<BTreeSet<String>> {
        let found = self.find(env, id)?;
        let mut names: BTreeSet<String> = found.stdio.env.iter().map(|(name, _)| name.clone()).collect();
        names.extend(found.stdio.env_passed.iter().cloned());
        let set = env_file(self, env, &found).unwrap_or_default();
        names.extend(set.into_iter().map(|(name, _)| name));
        Some(names)
    }

    /// Those of `names` that the entry may set itself: in its `env`, or in its `envFile`, where one that cannot be read may
    /// set all. What it names to be passed on is its client's.
    pub fn set_by_entry<'n>(&self, env: &Env<'_>, id: &EntryId, names: &[&'n str]) -> Vec<&'n str> {
        let Some(found) = self.find(env, id) else { return Vec::new() };
        let file = env_file(self, env, &found);
        let unread = found.stdio.env_file.is_some() && file.is_none();
        let own = found.stdio.env.iter().map(|(name, _)| name.as_str());
        let own: BTreeSet<&str> = own.chain(file.iter().flatten().map(|(name, _)| name.as_str())).collect();
        names.iter().copied().filter(|name| unread || own.contains(name)).collect()
    }

    /// The address of an entry that reaches a server over HTTP, protected or not.
    pub fn address(&self, env: &Env<'_>, id: &EntryId) -> Option<Address> {
        self.first(env, id, |_, located| match located.server.shape {
            Shape::Remote(remote) => {
                Some(Address { authorized: remote.has_header("authorization"), url: remote.url?.value })
            }
            Shape::Stdio(_) | Shape::Odd(_) => None,
        })
    }

    /// The entry with this id, read from its file.
    pub(crate) fn find(&self, env: &Env<'_>, id: &EntryId) -> Option<Found> {
        self.first(env, id, |file, Located { server, plugin, .. }| {
            let (stdio, url) = match server.shape {
                Shape::Stdio(stdio) => (*stdio, None),
                Shape::Remote(remote) => (remote.parts.ok()?.behind?.start, Some(remote.url?.value)),
                Shape::Odd(_) => return None,
            };
            let brought = server.project.is_none() && file.project.is_some();
            let project = server.project.or_else(|| file.project.clone());
            Some(Found { file, project, brought, plugin, stdio, url })
        })
    }

    /// What the first file with an entry of this id gives.
    pub(crate) fn first<T>(
        &self,
        env: &Env<'_>,
        id: &EntryId,
        give: impl Fn(ConfigFile, Located) -> Option<T>,
    ) -> Option<T> {
        let read = |file: ConfigFile| {
            let source = Source::read(&file.path, file.max_bytes).ok()??;
            let (all, _) = located(&file, &source).ok()?;
            give(file, all.into_iter().find(|l| l.id == *id)?)
        };
        // Elsewhere only what was protected while a variable of the client pointed there.
        let elsewhere = || self.files(env).into_iter().flatten();
        self.files_of(env, id).into_iter().find_map(read).or_else(|| elsewhere().find_map(read))
    }
}

/// What the entry's `envFile` sets. `None` when there is none, or it cannot be read.
pub(crate) fn env_file(clients: &Clients, env: &Env<'_>, found: &Found) -> Option<Vec<(String, String)>> {
    let name = found.stdio.env_file.as_deref()?;
    let client = clients.client(&found.file.client)?;
    let variables = Variables::new(client.interpolation, env, found.project.as_deref());
    read_env_file(&variables.in_plugin(&client.in_plugins, found.plugin.as_ref()), found.project.as_deref(), name)
}

/// What the file of that name sets, for a server of this project. `None` where it cannot be read.
pub(crate) fn read_env_file(
    variables: &Variables<'_>,
    project: Option<&str>,
    name: &str,
) -> Option<Vec<(String, String)>> {
    let name = variables.expand(name).ok()?;
    let path = match Path::new(&name) {
        path if path.is_absolute() => path.to_owned(),
        path => project.map(PathBuf::from)?.join(path),
    };
    let target = resolve(&path).ok()??;
    let (bytes, _) = read_regular(&path, &target, MAX_ENV_FILE).ok()?;
    let (_, text) = text_of(&path, &bytes).ok()?;
    Some(text.lines().filter_map(assignment).collect())
}

/// `NAME=value`, `export NAME="value"`; comments and everything else are nothing.
fn assignment(line: &str) -> Option<(String, String)> {
    let line = line.trim();
    let line = line.strip_prefix("export ").unwrap_or(line);
    let (name, value) = line.split_once('=')?;
    let name = name.trim();
    let first = name.bytes().next()?;
    let word = |b: u8| b.is_ascii_alphanumeric() || b == b'_';
    if first.is_ascii_digit() || !name.bytes().all(word) {
        return None;
    }
    let value = value.trim();
    let unquoted = ['"', '\'']
        .iter()
        .find_map(|q| value.strip_prefix(*q).and_then(|v| v.split_once(*q)).map(|(inside, _)| inside))
        .unwrap_or_else(|| value.split(" #").next().unwrap_or(value).trim_end());
    Some((name.to_owned(), unquoted.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn env_file_lines() {
        for (line, want) in [
            ("A=b", Some(("A", "b"))),
            ("export A = \"b c\" # d", Some(("A", "b c"))),
            ("A='x#y'", Some(("A", "x#y"))),
            ("A=b # c", Some(("A", "b"))),
            ("A=", Some(("A", ""))),
            ("# A=b", None),
            ("1A=b", None),
            ("A B=c", None),
            ("=b", None),
            ("nothing", None),
        ] {
            let want = want.map(|(n, v): (&str, &str)| (n.to_owned(), v.to_owned()));
            assert_eq!(assignment(line), want, "{line}");
        }
    }
}
