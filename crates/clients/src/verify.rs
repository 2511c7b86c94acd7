//! Proof that a server still answers: it is started as its client would start it, once directly and once through the
//! shim, and what both list is compared.

mod apart;
mod entry;
mod interrupt;
mod session;
mod several;

pub use apart::{Apart, protect_apart};
pub use entry::{Outcome, Verified, among_others, confined, entry};
pub use interrupt::Interrupt;
pub use several::{Progress, give_back_unchecked, several};

use std::{
    collections::{BTreeMap, BTreeSet},
    ffi::OsString,
    fmt,
    path::{Path, PathBuf},
    time::Duration,
};

use firedoor_model::{Digest, EntryId, SecretRef, Untrusted, lists};
use serde::Serialize;
use serde_json::Value;

use crate::{
    catalog::{Clients, same_variable},
    declared::{Found, env_file},
    document::Shape,
    env::Env,
    interpolate::Variables,
    moved::secret_of,
    wrap::wrapped,
};

/// How a server is started. Holds its environment with its secrets: not shown, not stored.
#[derive(Clone, PartialEq, Eq)]
pub struct Invocation {
    /// The program, looked up in the `PATH` of `env`.
    pub command: String,
    /// Its arguments.
    pub args: Vec<String>,
    /// Its whole environment.
    pub env: BTreeMap<OsString, OsString>,
    /// Its working directory.
    pub cwd: PathBuf,
}

impl fmt::Debug for Invocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Invocation").field("cwd", &self.cwd).finish_non_exhaustive()
    }
}

/// An entry, started both ways.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Invocations {
    /// The server itself; `None` for one that is reached over HTTP.
    pub direct: Option<Invocation>,
    /// The entry as it stands; `None` while it is not protected.
    pub through: Option<Invocation>,
}

/// What a server says it offers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ToolsSeen {
    /// Name and version that the server gives itself.
    pub server: Untrusted,
    /// The protocol revision it answered with.
    pub protocol: Untrusted,
    /// Hash of `instructions` and capabilities.
    pub about: Digest,
    /// Its tools: name, and hash of the whole definition.
    pub tools: BTreeMap<String, Digest>,
}

/// Why a server was not seen to answer.
#[derive(Debug, thiserror::Error)]
pub enum VerifyError {
    /// Only the client can start it.
    #[error("cannot be verified: {reason}")]
    Unverifiable {
        /// Why.
        reason: String,
    },
    /// It could not be started.
    #[error("the server could not be started: {0}")]
    Start(std::io::Error),
    /// It did not answer in time.
    #[error("the server did not answer {waiting_for} within {seconds} s")]
    Timeout {
        /// The request.
        waiting_for: &'static str,
        /// The bound.
        seconds: u64,
    },
    /// It ended.
    #[error("the server ended before it answered {waiting_for}")]
    Ended {
        /// The request.
        waiting_for: &'static str,
    },
    /// It answered with an error.
    #[error("the server refused {request}: {message:?}")]
    Refused {
        /// The request.
        request: &'static str,
        /// Its words.
        message: Untrusted,
    },
    /// Its answer is not of the protocol.
    #[error("the server's answer to {request} is not of the protocol: {why}")]
    Protocol {
        /// The request.
        request: &'static str,
        /// What is wrong.
        why: &'static str,
    },
    /// Somebody asked for an end of it.
    #[error("the check was interrupted")]
    Interrupted,
    /// It sent more than any server does.
    #[error("the server sent too much: more than {0}")]
    TooMuch(&'static str),
}

/// One difference between what the server lists and what is listed through the shim.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Difference {
    /// Name, version, protocol, capabilities or instructions.
    Server,
    /// Listed directly only.
    Missing {
        /// The tool.
        tool: Untrusted,
    },
    /// Listed through the shim only.
    Added {
        /// The tool.
        tool: Untrusted,
    },
    /// Another definition.
    Changed {
        /// The tool.
        tool: Untrusted,
    },
}

/// Starts a server, asks what tools it has, and ends it with everything it has started in its process group.
pub fn list_tools(invocation: &Invocation, timeout: Duration, interrupt: &Interrupt) -> Result<ToolsSeen, VerifyError> {
    session::run(invocation, timeout, interrupt)
}

