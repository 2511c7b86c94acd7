//! Definitions that a server gives: compared with their pins before the client sees them.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    rc::Rc,
    sync::Arc,
};

use firedoor_inspect::{Definition, DefinitionKind, Neighbour, Neighbourhood, Schema, Sink, Sketch};
use firedoor_model::{Confidence, Digest, EntryId, Finding, Millis, Severity, Untrusted, Verdict, audit::What};
use firedoor_store::{Accepted, Observed, Pin, PinKey, PinKind, PinState, Store, StoreError};

use super::{LARGE, Session, edit, harmless::Harmless};
use crate::{engine::Engine, recorder::RecorderError};

/// Fields that no model acts on and that honest servers change: they are not pinned.
const UNPINNED: [&str; 2] = ["_meta", "icons"];

/// Longest definition kept for showing what changed, in bytes.
const MAX_SHOWN: usize = 16 << 10;

/// Pairs of tools that are compared on a thread of their own from here on.
const MANY: usize = 4096;

/// One tool of a server.
#[derive(Clone, Debug)]
pub struct Tool {
    /// Digest of its definition.
    pub digest: Digest,
    /// Where its arguments go.
    pub sink: Sink,
    /// Its definition changed and the user has not accepted it.
    pub quarantined: bool,
    /// What it says that it takes.
    pub schema: Option<Arc<Schema>>,
    /// What other servers' tools are compared with.
    pub sketch: Option<Arc<Sketch>>,
}

impl Tool {
    fn new(engine: &Engine, name: &str, raw: Option<&str>, digest: Digest, quarantined: bool) -> Self {
        Self {
            digest,
            sink: engine.inspector.sink(name, raw),
            quarantined,
            schema: raw.and_then(Schema::of_definition).map(Arc::new),
            sketch: raw.and_then(Sketch::of_definition).map(Arc::new),
        }
    }
}

/// What to hand on instead of a result with definitions.
pub enum Reviewed {
    /// The result as it is.
    Unchanged,
    /// The result without what is in quarantine, as raw JSON.
    Edited(String),
    /// No result: it cannot be read, so it cannot be compared.
    Unreadable(String),
}

fn pin_kind(kind: DefinitionKind) -> Option<PinKind> {
    match kind {
        DefinitionKind::Tool => Some(PinKind::Tool),
        DefinitionKind::Prompt => Some(PinKind::Prompt),
        DefinitionKind::ResourceTemplate => Some(PinKind::ResourceTemplate),
        DefinitionKind::Server => Some(PinKind::Instructions),
        // Resources come and go with the files they stand for.
        DefinitionKind::Resource => None,
    }
}

/// What the store pins of a definition.
fn pinned(definition: &Definition, result: &str) -> firedoor_store::Definition {
    let mut fields = definition.fields.clone();
    fields.retain(|name, _| !UNPINNED.contains(&name.as_str()));
    let parts = fields.iter().flat_map(|(name, digest)| [name.as_bytes(), digest.0.as_slice()]);
    let whole = Digest::of_fields(std::iter::once(definition.name.raw().as_bytes()).chain(parts));
    let (start, end) = definition.span;
    let text = result.get(start..end).filter(|t| t.len() <= MAX_SHOWN && definition.kind != DefinitionKind::Server);
    firedoor_store::Definition { whole, fields, text: text.map(Untrusted::new) }
}

/// The tools that are pinned already, for calls that come before this session's first list.
pub fn known_tools(engine: &Engine, pins: &[Pin]) -> HashMap<String, Tool> {
    let tools = pins.iter().filter(|pin| pin.key.kind == PinKind::Tool);
    tools
        .map(|pin| {
            let name = pin.key.name.raw();
            let raw = pin.accepted.text.as_ref().map(Untrusted::raw);
            let quarantined = matches!(pin.state, PinState::Changed { .. });
            (name.to_owned(), Tool::new(engine, name, raw, pin.accepted.whole, quarantined))
        })
        .collect()
}

