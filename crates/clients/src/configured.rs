//! What an entry starts, as its client's file says now.

use std::{collections::BTreeSet, ffi::OsString};

use firedoor_model::{
    EntryId, SecretRef,
    endpoint::{Served, Target},
};

use crate::{
    catalog::{Clients, Interpolation},
    declared::Found,
    document::Shape,
    env::Env,
    moved,
    wrap::wrapped,
};

/// One entry.
pub struct Configured {
    /// Its own command and arguments.
    line: Vec<String>,
    /// The address that it reaches instead.
    url: Option<String>,
    rules: Interpolation,
    /// The secrets that it refers to.
    pub secrets: BTreeSet<SecretRef>,
}

impl Clients {
    /// The entry with this id, if it stays one with an address.
    fn at_endpoint(&self, env: &Env<'_>, id: &EntryId) -> Option<Configured> {
        self.first(env, id, |_, located| match located.server.shape {
            Shape::Remote(remote) if remote.endpoint.is_some() => {
                let secrets = moved::references(remote.values()).into_iter().collect();
                let url = Some(remote.url?.value);
                Some(Configured { line: Vec::new(), url, rules: self.interpolation(id), secrets })
            }
            _ => None,
        })
    }

    /// The entry with this id. `None` when there is no such entry, or it starts no program.
    pub fn configured(&self, env: &Env<'_>, id: &EntryId) -> Option<Configured> {
        if let Some(at_endpoint) = self.at_endpoint(env, id) {
            return Some(at_endpoint);
        }
        let Found { stdio, url, .. } = self.find(env, id)?;
        let own = wrapped(&stdio).map_or(0, |w| w.command_at + 1);
        let line = std::iter::once(&stdio.command).chain(stdio.args()).skip(own).map(|s| s.value.clone()).collect();
        let secrets = moved::references(stdio.values()).into_iter().collect();
        Some(Configured { line, url, rules: self.interpolation(id), secrets })
    }
}

impl Configured {
    /// A server behind an endpoint.
    pub fn of(target: &Target) -> Self {
        let secrets = target.values().filter_map(|value| SecretRef::read(value)).collect();
        let (line, url) = match &target.server {
            Served::Program { program, args, .. } => (std::iter::once(program).chain(args).cloned().collect(), None),
            Served::Remote { url, .. } => (Vec::new(), Some(url.clone())),
        };
        Self { line, url, rules: Interpolation::None, secrets }
    }

    /// Whether it has an address, and starts no program.
    pub fn is_remote(&self) -> bool {
        self.url.is_some()
    }

    /// Whether this is the address that the entry reaches.
    pub fn reaches(&self, url: &str) -> bool {
        self.url.as_deref() == Some(url)
    }

    /// Whether this is what the entry starts. Words that the client fills something into may have become anything.
    pub fn starts(&self, program: &OsString, args: &[OsString]) -> bool {
        let line: Vec<&OsString> = std::iter::once(program).chain(args).collect();
        let same =
            |(ours, theirs): (&String, &&OsString)| ours.as_str() == theirs.as_os_str() || self.rules.refers(ours);
        self.url.is_none() && self.line.len() == line.len() && self.line.iter().zip(&line).all(same)
    }
}
