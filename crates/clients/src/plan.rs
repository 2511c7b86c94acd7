//! What would be changed: computed from the files as they are, shown as a diff, carried out by [`Clients::apply`].

mod diff;
mod protecting;
mod restoring;

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

use firedoor_model::{Digest, EntryId, SecretRef};
use serde::Serialize;

pub(crate) use restoring::has_ours;
use restoring::{original, restored};

use crate::{
    catalog::{Clients, stem},
    discover::{ConfigFile, Map},
    document::{self, Shape},
    endpoint,
    env::Env,
    error::{FileError, Problem},
    journal::Journal,
    moved::{self, Move, SecretLeft},
    replace::can_replace,
    scan::located,
    source::Source,
    wrap::{SHIM, wrapped},
};

/// What protecting or restoring would do. Nothing is changed yet.
#[derive(Clone, Debug, Serialize)]
pub struct Plan {
    /// Files that would be changed.
    pub files: Vec<FilePlan>,
    /// Chosen entries that stay as they are.
    pub skipped: Vec<Skipped>,
    /// Files that cannot be read; of a restore, only those that may hold something of Firedoor's.
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
    /// Secrets that move into the keychain; of a restore, those that come back.
    pub secrets: Vec<SecretRef>,
    /// Secrets that stay where they are.
    pub secrets_left: Vec<SecretLeft>,
    /// Unified diff; what looks like a secret is left out.
    pub diff: String,
    /// Why the file could not be changed as it is now, and the remedy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hindrance: Option<String>,
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
    /// Whose file.
    #[serde(skip)]
    pub client: String,
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
    Protect {
        shim: String,
        /// Firedoor's addresses for entries that stay ones with an address.
        endpoints: BTreeMap<EntryId, String>,
    },
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
    /// Secrets on their way into the keychain.
    pub moves: Vec<Move>,
    /// Secrets that came back from it.
    pub back: Vec<SecretRef>,
    /// Secrets that stay where they are.
    pub left: Vec<SecretLeft>,
}

/// What may become of secrets.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Secrets<'s> {
    /// They move as far as the keychain works.
    Move,
    /// They stay, for this reason.
    Stay(&'s str),
    /// They are neither written nor read: only the change is shown.
    Show,
}

impl Clients {
    /// Plans to put the chosen entries behind `shim`.
    pub fn plan_protect(&self, env: &Env<'_>, chosen: &BTreeSet<EntryId>, shim: &Path) -> Result<Plan, PlanError> {
        self.plan_protect_at(env, chosen, shim, BTreeMap::new())
    }

