//! What would be changed: computed from the files as they are, shown as a diff, carried out by [`Clients::apply`].

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use firedoor_model::{Digest, EntryId};
use serde::Serialize;
use similar::{Algorithm, TextDiff};

use crate::{
    catalog::{Clients, Interpolation, Syntax, stem},
    discover::{ConfigFile, Located},
    document,
    document::{Remote, Shape},
    env::Env,
    error::{FileError, Problem},
    journal::Journal,
    remote,
    scan::{HIDDEN, located},
    secret,
    source::Source,
    state::{State, state},
    wrap::{SHIM, repair, splice, unwrap, wrap, wrapped},
};

/// What protecting or restoring would do. Nothing is changed yet.
#[derive(Clone, Debug, Serialize)]
pub struct Plan {
    /// Files that would be changed.
    pub files: Vec<FilePlan>,
    /// Chosen entries that stay as they are.
    pub skipped: Vec<Skipped>,
    /// Files of the chosen clients that cannot be read.
    pub problems: Vec<FileProblem>,
    #[serde(skip)]
    pub(crate) action: Action,
}

/// One file.
#[derive(Clone, Debug, Serialize)]
pub struct FilePlan {
    /// Where the client looks for it.
    pub path: PathBuf,
    /// Entries that change.
    pub entries: Vec<EntryId>,
    /// Unified diff; what looks like a secret is left out.
    pub diff: String,
    #[serde(skip)]
    pub(crate) file: ConfigFile,
}

/// An entry that is left alone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Skipped {
    /// Which entry.
    pub id: EntryId,
    /// Why.
    pub reason: String,
}

/// A file that cannot be read.
#[derive(Clone, Debug, Serialize)]
pub struct FileProblem {
    /// Which file.
    pub path: PathBuf,
    /// What is wrong.
    pub problem: Problem,
}

/// The shim cannot be written into a configuration.
#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    /// Not a path that an entry can hold and be recognised by.
    #[error("{path:?} cannot be put into a configuration: {why}")]
    Shim {
        /// The path given.
        path: PathBuf,
        /// Why not.
        why: &'static str,
    },
}

#[derive(Clone, Debug)]
pub(crate) enum Action {
    Protect { shim: String },
    Restore,
}

/// A file's new content.
pub(crate) struct Rewritten {
    pub bytes: Vec<u8>,
    pub changed: Vec<EntryId>,
    pub skipped: Vec<Skipped>,
    /// Entries that start the shim in the new content.
    pub protected: Vec<EntryId>,
    /// Whether the saved original was put back as a whole.
    pub whole: bool,
}

impl Clients {
    /// Plans to put the chosen entries behind `shim`.
    pub fn plan_protect(&self, env: &Env<'_>, chosen: &BTreeSet<EntryId>, shim: &Path) -> Result<Plan, PlanError> {
        let action = Action::Protect { shim: checked_shim(shim)? };
        Ok(self.plan(env, chosen, action))
    }

    /// Plans to give the chosen entries back.
    pub fn plan_restore(&self, env: &Env<'_>, chosen: &BTreeSet<EntryId>) -> Plan {
        self.plan(env, chosen, Action::Restore)
    }

    fn plan(&self, env: &Env<'_>, chosen: &BTreeSet<EntryId>, action: Action) -> Plan {
        let journal = Journal::open(env);
        let mut plan = Plan { files: Vec::new(), skipped: Vec::new(), problems: Vec::new(), action };
        for file in self.files(env).into_iter().flatten() {
            let planned = Source::read(&file.path, file.max_bytes).and_then(|source| {
                let Some(source) = source else { return Ok(None) };
                let new = self.rewrite(&file, &source, chosen, &plan.action, &journal)?;
                let diff = if new.changed.is_empty() { String::new() } else { self.diff(&file, &source, &new.bytes)? };
                Ok(Some((new, diff)))
            });
            match planned {
                Ok(None) => {}
                Ok(Some((new, diff))) => {
                    plan.skipped.extend(new.skipped);
                    if !new.changed.is_empty() {
                        plan.files.push(FilePlan { path: file.path.clone(), entries: new.changed, diff, file });
                    }
                }
                Err(e) => plan.problems.push(FileProblem { path: file.path, problem: Problem::from(&e) }),
            }
        }
        plan
    }

