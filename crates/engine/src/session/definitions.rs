//! Definitions that a server gives: compared with their pins before the client sees them.

use std::{collections::HashMap, rc::Rc};

use firedoor_inspect::{Definition, DefinitionKind, Sink};
use firedoor_model::{Digest, Millis, Untrusted, Verdict, audit::What};
use firedoor_store::{Observed, Pin, PinKind, PinState};

use super::{Session, edit};
use crate::engine::Engine;

/// Fields that no model acts on and that honest servers change: they are not pinned.
const UNPINNED: [&str; 2] = ["_meta", "icons"];

/// Longest definition kept for showing what changed, in bytes.
const MAX_SHOWN: usize = 16 << 10;

/// One tool of a server.
#[derive(Clone, Debug)]
pub struct Tool {
    /// Digest of its definition.
    pub digest: Digest,
    /// Where its arguments go.
    pub sink: Sink,
    /// Its definition changed and the user has not accepted it.
    pub quarantined: bool,
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
            let sink = engine.inspector.sink(name, pin.accepted.text.as_ref().map(Untrusted::raw));
            let quarantined = matches!(pin.state, PinState::Changed { .. });
            (name.to_owned(), Tool { digest: pin.accepted.whole, sink, quarantined })
        })
        .collect()
}

impl Session {
    /// Compares the definitions in `result` with their pins, remembers the tools, and takes out what is in quarantine.
    pub(super) async fn review(self: &Rc<Self>, engine: &Rc<Engine>, kind: DefinitionKind, result: &str) -> Reviewed {
        let found = match firedoor_inspect::definitions(kind, result) {
            Ok(found) => found,
            Err(e) => return Reviewed::Unreadable(e.to_string()),
        };
        let Some(pin_kind) = pin_kind(kind) else { return Reviewed::Unchanged };
        let now = engine.now();
        if !found.findings.is_empty() {
            let what = What::Judged {
                method: "tools/list".into(),
                subject: None,
                verdict: Verdict::Allow,
                reference: None,
                findings: found.findings,
            };
            engine.recorder.record(self.event(now, what));
        }
        let rows: Vec<_> = found.list.iter().map(|d| (pin_kind, d.name.clone(), pinned(d, result))).collect();
        let observed = {
            let (entry, rows) = (self.entry.clone(), rows.clone());
            engine.recorder.with(move |store| store.observe(&entry, &rows, now)).await
        };
        let observed = match observed {
            Ok(observed) => observed,
            Err(e) => {
                engine.problem(format!("definitions cannot be pinned: {e}"));
                // What this session knows still holds; what is new to it cannot be pinned and passes unpinned.
                rows.iter().map(|(_, name, now)| self.compare(name.raw(), now.whole)).collect()
            }
        };
        let mut quarantined = vec![false; found.list.len()];
        for (i, (definition, seen)) in found.list.iter().zip(&observed).enumerate() {
            let changed = match seen {
                Observed::New => Some(Vec::new()),
                Observed::Same => None,
                Observed::Changed { fields, known } => (!known).then(|| fields.clone()),
            };
            // Texts of the handshake change with date and folder: they are recorded, not withheld.
            let hold = matches!(seen, Observed::Changed { .. }) && kind != DefinitionKind::Server;
            if let Some(flag) = quarantined.get_mut(i) {
                *flag = hold;
            }
            if kind == DefinitionKind::Tool {
                let raw = result.get(definition.span.0..definition.span.1);
                let sink = engine.inspector.sink(definition.name.raw(), raw);
                let digest = rows.get(i).map_or(definition.digest, |(.., p)| p.whole);
                self.tools
                    .borrow_mut()
                    .insert(definition.name.raw().to_owned(), Tool { digest, sink, quarantined: hold });
            }
            if let Some(changed) = changed {
                self.note(engine, definition, changed, now);
            }
        }
        if quarantined.contains(&true) {
            let spans: Vec<_> = found.list.iter().map(|d| d.span).collect();
            let gone = |i: usize| quarantined.get(i).copied().unwrap_or(false);
            return Reviewed::Edited(edit::remove_elements(result, &spans, gone));
        }
        Reviewed::Unchanged
    }

    fn compare(&self, name: &str, whole: Digest) -> Observed {
        match self.tools.borrow().get(name) {
            None => Observed::New,
            Some(tool) if tool.digest == whole && !tool.quarantined => Observed::Same,
            Some(_) => Observed::Changed { fields: vec!["definition".into()], known: false },
        }
    }

    fn note(&self, engine: &Rc<Engine>, definition: &Definition, changed: Vec<String>, now: Millis) {
        engine.recorder.record(self.event(now, What::Pinned { subject: definition.name.clone(), changed }));
    }
}
