//! What is configured on this machine, and what state it is in.

use std::path::{Path, PathBuf};

use firedoor_model::{Digest, EntryId, SecretRef, Untrusted};
use serde::Serialize;

use crate::{
    catalog::{Clients, Confidence, Interpolation},
    discover::{ConfigFile, Located, Shown},
    document::{Remote, Shape},
    env::Env,
    error::{FileError, Problem},
    findings::{Finding, Findings},
    moved,
    replace::can_replace,
    secret,
    source::Source,
    state::{State, relative, state},
    wrap::wrapped,
};

/// Everything found.
#[derive(Clone, Debug, Serialize)]
pub struct Scan {
    /// Clients that have at least one file, in the catalog's order.
    pub clients: Vec<ClientFound>,
    /// What there is to say about the servers, in the order of the files.
    pub findings: Vec<Finding>,
}

/// One client.
#[derive(Clone, Debug, Serialize)]
pub struct ClientFound {
    /// Id in the catalog, such as `claude-code`.
    pub id: String,
    /// Its name for people.
    pub name: String,
    /// Where the facts about it come from.
    pub confidence: Confidence,
    /// Its files.
    pub files: Vec<FileFound>,
}

/// One configuration file.
#[derive(Clone, Debug, Serialize)]
pub struct FileFound {
    /// Where the client looks for it.
    pub path: PathBuf,
    /// Its widest scope: `user` or `project:<path>`. A user file can hold `local:<path>` entries as well.
    pub scope: String,
    /// Its servers, in the order of the file; empty when there is a problem.
    pub entries: Vec<EntryFound>,
    /// What concerns the whole file.
    pub warnings: Vec<String>,
    /// It cannot be changed, and a warning says why.
    #[serde(skip)]
    pub fixed: bool,
    /// Why it could not be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<Problem>,
    /// Why it is left alone and not even read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unsupported: Option<LeftAlone>,
    /// Where it is known from that it lies here, if that is not what is said of the client.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub confidence: Option<Confidence>,
}

/// Why a place is only shown.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LeftAlone {
    /// Half a sentence.
    pub reason: String,
    /// What the user can do instead: a sentence.
    pub step: String,
}

/// One server.
#[derive(Clone, Debug, Serialize)]
pub struct EntryFound {
    /// Unique over client, scope and server.
    pub id: EntryId,
    /// The server's own command (of a protected entry: what the shim starts). What looks like a secret is left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<Untrusted>,
    /// Its arguments; what looks like a secret is left out.
    pub args: Vec<Untrusted>,
    /// Names of the variables that the entry sets.
    pub env_names: Vec<Untrusted>,
    /// Where it is reached, if that is over HTTP.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reached: Option<Reached>,
    /// Its secrets that are in the keychain.
    pub secrets: Vec<SecretRef>,
    /// Protected or not.
    #[serde(flatten)]
    pub state: State,
    /// What the user should know about it.
    pub warnings: Vec<String>,
}

/// How a server is reached over HTTP, without what may be secret in it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Reached {
    /// Scheme, host and port.
    pub place: Untrusted,
    /// Names of the headers that the entry sets.
    pub header_names: Vec<Untrusted>,
    /// The whole address, for comparing.
    #[serde(skip)]
    pub address: Digest,
}

impl Reached {
    fn of(remote: &Remote) -> Option<Self> {
        let address = &remote.url.as_ref()?.value;
        let header_names = remote.headers.iter().map(|(name, _)| Untrusted::new(name.as_str())).collect();
        Some(Self { place: place(address).into(), header_names, address: Digest::of(address.as_bytes()) })
    }
}

/// An address up to its path, which may hold a secret, as may the name in front of its host.
fn place(address: &str) -> &str {
    let after = address.find("://").map_or(0, |at| at + 3);
    let end =
        address.get(after..).and_then(|rest| rest.find(['/', '?', '#', '\\'])).map_or(address.len(), |at| after + at);
    let whole = address.get(..end).unwrap_or_default();
    if whole.contains('@') { HIDDEN } else { whole }
}

/// Stands for a value that looks like a secret.
pub(crate) const HIDDEN: &str = "(hidden: looks like a secret)";

impl Clients {
    /// Looks at every file of every client. Never fails: what cannot be read is part of the result.
    pub fn scan(&self, env: &Env<'_>) -> Scan {
        let mut findings = Findings::new(&self.packages);
        let clients = self
            .clients
            .iter()
            .zip(self.files_and_unsupported(env))
            .map(|(client, (files, shown))| ClientFound {
                id: client.id.clone(),
                name: client.name.clone(),
                confidence: client.confidence,
                files: files
                    .iter()
                    .filter_map(|file| self.file_found(env, file, &mut findings))
                    .chain(shown.into_iter().map(left_alone))
                    .collect(),
            })
            .filter(|client| !client.files.is_empty())
            .collect();
        Scan { clients, findings: findings.all() }
    }