    /// The new content of one file.
    pub(crate) fn rewrite(
        &self,
        file: &ConfigFile,
        source: &Source,
        chosen: &BTreeSet<EntryId>,
        action: &Action,
        journal: &Journal,
    ) -> Result<Rewritten, FileError> {
        let (all, _) = located(file, source)?;
        let (bom, text) = file.text(&source.bytes)?;
        let (new, changed, skipped) = match action {
            Action::Protect { shim } => self.protected(file, text, &all, chosen, shim)?,
            Action::Restore => restored(text, &all, chosen),
        };
        if !changed.is_empty() && !file.maps.iter().all(|map| document::holds(file.syntax, &map.form, text, &new)) {
            return Err(file.irreversible(&changed));
        }
        let mut bytes = [bom, new.as_str()].concat().into_bytes();
        let mut protected = wrapped_ids(file, &bytes)?;
        let mut whole = false;
        if matches!(action, Action::Restore)
            && protected.is_empty()
            && !changed.is_empty()
            // Another client may keep servers in the same file, and those were not asked for.
            && !new.contains(SHIM)
            && let Some(original) = original(file, source, journal)
        {
            whole = true;
            bytes = original;
            protected = Vec::new();
        }
        Ok(Rewritten { bytes, changed, skipped, protected, whole })
    }

    fn protected(
        &self,
        file: &ConfigFile,
        text: &str,
        all: &[Located],
        chosen: &BTreeSet<EntryId>,
        shim: &str,
    ) -> Result<(String, Vec<EntryId>, Vec<Skipped>), FileError> {
        let (mut wraps, mut repairs) = (Vec::new(), Vec::new());
        let (mut fresh, mut changed, mut skipped) = (BTreeSet::new(), Vec::new(), Vec::new());
        for Located { id, server } in all.iter().filter(|l| chosen.contains(&l.id)) {
            let skip = |reason: String| Skipped { id: id.clone(), reason };
            match state(self, id, &server.shape, Some(Path::new(shim))) {
                State::Unprotected => {
                    wraps.extend(match &server.shape {
                        Shape::Stdio(stdio) => wrap(text, stdio, id, shim),
                        Shape::Remote(Remote { parts: Ok(parts), .. }) => remote::wrap(text, parts, id, shim),
                        _ => continue,
                    });
                    fresh.insert(id.clone());
                    changed.push(id.clone());
                }
                State::Misrouted { .. } => {
                    repairs.extend(match &server.shape {
                        Shape::Stdio(stdio) => repair(stdio, id, shim),
                        Shape::Remote(Remote { parts: Ok(parts), .. }) => remote::repair(parts, id, shim),
                        _ => continue,
                    });
                    changed.push(id.clone());
                }
                other => skipped.push(skip(reason(&other))),
            }
        }
        let repaired = splice(text, repairs.clone());
        let new = splice(text, [wraps, repairs].concat());
        // What cannot be taken back exactly is not done.
        if let Some(first) = fresh.first() {
            let back = file.servers(&new).ok().map(|(all, _)| restored(&new, &all, &fresh).0);
            if back.as_deref() != Some(repaired.as_str()) {
                return Err(file.irreversible(std::slice::from_ref(first)));
            }
        }
        Ok((new, changed, skipped))
    }
}

fn restored(text: &str, all: &[Located], chosen: &BTreeSet<EntryId>) -> (String, Vec<EntryId>, Vec<Skipped>) {
    let (mut edits, mut changed, mut skipped) = (Vec::new(), Vec::new(), Vec::new());
    for Located { id, server } in all.iter().filter(|l| chosen.contains(&l.id)) {
        match &server.shape {
            Shape::Stdio(stdio) if let Some(own) = wrapped(stdio) => {
                edits.extend(unwrap(text, stdio, &own));
                changed.push(id.clone());
            }
            Shape::Remote(Remote { parts: Ok(parts), url: Some(url), .. }) => match remote::unwrap(text, parts, url) {
                Ok(own) => {
                    edits.extend(own);
                    changed.push(id.clone());
                }
                Err(reason) => skipped.push(Skipped { id: id.clone(), reason }),
            },
            _ => skipped.push(Skipped { id: id.clone(), reason: "it is not protected: nothing to restore".into() }),
        }
    }
    (splice(text, edits), changed, skipped)
}

