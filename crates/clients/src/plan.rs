//! What would be changed: computed from the files as they are, shown as a diff, carried out by [`Clients::apply`].

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use firedoor_model::{Digest, EntryId, SecretRef};
use serde::Serialize;
use similar::{Algorithm, TextDiff};

use crate::{
    catalog::{Clients, Interpolation, Syntax, stem},
    discover::{ConfigFile, Located, Map},
    document,
    document::{Remote, Shape, Span, SyntaxError, remote::VARIABLE},
    endpoint,
    env::Env,
    error::{FileError, Problem},
    journal::Journal,
    moved::{self, Kept, Move, Moves, SecretLeft},
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
    /// Secrets that move into the keychain; of a restore, those that come back.
    pub secrets: Vec<SecretRef>,
    /// Secrets that stay where they are.
    pub secrets_left: Vec<SecretLeft>,
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
                Ok(Some((new, diff)))
            });
            match planned {
                Ok(None) => {}
                Ok(Some((new, diff))) => {
                    plan.skipped.extend(new.skipped);
                    if !new.changed.is_empty() {
                        let secrets = new.moves.into_iter().map(|m| m.reference).chain(new.back).collect();
                        let (entries, path) = (new.changed, file.path.clone());
                        plan.files.push(FilePlan { path, entries, secrets, secrets_left: new.left, diff, file });
                    }
                }
                Err(e) => plan.problems.push(FileProblem { path: file.path, problem: Problem::from(&e) }),
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

    #[expect(clippy::too_many_arguments, reason = "each is another thing that decides")]
    fn protected(
        &self,
        env: &Env<'_>,
        file: &ConfigFile,
        text: &str,
        all: &[Located],
        chosen: &BTreeSet<EntryId>,
        shim: &str,
        endpoints: &BTreeMap<EntryId, String>,
        secrets: Secrets<'_>,
    ) -> Result<Text, FileError> {
        let (mut wraps, mut repairs, mut edits) = (Vec::new(), Vec::new(), Vec::new());
        let (mut fresh, mut with_secrets) = (BTreeSet::new(), BTreeSet::new());
        let mut new = Text::default();
        for entry in all.iter().filter(|l| chosen.contains(&l.id)) {
            let Located { id, server, .. } = entry;
            let skip = |reason: String| Skipped { id: id.clone(), reason };
            let state = state(self, entry, Some(Path::new(shim)));
            let mut moved = false;
            match &state {
                _ if let (Some(address), Shape::Remote(remote)) = (endpoints.get(id), &server.shape) => {
                    let Some(url) = remote.url.as_ref().filter(|_| self.can_have_endpoint(id, &server.shape).is_ok())
                    else {
                        new.skipped.push(skip("it cannot have an address of Firedoor's in front of its own".into()));
                        continue;
                    };
                    let edits = endpoint::wrap(text, url, remote.endpoint.as_deref(), id, address);
                    match &remote.endpoint {
                        None => {
                            wraps.extend(edits);
                            fresh.insert(id.clone());
                        }
                        Some(at) if at.address == *address && at.id == *id => {}
                        Some(_) => {
                            repairs.extend(edits);
                            moved = true;
                        }
                    }
                }
                State::Misrouted { .. } if behind(&server.shape) => {
                    repairs.extend(match &server.shape {
                        Shape::Remote(Remote { endpoint: Some(_), .. }) => {
                            new.skipped.push(skip(reason(&state)));
                            continue;
                        }
                        Shape::Stdio(stdio) => repair(stdio, id, shim),
                        Shape::Remote(Remote { parts: Ok(parts), .. }) => remote::repair(parts, id, shim),
                        _ => continue,
                    });
                }
                State::Unprotected | State::Misrouted { .. } => {
                    wraps.extend(match &server.shape {
                        Shape::Stdio(stdio) => wrap(text, stdio, id, shim),
                        Shape::Remote(Remote { parts: Ok(parts), .. }) => remote::wrap(text, parts, id, shim),
                        _ => continue,
                    });
                    // What is restored of one with references is not what it is now.
                    if state == State::Unprotected { &mut fresh } else { &mut with_secrets }.insert(id.clone());
                }
                State::Protected => {}
                other => {
                    new.skipped.push(skip(reason(other)));
                    continue;
                }
            }
            let moves = self.moves(env, text, id, &server.shape, secrets);
            if moves.edits.is_empty() && state == State::Protected && !moved {
                new.skipped.push(skip(reason(&state)));
                continue;
            }
            if !moves.edits.is_empty() {
                with_secrets.insert(id.clone());
            }
            new.changed.push(id.clone());
            edits.extend(moves.edits);
            new.moves.extend(moves.moves);
            new.left.extend(moves.left);
        }
        let repaired = splice(text, repairs.clone());
        new.text = splice(text, [wraps, repairs, edits].concat());
        self.reversible(env, file, &new, &repaired, &fresh, &with_secrets)?;
        Ok(new)
    }

    /// The server's address of an entry that can stay one with an address, with Firedoor's in front of it; or why not.
    pub fn endpoint_for(&self, env: &Env<'_>, id: &EntryId) -> Result<String, String> {
        let found = self.first(env, id, |_, l| Some(self.can_have_endpoint(id, &l.server.shape)));
        found.unwrap_or_else(|| Err("there is no such entry".into()))
    }

    fn can_have_endpoint(&self, id: &EntryId, shape: &Shape) -> Result<String, String> {
        let Shape::Remote(remote) = shape else { return Err("it is no entry with an address".into()) };
        if remote.parts.as_ref().is_ok_and(|parts| parts.behind.is_some()) {
            return Err("it starts the shim: restore it first".into());
        }
        let url = remote.url.as_ref().ok_or("its address is no text")?.value.clone();
        let rules = self.interpolation(id);
        if remote.sse {
            return Err("its client speaks HTTP+SSE to it, which Firedoor's addresses do not".into());
        }
        if !(url.starts_with("http://") || url.starts_with("https://"))
            || rules.refers(&url)
            || url.contains(['"', '\\'])
        {
            return Err("its address is not http, or the client fills something in".into());
        }
        if secret::in_url(rules, &url) {
            return Err("its address looks like a secret in clear".into());
        }
        if let Some(sign) = rules.touches(&id.to_string()) {
            return Err(format!("its name contains {sign:?}, which the client would replace"));
        }
        endpoint::objection(id).map_or(Ok(url), |why| Err(why.into()))
    }

    fn moves(&self, env: &Env<'_>, text: &str, id: &EntryId, shape: &Shape, secrets: Secrets<'_>) -> Moves {
        let rules = self.interpolation(id);
        let foreign = moved::references(shape.values()).iter().any(|r| r.entry() != id);
        if !foreign && !moved::has_secret(shape, rules) {
            return Moves::default();
        }
        let stay = |reason: &str| Moves { left: moved::all_left(shape, id, rules, reason), ..Moves::default() };
        match secrets {
            Secrets::Stay(reason) => stay(reason),
            Secrets::Move | Secrets::Show => match env.vault() {
                Ok((keychain, _)) => moved::moves(text, shape, id, rules, |r| moved::lookup(keychain, r).ok()),
                Err(reason) => stay(&reason),
            },
        }
    }

    /// What cannot be taken back exactly is not done.
    fn reversible(
        &self,
        env: &Env<'_>,
        file: &ConfigFile,
        new: &Text,
        repaired: &str,
        fresh: &BTreeSet<EntryId>,
        with_secrets: &BTreeSet<EntryId>,
    ) -> Result<(), FileError> {
        let touched: BTreeSet<EntryId> = fresh.union(with_secrets).cloned().collect();
        let Some(first) = touched.first() else { return Ok(()) };
        let known = |reference: &SecretRef| match new.moves.iter().find(|m| m.reference == *reference) {
            Some(moved) => Ok(moved.kept.clone()),
            None => moved::lookup(env.keychain().map_err(|e| e.to_string())?, reference),
        };
        let back = |text: &str, ids: &BTreeSet<EntryId>| {
            let (all, _) = file.servers(text).ok()?;
            Some(restored(text, &all, ids, &known).text)
        };
        // Of entries that were protected before, or refer to secrets, only what restoring makes of them can be compared.
        let before: BTreeSet<EntryId> = with_secrets.difference(fresh).cloned().collect();
        let want = if before.is_empty() { Some(repaired.to_owned()) } else { back(repaired, &before) };
        match (back(&new.text, &touched), want) {
            (Some(back), Some(want)) if back == want => Ok(()),
            _ => Err(file.irreversible(std::slice::from_ref(first))),
        }
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

fn restored(
    text: &str,
    all: &[Located],
    chosen: &BTreeSet<EntryId>,
    known: &dyn Fn(&SecretRef) -> Result<Kept, String>,
) -> Text {
    let (mut edits, mut new) = (Vec::new(), Text::default());
    for Located { id, server, .. } in all.iter().filter(|l| chosen.contains(&l.id)) {
        let references = moved::references(server.shape.values());
        let own = match &server.shape {
            shape if !behind(shape) && !references.is_empty() => Ok(Vec::new()),
            Shape::Stdio(stdio) if let Some(own) = wrapped(stdio) => Ok(unwrap(text, stdio, &own)),
            Shape::Remote(Remote { endpoint: Some(at), url: Some(url), .. }) => Ok(endpoint::unwrap(text, at, url)),
            Shape::Remote(Remote { parts: Ok(parts), url: Some(url), .. }) => remote::unwrap(text, parts, url),
            _ => Err("it is not protected: nothing to restore".into()),
        };
        match own {
            Ok(own) => {
                edits.extend(own);
                let (secrets, missing) = moved::put_back(&server.shape, known);
                edits.extend(secrets);
                new.back.extend(references);
                new.left.extend(missing);
                new.changed.push(id.clone());
            }
            Err(reason) => new.skipped.push(Skipped { id: id.clone(), reason }),
        }
    }
    new.text = splice(text, edits);
    new
}

/// The saved original, if the file is still what we wrote last and the original has nothing of ours in it.
fn original(env: &Env<'_>, file: &ConfigFile, source: &Source, journal: &Journal) -> Option<Vec<u8>> {
    let record = journal.of(&source.target).filter(|r| r.wrote == source.digest())?;
    let original = journal.original(env, record.original)?;
    wrapped_ids(file, &original).ok()?.is_empty().then_some(original)
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

/// Calls `each` with every string that looks like a secret.
fn secrets(text: &str, syntax: Syntax, rules: Interpolation, mut each: impl FnMut(Span)) -> Result<(), SyntaxError> {
    let mut before: Option<(Option<String>, String)> = None;
    document::strings(text, syntax, |key, span, value| {
        let flag = before.as_ref().filter(|(k, _)| k.as_deref() == key).map(|(_, v)| v.as_str());
        let shown = [flag.unwrap_or_default(), value];
        // The name of a header that became a variable said more than that of the variable.
        let header = key.is_some_and(|k| k.starts_with(VARIABLE)) && SecretRef::read(value).is_none();
        if header || secret::in_clear(rules, key, value) || secret::arg_in_clear(rules, &shown, 1) {
            each(span);
        }
        before = Some((key.map(str::to_owned), value.to_owned()));
    })
}

/// The text with the values that look like secrets left out.
fn masked(text: &str, syntax: Syntax, rules: Interpolation) -> String {
    let mut edits = Vec::new();
    // A text that cannot be parsed does not get here; if it did, nothing of it would be shown.
    let seen = secrets(text, syntax, rules, |span| edits.push((span, format!("\"{HIDDEN}\""))));
    if seen.is_err() { String::new() } else { splice(text, edits) }
}

impl ConfigFile {
    /// Whether a text of this file holds what looks like a secret, anywhere.
    pub(crate) fn has_secret(&self, text: &str, rules: Interpolation) -> bool {
        let mut any = false;
        secrets(text, self.syntax, rules, |_| any = true).is_err() || any
    }
}

impl Rewritten {
    pub(crate) fn digest(&self) -> Digest {
        Digest::of(&self.bytes)
    }
}