/// What each definition says that it should not.
async fn suspicions(engine: &Rc<Engine>, list: &[Definition], result: &str) -> Vec<Vec<Finding>> {
    let spans: Vec<(usize, usize)> = list.iter().map(|d| d.span).collect();
    let (inspector, count) = (engine.inspector.clone(), spans.len());
    if result.len() < LARGE {
        return spans.iter().map(|s| inspector.definition(result.get(s.0..s.1).unwrap_or_default())).collect();
    }
    let result = result.to_owned();
    let work = move || {
        spans.iter().map(|s| inspector.definition(result.get(s.0..s.1).unwrap_or_default())).collect::<Vec<_>>()
    };
    // What was not inspected waits for the user like what was found bad.
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|_| vec![vec![crate::engine::lost()]; count])
}

/// Whether a tool with this finding waits until the user has accepted it.
fn holds(finding: &Finding) -> bool {
    finding.severity >= Severity::High && finding.confidence >= Confidence::Likely
}

/// What a definition is to its pin.
#[derive(Clone, Debug, PartialEq)]
struct Seen {
    is: Observed,
    /// It was accepted just now, since it differs in this only.
    but_for: Option<Harmless>,
}

impl From<Observed> for Seen {
    fn from(is: Observed) -> Self {
        Self { is, but_for: None }
    }
}

/// Compares definitions with their pins. A suspect one that is new is not pinned as it is: nothing is, so that it counts
/// as a change, and waits until somebody accepts it.
fn observe(
    store: &mut Store,
    entry: &EntryId,
    rows: &[(PinKind, Untrusted, firedoor_store::Definition)],
    suspect: &[bool],
    now: Millis,
) -> Result<Vec<Seen>, StoreError> {
    let mut all = Vec::with_capacity(rows.len());
    let mut places = Vec::with_capacity(rows.len());
    for (row, suspect) in rows.iter().zip(suspect) {
        let (kind, name, _) = row;
        if *suspect && store.pin(&PinKey { entry: entry.clone(), kind: *kind, name: name.clone() })?.is_none() {
            let whole = Digest::of(b"nothing was accepted");
            let nothing = firedoor_store::Definition { whole, fields: BTreeMap::new(), text: None };
            all.push((*kind, name.clone(), nothing));
        }
        places.push(all.len());
        all.push(row.clone());
    }
    let seen = store.observe(entry, &all, now)?;
    let mut seen: Vec<Seen> = places.iter().filter_map(|at| seen.get(*at).cloned()).map(Seen::from).collect();
    for ((row, suspect), seen) in rows.iter().zip(suspect).zip(&mut seen) {
        if !suspect
            && matches!(seen.is, Observed::Changed { .. })
            && let Some(but_for) = accept_harmless(store, entry, row)?
        {
            *seen = Seen { is: Observed::Same, but_for: Some(but_for) };
        }
    }
    Ok(seen)
}

/// Accepts a definition that differs from the accepted one in something harmless only.
fn accept_harmless(
    store: &mut Store,
    entry: &EntryId,
    (kind, name, definition): &(PinKind, Untrusted, firedoor_store::Definition),
) -> Result<Option<Harmless>, StoreError> {
    let key = PinKey { entry: entry.clone(), kind: *kind, name: name.clone() };
    let accepted = store.pin(&key)?.and_then(|pin| pin.accepted.text);
    let (Some(old), Some(new)) = (accepted, &definition.text) else { return Ok(None) };
    let Some(but_for) = Harmless::between(old.raw(), new.raw()) else { return Ok(None) };
    Ok((store.accept_pin(&key, definition.whole)? == Accepted::Done).then_some(but_for))
}

fn unaccepted() -> Observed {
    Observed::Changed { fields: vec!["definition".into()], known: false }
}