/// What differs; empty when both ways list the same.
pub fn compare(direct: &ToolsSeen, through: &ToolsSeen) -> Vec<Difference> {
    let mut all = Vec::new();
    if (&direct.server, &direct.protocol, direct.about) != (&through.server, &through.protocol, through.about) {
        all.push(Difference::Server);
    }
    let names: BTreeSet<&String> = direct.tools.keys().chain(through.tools.keys()).collect();
    for name in names {
        let tool = Untrusted::new(name.as_str());
        match (direct.tools.get(name), through.tools.get(name)) {
            (Some(_), None) => all.push(Difference::Missing { tool }),
            (None, Some(_)) => all.push(Difference::Added { tool }),
            (a, b) if a != b => all.push(Difference::Changed { tool }),
            _ => {}
        }
    }
    all
}

impl Clients {
    /// How the client would start the entry, with its variables filled in by the client's rules. `base` is the
    /// environment the client runs in; a client that passes on a selection of it does so here.
    pub fn invocations(
        &self,
        env: &Env<'_>,
        id: &EntryId,
        base: &BTreeMap<OsString, OsString>,
    ) -> Result<Invocations, VerifyError> {
        let unverifiable = |reason: String| VerifyError::Unverifiable { reason };
        let Some(found) = self.find(env, id) else {
            let none = || Err(unverifiable("there is no such entry that starts a program".into()));
            return self.behind_endpoint(env, id, base).unwrap_or_else(none);
        };
        let client = self.client(id.client()).ok_or_else(|| unverifiable("the client is not known".into()))?;
        let project = found.project.as_deref();
        let (rules, plugin) = (&client.in_plugins, found.plugin.as_ref());
        let fill = Variables::new(client.interpolation, env, project).in_plugin(rules, plugin);
        let expand = |text: &str| fill.expand(text).map_err(|e| unverifiable(e.to_string()));
        let secret = |text: &str| match SecretRef::read(text) {
            Some(reference) => {
                let keychain = env.keychain().map_err(|e| unverifiable(e.to_string()))?;
                secret_of(keychain, &reference).map_err(|e| unverifiable(e.to_string()))
            }
            None => Ok(text.to_owned()),
        };
        let stdio = &found.stdio;
        let mut variables = base.clone();
        variables
            .retain(|name, _| client.passes_on(name) || stdio.env_passed.iter().any(|own| same_variable(name, own)));
        for (name, value) in declared(self, env, &found)? {
            variables.insert(name.into(), value.into());
        }
        if let Some(plugin) = plugin.filter(|_| rules.exported) {
            variables.extend(rules.variables.iter().map(|name| (name.into(), plugin.dir.clone().into())));
        }
        // What is started through us gets references; the engine knows what they stand for.
        let mut through = variables.clone();
        for (name, value) in &stdio.env {
            let name = OsString::from(name);
            match value {
                Some(value) => {
                    let value = expand(&value.value)?;
                    variables.insert(name.clone(), secret(&value)?.into());
                    through.insert(name, value.into());
                }
                None => {
                    variables.remove(&name);
                    through.remove(&name);
                }
            }
        }
        let inside = plugin.filter(|_| rules.starts_inside).map(|plugin| plugin.dir.clone());
        let start = inside.or_else(|| project.map(PathBuf::from)).unwrap_or_else(|| env.paths.home.clone());
        let cwd = match &stdio.cwd {
            None => start,
            Some(own) => match PathBuf::from(expand(own)?) {
                path if path.is_absolute() => path,
                path if let Some(plugin) = plugin => plugin.dir.join(path),
                path if project.is_some() => start.join(path),
                _ => return Err(unverifiable("its working directory depends on where the client is started".into())),
            },
        };
        let line = |all: Vec<String>, env: &BTreeMap<OsString, OsString>| -> Result<Invocation, VerifyError> {
            let mut all = all.into_iter();
            let command = all.next().ok_or_else(|| unverifiable("it has no command".into()))?;
            Ok(Invocation { command, args: all.collect(), env: env.clone(), cwd: cwd.clone() })
        };
        let expanded = |line: &[&str]| line.iter().map(|s| expand(s)).collect::<Result<Vec<_>, _>>();
        let direct = |words: &[&str]| expanded(words)?.iter().map(|s| secret(s)).collect::<Result<Vec<_>, _>>();
        let all: Vec<&str> = std::iter::once(&stdio.command).chain(stdio.args()).map(|s| s.value.as_str()).collect();
        match wrapped(stdio) {
            None if found.url.is_some() => {
                Ok(Invocations { direct: None, through: Some(line(expanded(&all)?, &through)?) })
            }
            None => Ok(Invocations { direct: Some(line(direct(&all)?, &variables)?), through: None }),
            Some(own) => Ok(Invocations {
                direct: Some(line(direct(all.get(own.command_at + 1..).unwrap_or_default())?, &variables)?),
                through: Some(line(expanded(&all)?, &through)?),
            }),
        }
    }
}