    /// The same; an entry among `endpoints` stays one with an address, and gets this one of Firedoor's in front of its own.
    pub fn plan_protect_at(
        &self,
        env: &Env<'_>,
        chosen: &BTreeSet<EntryId>,
        shim: &Path,
        endpoints: BTreeMap<EntryId, String>,
    ) -> Result<Plan, PlanError> {
        let action = Action::Protect { shim: checked_shim(shim)?, endpoints };
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
                let secrets = if matches!(plan.action, Action::Restore) { Secrets::Show } else { Secrets::Move };
                let new = self.rewrite(env, &file, &source, chosen, &plan.action, &journal, secrets)?;
                let diff = if new.changed.is_empty() { String::new() } else { self.diff(&file, &source, &new.bytes)? };
                let hindrance = can_replace(&source).err().map(|e| e.to_string());
                Ok(Some((new, diff, hindrance)))
            });
            match planned {
                Ok(None) => {}
                Ok(Some((new, diff, hindrance))) => {
                    plan.skipped.extend(new.skipped);
                    if !new.changed.is_empty() {
                        let secrets = new.moves.into_iter().map(|m| m.reference).chain(new.back).collect();
                        let (entries, path) = (new.changed, file.path.clone());
                        let secrets_left = new.left;
                        plan.files.push(FilePlan { path, entries, secrets, secrets_left, diff, hindrance, file });
                    }
                }
                Err(_) if matches!(plan.action, Action::Restore) && !restoring::may_be_ours(&file.path, &journal) => {}
                Err(e) => {
                    let problem = Problem::from(&e);
                    plan.problems.push(FileProblem { client: file.client, path: file.path, problem });
                }
            }
        }
        plan
    }

    /// The new content of one file. Nothing is written, nor put into the keychain.
    #[expect(clippy::too_many_arguments, reason = "each is another thing that decides")]
    pub(crate) fn rewrite(
        &self,
        env: &Env<'_>,
        file: &ConfigFile,
        source: &Source,
        chosen: &BTreeSet<EntryId>,
        action: &Action,
        journal: &Journal,
        secrets: Secrets<'_>,
    ) -> Result<Rewritten, FileError> {
        let (all, _) = located(file, source)?;
        let (bom, text) = file.text(&source.bytes)?;
        let mut new = match action {
            Action::Protect { shim, endpoints } => {
                let protect = |secrets| self.protected(env, file, text, &all, chosen, shim, endpoints, secrets);
                match protect(secrets) {
                    // Protecting is worth more than moving.
                    Err(FileError::Irreversible { .. }) => protect(Secrets::Stay("it could not be put back exactly"))?,
                    done => done?,
                }
            }
            Action::Restore => restored(text, &all, chosen, &|reference| match secrets {
                Secrets::Show => Ok(moved::shown()),
                Secrets::Stay(reason) => Err(reason.to_owned()),
                Secrets::Move => moved::lookup(env.keychain().map_err(|e| e.to_string())?, reference),
            }),
        };
        let spelled = |value: &str| {
            let reference = SecretRef::read(value)?;
            let moved = new.moves.iter().find(|m| m.reference == reference).map(|m| m.kept.clone());
            let kept = moved.or_else(|| match secrets {
                Secrets::Show => Some(moved::shown()),
                Secrets::Stay(_) | Secrets::Move => moved::lookup(env.keychain().ok()?, &reference).ok(),
            });
            kept.map(|kept| kept.token())
        };
        let holds = |map: &Map| document::holds(file.syntax, &map.form, text, &new.text, &spelled);
        if !new.changed.is_empty() && !file.maps.iter().all(holds) {
            return Err(file.irreversible(&new.changed));
        }
        let shared = new.text.contains(SHIM) || new.text.contains(endpoint::MARK);
        new.text.insert_str(0, bom);
        let mut bytes = new.text.into_bytes();
        let mut protected = wrapped_ids(file, &bytes)?;
        let mut whole = false;
        if matches!(action, Action::Restore)
            && protected.is_empty()
            && !new.changed.is_empty()
            && !matches!(secrets, Secrets::Show)
            // Another client may keep servers in the same file, and those were not asked for.
            && !shared
            && let Some(original) = original(env, file, source, journal)
        {
            // A secret that was changed in the keychain comes back as it is there; the original holds the old one.
            whole = new.back.is_empty() || !new.left.is_empty() || bytes == original;
            if whole {
                bytes = original;
                protected = Vec::new();
                new.left.clear();
            }
        }
        let Text { changed, skipped, moves, back, left, .. } = new;
        Ok(Rewritten { bytes, changed, skipped, protected, whole, moves, back, left })
    }
}

/// A file's new text, and what was done to get it.
#[derive(Default)]
struct Text {
    text: String,
    changed: Vec<EntryId>,
    skipped: Vec<Skipped>,
    moves: Vec<Move>,
    back: Vec<SecretRef>,
    left: Vec<SecretLeft>,
}

/// Entries that start the shim.
fn wrapped_ids(file: &ConfigFile, bytes: &[u8]) -> Result<Vec<EntryId>, FileError> {
    let (_, text) = file.text(bytes)?;
    let (all, _) = file.servers(text)?;
    Ok(all.into_iter().filter(|l| behind(&l.server.shape)).map(|l| l.id).collect())
}

/// Whether an entry starts the shim.
fn behind(shape: &Shape) -> bool {
    match shape {
        Shape::Stdio(stdio) => wrapped(stdio).is_some(),
        Shape::Remote(remote) => {
            remote.endpoint.is_some() || remote.parts.as_ref().is_ok_and(|parts| parts.behind.is_some())
        }
        Shape::Odd(_) => false,
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

impl Rewritten {
    pub(crate) fn digest(&self) -> Digest {
        Digest::of(&self.bytes)
    }
}