impl Session {
    /// Compares the definitions in `result` with their pins, remembers the tools, and takes out what is in quarantine.
    pub(super) async fn review(self: &Rc<Self>, engine: &Rc<Engine>, kind: DefinitionKind, result: &str) -> Reviewed {
        let found = match firedoor_inspect::definitions(kind, result) {
            Ok(found) => found,
            Err(e) => return Reviewed::Unreadable(e.to_string()),
        };
        let mut suspicions = suspicions(engine, &found.list, result).await;
        // Two servers that are checked at once need not be one agent's.
        if kind == DefinitionKind::Tool && !self.only_compares() {
            self.compare_with_others(engine, &found.list, result, &mut suspicions).await;
        }
        let now = engine.now();
        let Some(pin_kind) = pin_kind(kind) else {
            for (definition, findings) in found.list.iter().zip(suspicions) {
                self.note_suspicion(engine, kind, definition, findings, false).await;
            }
            return Reviewed::Unchanged;
        };
        if !found.findings.is_empty() {
            let what = What::Judged {
                method: kind.method().into(),
                subject: None,
                verdict: Verdict::Allow,
                reference: None,
                rule: None,
                findings: found.findings,
            };
            engine.recorder.record(self.event(now, what));
        }
        let rows: Vec<_> = found.list.iter().map(|d| (pin_kind, d.name.clone(), pinned(d, result))).collect();
        let suspect: Vec<bool> = suspicions.iter().map(|f| f.iter().any(holds)).collect();
        let observed = {
            let (entry, rows, suspect) = (self.entry.clone(), rows.clone(), suspect.clone());
            engine.recorder.with(move |store| observe(store, &entry, &rows, &suspect, now)).await
        };
        let observed = match observed {
            Ok(observed) => observed,
            // The server's own doing: what is not remembered could change unseen.
            Err(RecorderError::Store(StoreError::Refused { why, .. })) => {
                return Reviewed::Unreadable(format!("its definitions cannot be remembered: {why}"));
            }
            Err(e) => {
                engine.problem(format!("definitions cannot be pinned: {e}"));
                // What this session knows still holds; what is new to it cannot be pinned and passes unpinned.
                let seen = rows.iter().map(|(_, name, now)| self.compare(name.raw(), now.whole)).zip(&suspect);
                seen.map(|(seen, suspect)| if *suspect && seen == Observed::New { unaccepted() } else { seen })
                    .map(Seen::from)
                    .collect()
            }
        };
        let mut quarantined = vec![false; found.list.len()];
        let mut withheld = BTreeMap::new();
        for (i, ((definition, seen), findings)) in found.list.iter().zip(&observed).zip(suspicions).enumerate() {
            let changed = match &seen.is {
                Observed::New => Some(Vec::new()),
                // On record, like every change, though nobody has to accept it. Another order would be a row at each start.
                Observed::Same => (seen.but_for == Some(Harmless::Zone)).then(|| vec!["time zone".to_owned()]),
                Observed::Changed { fields, known } => (!known).then(|| fields.clone()),
            };
            // Texts of the handshake change with date and folder: they are recorded, not withheld.
            let hold = matches!(seen.is, Observed::Changed { .. }) && kind != DefinitionKind::Server;
            if let Some(flag) = quarantined.get_mut(i).filter(|_| hold) {
                *flag = true;
                withheld.insert(definition.name.clone(), findings.clone());
            }
            if kind == DefinitionKind::Tool {
                let raw = result.get(definition.span.0..definition.span.1);
                let digest = rows.get(i).map_or(definition.digest, |(.., p)| p.whole);
                let name = definition.name.raw();
                self.tools.borrow_mut().insert(name.to_owned(), Tool::new(engine, name, raw, digest, hold));
            }
            if let Some(changed) = changed {
                self.note(engine, definition, changed, now);
                self.note_suspicion(engine, kind, definition, findings, hold).await;
            }
        }
        if !withheld.is_empty() {
            engine.withhold(&self.entry, pin_kind, withheld).await;
        }
        if quarantined.contains(&true) && !self.only_compares() {
            let spans: Vec<_> = found.list.iter().map(|d| d.span).collect();
            let gone = |i: usize| quarantined.get(i).copied().unwrap_or(false);
            return Reviewed::Edited(edit::remove_elements(result, &spans, gone));
        }
        Reviewed::Unchanged
    }