    fn file_found(&self, env: &Env<'_>, file: &ConfigFile, findings: &mut Findings<'_>) -> Option<FileFound> {
        let mut found = FileFound {
            path: file.path.clone(),
            scope: file.scope(),
            entries: Vec::new(),
            warnings: Vec::new(),
            fixed: false,
            problem: None,
            unsupported: None,
            confidence: file.confidence,
        };
        let filled = match Source::read(&file.path, file.max_bytes) {
            Ok(None) => return None,
            Ok(Some(source)) => self.fill(env, &mut found, file, &source, findings),
            Err(error) => Err(error),
        };
        if file.shared && found.entries.is_empty() {
            // Whoever's file it is says what is wrong with it.
            return None;
        }
        found.problem = filled.err().as_ref().map(Problem::from);
        if let Some(problem) = &found.problem {
            findings.unread(&file.path, problem);
        }
        Some(found)
    }

    fn fill(
        &self,
        env: &Env<'_>,
        found: &mut FileFound,
        file: &ConfigFile,
        source: &Source,
        findings: &mut Findings<'_>,
    ) -> Result<(), FileError> {
        let (_, text) = file.text(&source.bytes)?;
        let (located, unnamed) = file.servers(text)?;
        findings.begin();
        located.iter().for_each(|l| findings.judge(file, text, l, self.interpolation(&l.id)));
        let warnings = &mut found.warnings;
        if unnamed > 0 {
            findings.left_out(&file.path, unnamed);
            warnings.push(format!("{unnamed} servers are left out: their names are too long"));
        }
        if file.project.is_some() && in_git_work_tree(&source.target) {
            warnings.push(
                "this file lies in a git work tree: a change to it reaches everybody who shares the repository".into(),
            );
        }
        if source.target != source.path && std::fs::symlink_metadata(&source.path).is_ok_and(|m| m.is_symlink()) {
            warnings.push(format!("it is a symbolic link: what changes is {:?}", source.target));
        }
        found.entries = located.iter().map(|l| self.entry_found(env, file, l)).collect();
        if !found.entries.is_empty()
            && let Err(e) = can_replace(source)
        {
            found.fixed = true;
            found.warnings.push(format!("it cannot be changed: {e}"));
        }
        Ok(())
    }

    pub(crate) fn entry_found(&self, env: &Env<'_>, file: &ConfigFile, located: &Located) -> EntryFound {
        let mut found = EntryFound {
            id: located.id.clone(),
            command: None,
            args: Vec::new(),
            env_names: Vec::new(),
            reached: None,
            secrets: moved::references(located.server.shape.values()),
            state: state(self, env, file, located, env.shim.as_deref()),
            warnings: Vec::new(),
        };
        let stdio = match &located.server.shape {
            Shape::Stdio(stdio) => stdio,
            Shape::Remote(remote) => {
                found.env_names = remote.env.iter().map(|(name, _)| Untrusted::new(name.as_str())).collect();
                found.reached = Reached::of(remote);
                return found;
            }
            Shape::Odd(_) => return found,
        };
        let all: Vec<&str> = std::iter::once(&stdio.command).chain(stdio.args()).map(|s| s.value.as_str()).collect();
        // Of a wrapped entry: skip the shim and what is its own, up to the original command.
        let own = wrapped(stdio).map_or(0, |w| w.command_at + 1);
        let line = masked(self.interpolation(&located.id), all.get(own..).unwrap_or_default());
        let mut line = line.into_iter();
        found.command = line.next();
        found.args = line.collect();
        found.env_names = stdio.env.iter().map(|(name, _)| Untrusted::new(name.as_str())).collect();
        if stdio.args().iter().any(|a| SecretRef::read(&a.value).is_some()) {
            let note = "it takes a secret as an argument, which other programs of yours can read while it runs";
            found.warnings.push(note.into());
        }
        if found.command.as_ref().is_some_and(|c| relative(c.raw())) {
            found.warnings.push("its command is relative: what runs depends on where the client is started".into());
        }
        found
    }
}

fn left_alone(shown: Shown<'_>) -> FileFound {
    let Shown { path, scope, place } = shown;
    FileFound {
        path,
        scope,
        entries: Vec::new(),
        warnings: Vec::new(),
        fixed: false,
        problem: None,
        unsupported: Some(LeftAlone { reason: place.reason.clone(), step: place.step.clone() }),
        confidence: place.confidence,
    }
}

fn masked(rules: Interpolation, line: &[&str]) -> Vec<Untrusted> {
    let shown = |(at, arg): (usize, &&str)| if secret::arg_in_clear(rules, line, at) { HIDDEN } else { arg }.into();
    line.iter().enumerate().map(shown).collect()
}

/// Reads a file's servers.
pub(crate) fn located(file: &ConfigFile, source: &Source) -> Result<(Vec<Located>, usize), FileError> {
    let (_, text) = file.text(&source.bytes)?;
    file.servers(text)
}

fn in_git_work_tree(file: &Path) -> bool {
    // `.git` is a directory, or a file in a linked work tree.
    file.ancestors().skip(1).any(|dir| dir.join(".git").exists())
}