/// The saved original, if the file is still what we wrote last and the original has nothing of ours in it.
fn original(file: &ConfigFile, source: &Source, journal: &Journal) -> Option<Vec<u8>> {
    let record = journal.of(&source.target).filter(|r| r.wrote == source.digest())?;
    let original = journal.original(record.original)?;
    wrapped_ids(file, &original).ok()?.is_empty().then_some(original)
}

/// Entries that start the shim.
fn wrapped_ids(file: &ConfigFile, bytes: &[u8]) -> Result<Vec<EntryId>, FileError> {
    let (_, text) = file.text(bytes)?;
    let (all, _) = file.servers(text)?;
    let protected = |l: &Located| match &l.server.shape {
        Shape::Stdio(stdio) => wrapped(stdio).is_some(),
        Shape::Remote(remote) => remote.parts.as_ref().is_ok_and(|parts| parts.behind.is_some()),
        Shape::Odd(_) => false,
    };
    Ok(all.into_iter().filter(protected).map(|l| l.id).collect())
}

fn reason(state: &State) -> String {
    match state {
        State::Protected => "it is protected already".to_owned(),
        State::Unprotected => "it is not protected".to_owned(),
        State::Misrouted { reason } | State::NotYet { reason } => reason.clone(),
        State::WrappedByOther { by } => format!("{by} stands in front of it: remove that first"),
    }
}

fn checked_shim(shim: &Path) -> Result<String, PlanError> {
    let error = |why| PlanError::Shim { path: shim.to_owned(), why };
    let text = shim.to_str().ok_or_else(|| error("it is not UTF-8"))?;
    if !shim.is_absolute() {
        return Err(error("it is not absolute"));
    }
    if text.contains(['$', '\n', '\r']) {
        return Err(error("clients would replace the \"$\" in it, or break its line"));
    }
    if stem(text) != SHIM {
        return Err(error("its file name is not firedoor-shim, by which protected entries are recognised"));
    }
    if !fs::metadata(shim).is_ok_and(|m| m.is_file()) {
        return Err(error("there is no such program: install Firedoor again"));
    }
    Ok(text.to_owned())
}

impl Clients {
    fn diff(&self, file: &ConfigFile, source: &Source, new: &[u8]) -> Result<String, FileError> {
        let (_, old) = file.text(&source.bytes)?;
        let (_, new) = file.text(new)?;
        let rules = self.client(&file.client).map_or(Interpolation::None, |client| client.interpolation);
        let (old, new) = (masked(old, file.syntax, rules), masked(new, file.syntax, rules));
        let name = format!("{:?}", file.path);
        // Past the deadline the diff is coarser, not wrong.
        let mut config = TextDiff::configure();
        let diff = config.algorithm(Algorithm::Myers).timeout(Duration::from_secs(2)).diff_lines(&old, &new);
        Ok(diff.unified_diff().context_radius(3).header(&name, &name).to_string())
    }
}

/// The text with the values that look like secrets left out.
fn masked(text: &str, syntax: Syntax, rules: Interpolation) -> String {
    let mut edits = Vec::new();
    let mut before: Option<(Option<String>, String)> = None;
    // A text that cannot be parsed does not get here; if it did, nothing of it would be shown.
    let seen = document::strings(text, syntax, |key, span, value| {
        let flag = before.as_ref().filter(|(k, _)| k.as_deref() == key).map(|(_, v)| v.as_str());
        let shown = [flag.unwrap_or_default(), value];
        if secret::in_clear(rules, key, value) || secret::arg_in_clear(rules, &shown, 1) {
            edits.push((span, format!("\"{HIDDEN}\"")));
        }
        before = Some((key.map(str::to_owned), value.to_owned()));
    });
    if seen.is_err() { String::new() } else { splice(text, edits) }
}

impl Rewritten {
    pub(crate) fn digest(&self) -> Digest {
        Digest::of(&self.bytes)
    }
}