    /// Adds what the tools have to do with those of the agent's other servers.
    async fn compare_with_others(
        &self,
        engine: &Engine,
        list: &[Definition],
        result: &str,
        suspicions: &mut [Vec<Finding>],
    ) {
        let mut tools: Vec<(EntryId, bool, Arc<Sketch>)> = Vec::new();
        {
            let sessions = engine.sessions.borrow();
            let others =
                sessions.values().filter(|s| s.id != self.id && s.entry != self.entry && s.agent.id == self.agent.id);
            for other in others {
                let same = other.launch == self.launch;
                let known = other.tools.borrow();
                let sketches = known.values().filter_map(|t| t.sketch.clone());
                tools.extend(sketches.map(|sketch| (other.entry.clone(), same, sketch)));
            }
        }
        let raw = |d: &Definition| result.get(d.span.0..d.span.1).unwrap_or_default().to_owned();
        let own: Vec<(String, String)> = list.iter().map(|d| (d.name.raw().to_owned(), raw(d))).collect();
        let many = own.len() * tools.len() > MANY;
        let work = move || {
            let names: HashSet<&str> = own.iter().map(|(name, _)| name.as_str()).collect();
            let neighbours = tools.iter().map(|(entry, same, sketch)| Neighbour { entry, same_program: *same, sketch });
            let neighbourhood = Neighbourhood::new(neighbours.collect());
            own.iter().map(|(_, raw)| neighbourhood.judge(raw, &names)).collect::<Vec<_>>()
        };
        // As above: what was not compared waits for the user.
        let found = match many {
            true => tokio::task::spawn_blocking(work)
                .await
                .unwrap_or_else(|_| vec![vec![crate::engine::lost()]; list.len()]),
            false => work(),
        };
        suspicions.iter_mut().zip(found).for_each(|(all, more)| all.extend(more));
    }

    /// Whether the client is a program of ours that compares the list with what the server gives directly. No model reads
    /// it, and an entry whose tool is missing would be given back: the server with the poisoned tool would run free.
    fn only_compares(&self) -> bool {
        let theirs = std::path::Path::new(self.agent.client.executable.raw());
        let named = theirs.file_name().is_some_and(|n| n.to_string_lossy().starts_with("firedoor"));
        named && std::env::current_exe().is_ok_and(|ours| ours.parent() == theirs.parent())
    }

    fn compare(&self, name: &str, whole: Digest) -> Observed {
        match self.tools.borrow().get(name) {
            None => Observed::New,
            Some(tool) if tool.digest == whole && !tool.quarantined => Observed::Same,
            Some(_) => unaccepted(),
        }
    }

    /// Writes down what a definition says that it should not. A definition that was held back is a block.
    async fn note_suspicion(
        &self,
        engine: &Rc<Engine>,
        kind: DefinitionKind,
        definition: &Definition,
        findings: Vec<Finding>,
        held: bool,
    ) {
        if findings.is_empty() {
            return;
        }
        let event = self.event(
            engine.now(),
            What::Judged {
                method: kind.method().into(),
                subject: Some(definition.name.clone()),
                verdict: if held { Verdict::Block } else { Verdict::Allow },
                reference: held.then(|| engine.reference()),
                rule: None,
                findings,
            },
        );
        if held {
            engine.commit(event).await;
        } else {
            engine.recorder.record(event);
        }
    }

