//! Definitions that are kept from agents, and about which the user has not decided yet.

use std::{collections::BTreeMap, rc::Rc};

use firedoor_ipc::command;
use firedoor_model::{Confidence, EntryId, Finding, Severity, Untrusted};
use firedoor_store::{PinKey, PinKind, PinState};

use crate::engine::Engine;

/// Most that are shown; the rest is in `firedoor pins list`.
const MOST: usize = 500;
/// Most bytes of one of them, and of all together, as they are sent to a desktop. What is larger is still kept from agents.
const LARGE: usize = 64 << 10;
const ALL: usize = 1 << 20;

/// Bytes that something takes on the wire.
fn size(withheld: &command::Withheld) -> usize {
    serde_json::to_vec(withheld).map_or(usize::MAX, |bytes| bytes.len())
}

/// What a change is, when nothing else was found in it.
fn changed(first: bool) -> Finding {
    Finding {
        detector: "definition/changed".into(),
        severity: Severity::Medium,
        confidence: Confidence::Certain,
        summary: if first {
            "The definition is new, and was held back at its first sight.".into()
        } else {
            "The definition is not the one that was pinned when it was first seen or last accepted.".into()
        },
        evidence: Vec::new(),
    }
}

/// Why a call of something that is held back is refused, for its row in the log.
pub fn waits() -> Finding {
    let summary =
        "It is held back: its definition is new or has changed, and waits to be accepted (`firedoor pins diff`).";
    Finding { summary: summary.into(), ..changed(false) }
}

impl Engine {
    /// A server has shown definitions of one kind, and some of them are held back. `found` says of which names, and what was
    /// found in each.
    pub async fn withhold(self: &Rc<Self>, entry: &EntryId, kind: PinKind, found: BTreeMap<Untrusted, Vec<Finding>>) {
        let of = entry.clone();
        let pins = match self.recorder.with(move |store| store.pins(Some(&of))).await {
            Ok(pins) => pins,
            Err(e) => return self.problem(format!("what changed of {entry} cannot be shown: {e}")),
        };
        let mut open = self.withheld.borrow_mut();
        let mut all = open.values().map(size).fold(0, usize::saturating_add);
        for pin in pins.into_iter().filter(|pin| pin.key.kind == kind) {
            let PinState::Changed { to, since } = pin.state else { continue };
            let Some(findings) = found.get(&pin.key.name) else { continue };
            if pin.kept == Some(to.whole) {
                open.remove(&pin.key);
                continue;
            }
            let known = open.remove(&pin.key);
            all -= known.as_ref().map_or(0, size);
            let before = known.filter(|before| before.seen == to.whole).map(|before| before.findings);
            if open.len() >= MOST {
                continue;
            }
            // What was found when this change was first seen is not found again when it was changed back.
            let mut findings = if findings.is_empty() { before.unwrap_or_default() } else { findings.clone() };
            if findings.is_empty() {
                findings.push(changed(pin.accepted.fields.is_empty()));
            }
            let mut withheld = command::Withheld {
                entry: pin.key.entry.clone(),
                kind: pin.key.kind.word().to_owned(),
                name: pin.key.name.clone(),
                seen: to.whole,
                since,
                findings,
            };
            if size(&withheld) > LARGE {
                withheld.findings = vec![changed(pin.accepted.fields.is_empty())];
            }
            let more = size(&withheld);
            if more > LARGE || all.saturating_add(more) > ALL {
                continue;
            }
            all += more;
            open.insert(pin.key, withheld);
        }
        drop(open);
        self.changed();
    }

    /// The user has decided about a definition.
    pub fn decided(&self, key: &PinKey) {
        if self.withheld.borrow_mut().remove(key).is_some() {
            self.changed();
        }
    }
}