/// Start of the variables that hold headers.
const HEADER: &str = "FIREDOOR_HEADER_";

impl Clients {
    /// How Firedoor's address on this machine reaches the server of an entry that has it in front of its own; `None` for another
    /// entry. The headers are those that the client sends.
    fn behind_endpoint(
        &self,
        env: &Env<'_>,
        id: &EntryId,
        base: &BTreeMap<OsString, OsString>,
    ) -> Option<Result<Invocations, VerifyError>> {
        let unverifiable = |reason: String| VerifyError::Unverifiable { reason };
        let found = self.first(env, id, |file, located| match located.server.shape {
            Shape::Remote(remote) if remote.endpoint.is_some() => {
                Some((remote, located.server.project.or_else(|| file.project.clone())))
            }
            _ => None,
        });
        let (remote, project) = found?;
        let invocation = || {
            let url = remote.url.as_ref().ok_or_else(|| unverifiable("its address is no text".into()))?;
            let shim = env.shim.as_ref().ok_or_else(|| unverifiable("the shim is not known".into()))?;
            let command = shim.to_str().ok_or_else(|| unverifiable("the shim's path is no text".into()))?.to_owned();
            let fill = Variables::new(self.interpolation(id), env, project.as_deref());
            let (mut args, mut variables) = (vec!["--entry".into(), id.to_string()], base.clone());
            args.extend(["--url".to_owned(), url.value.clone()]);
            for (number, (name, value)) in (1..).zip(&remote.headers) {
                let variable = format!("{HEADER}{number}");
                args.extend(["--header".to_owned(), format!("{name}=env:{variable}")]);
                let value = fill.expand(&value.value).map_err(|e| unverifiable(e.to_string()))?;
                variables.insert(variable.into(), value.into());
            }
            let cwd = project.as_ref().map_or_else(|| env.paths.home.clone(), PathBuf::from);
            let through = Invocation { command, args, env: variables, cwd };
            Ok(Invocations { direct: None, through: Some(through) })
        };
        Some(invocation())
    }
}

/// What the entry's `envFile` sets; not being able to read it makes the entry unverifiable.
fn declared(clients: &Clients, env: &Env<'_>, found: &Found) -> Result<Vec<(String, String)>, VerifyError> {
    match (&found.stdio.env_file, env_file(clients, env, found)) {
        (None, _) => Ok(Vec::new()),
        (Some(_), Some(all)) => Ok(all),
        (Some(name), None) => Err(VerifyError::Unverifiable {
            reason: format!("its envFile {:?} cannot be read from here", Path::new(name)),
        }),
    }
}

/// Hash of JSON that does not depend on the order of members, nor of what there is to choose from, because some servers' order is not
/// stable.
fn canonical(value: &Value) -> Digest {
    fn write(value: &Value, choice: bool, out: &mut Vec<u8>) {
        match value {
            Value::Object(map) => {
                let mut members: Vec<_> = map.iter().collect();
                members.sort_by_key(|(name, _)| *name);
                out.push(b'{');
                for (name, value) in members {
                    out.extend(Value::from(name.as_str()).to_string().bytes());
                    out.push(b':');
                    write(value, matches!(name.as_str(), "enum" | "required"), out);
                    out.push(b',');
                }
                out.push(b'}');
            }
            Value::Array(all) => {
                let written = |value: &Value| {
                    let mut out = Vec::new();
                    write(value, false, &mut out);
                    out
                };
                let mut items: Vec<_> = all.iter().map(written).collect();
                if choice && all.iter().all(Value::is_string) {
                    items.sort_unstable();
                }
                out.push(b'[');
                out.extend(items.join(&b","[..]));
                out.push(b']');
            }
            Value::String(text) => out.extend(Value::from(lists::in_order(text).as_ref()).to_string().bytes()),
            other => out.extend(other.to_string().bytes()),
        }
    }
    let mut out = Vec::new();
    write(value, false, &mut out);
    Digest::of(&out)
}

#[cfg(test)]
mod tests;