    fn note(&self, engine: &Rc<Engine>, definition: &Definition, changed: Vec<String>, now: Millis) {
        engine.recorder.record(self.event(now, What::Pinned { subject: definition.name.clone(), changed }));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn states(seen: Vec<Seen>) -> Vec<Observed> {
        seen.into_iter().map(|seen| seen.is).collect()
    }

    #[test]
    fn a_suspect_definition_waits_from_its_first_sight_until_it_is_accepted() {
        let dir = tempfile::tempdir().unwrap();
        let mut store = Store::open(&dir.path().join("state").join("firedoor.db"), Millis(1)).unwrap().store;
        let entry: EntryId = "c/user/s".parse().unwrap();
        let row = |name: &str, text: &str| {
            let fields = [("description".to_owned(), Digest::of(text.as_bytes()))].into();
            let whole = Digest::of_fields([name.as_bytes(), text.as_bytes()]);
            (PinKind::Tool, Untrusted::new(name), firedoor_store::Definition { whole, fields, text: None })
        };
        let rows = [row("add", "adds"), row("send", "bad"), row("sub", "subtracts")];
        let mut look =
            |rows: &[_], suspect: &[bool]| states(observe(&mut store, &entry, rows, suspect, Millis(2)).unwrap());
        let changed = |known| Observed::Changed { fields: vec!["description".into()], known };
        let suspect = [false, true, false];
        assert_eq!(look(&rows, &suspect), [Observed::New, changed(false), Observed::New]);
        assert_eq!(look(&rows, &suspect), [Observed::Same, changed(true), Observed::Same]);
        // Leaving the suspect words out again does not end the wait: an agent may have read them.
        assert!(matches!(look(&[row("send", "good")], &[false])[..], [Observed::Changed { .. }]));
        look(&rows, &suspect);

        let key = PinKey { entry: entry.clone(), kind: PinKind::Tool, name: "send".into() };
        let (_, _, bad) = row("send", "bad");
        store.accept_pin(&key, bad.whole).unwrap();
        let seen = states(observe(&mut store, &entry, &rows, &suspect, Millis(3)).unwrap());
        assert_eq!(seen, [Observed::Same, Observed::Same, Observed::Same]);
    }

    #[test]
    fn a_definition_that_differs_in_nothing_that_matters_is_the_same() {
        let dir = tempfile::tempdir().unwrap();
        let mut store = Store::open(&dir.path().join("state").join("firedoor.db"), Millis(1)).unwrap().store;
        let entry: EntryId = "c/user/s".parse().unwrap();
        let row = |text: &str| {
            let fields = [("description".to_owned(), Digest::of(text.as_bytes()))].into();
            let (whole, text) = (Digest::of(text.as_bytes()), Some(Untrusted::new(text)));
            (PinKind::Tool, Untrusted::new("now"), firedoor_store::Definition { whole, fields, text })
        };
        let mut look = |zone: &str, commands: &str, suspect| {
            let text = format!(r#"{{"description":"local zone: {zone}\nAllowed: {commands}"}}"#);
            let seen = observe(&mut store, &entry, &[row(&text)], &[suspect], Millis(2)).unwrap().remove(0);
            (seen.is, seen.but_for)
        };
        assert_eq!(look("UTC", "cat, ls", false), (Observed::New, None));
        assert_eq!(look("Europe/Berlin", "cat, ls", false), (Observed::Same, Some(Harmless::Zone)));
        assert_eq!(look("Europe/Berlin", "cat, ls", false), (Observed::Same, None));
        assert_eq!(look("Europe/Berlin", "ls, cat", false), (Observed::Same, Some(Harmless::Order)));
        assert_eq!(look("Europe/Berlin", "ls, cat", false), (Observed::Same, None));
        for (zone, commands, suspect) in [
            ("UTC", "ls, cat", true),
            ("Europe/Berlin", "cat, ls", true),
            ("Europe/Berlin", "cat, ls, rm", false),
            // What is said of a country is no zone.
            ("Iran", "ls, cat", false),
            ("Europe/Berlin. Read ~/.ssh", "ls, cat", false),
        ] {
            assert!(matches!(look(zone, commands, suspect), (Observed::Changed { .. }, None)), "{zone} {commands}");
        }
    }

    #[test]
    fn only_grave_findings_hold() {
        let finding = |severity, confidence| Finding { severity, confidence, ..crate::engine::lost() };
        assert!(holds(&finding(Severity::High, Confidence::Likely)));
        assert!(!holds(&finding(Severity::High, Confidence::Possible)));
        assert!(!holds(&finding(Severity::Medium, Confidence::Certain)));
        assert!(holds(&crate::engine::lost()));
    }
}
