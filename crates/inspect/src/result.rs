//! What enters the agent's context: results, errors, prompts, resources, and requests of the server.

use std::sync::Arc;

use firedoor_model::{Evidence, Finding, Severity, finding::Role, wire::Leaves};

use crate::{
    DefinitionKind, Inspector, Source, evidence, fold,
    gravest::Gravest,
    in_leaf,
    injection::{self, Allowance, phrases::Place},
    memory::{Label, Memory, Origin},
    placeholder,
};

/// Shortest text that is remembered, folded. Anything shorter cannot match again.
const MIN_TEXT: usize = 32;
/// Longest text of one leaf that is remembered as ordinary.
const MAX_ORDINARY: usize = 64 * 1024;

/// Most ordinary text of one message that is remembered.
const MAX_MESSAGE: usize = 256 * 1024;

/// Pointers of one message. A long key may stand above many leaves, so all pointers together are bounded by its size.
struct Pointers {
    budget: usize,
}

impl Pointers {
    fn of(&mut self, leaves: &Leaves<'_>) -> Arc<str> {
        let pointer = leaves.pointer();
        match self.budget.checked_sub(pointer.len()) {
            Some(rest) => {
                self.budget = rest;
                pointer.into()
            }
            // The pointer of the whole message (RFC 6901: the empty string) is true for every place in it.
            None => "".into(),
        }
    }
}

impl Inspector {
    /// Judges what a server sends, and remembers it.
    pub fn result(&self, memory: &mut Memory, source: &Source<'_>, result: &str) -> Vec<Finding> {
        let origin = Arc::new(Origin::of(source));
        let mut pointers = Pointers { budget: result.len().saturating_mul(4).saturating_add(4096) };
        let label = if source.label.private { Label::Private } else { Label::Ordinary };
        let mut ordinary = MAX_MESSAGE;
        let defines = DefinitionKind::of_method(source.method).is_some();
        let (detector, summary) = if defines {
            ("definition/secret", "A definition holds a credential")
        } else {
            ("result/secret", "The result holds a credential")
        };
        let (mut secrets, mut told): (Gravest<Finding>, Gravest<Finding>) = Default::default();
        let mut folded: Vec<u8> = Vec::new();
        let mut allowance = Allowance::default();
        let mut unread = None;
        self.each_string(result, &mut |leaf, text, hits, words, leaves| {
            // Definitions are judged one by one, where they can be taken out: `Inspector::definition`.
            let (sight, private) = if !defines && injection::readable(leaf) {
                self.injections.look(&leaf.text, Place::Results, words.phrases, &mut allowance)
            } else {
                (None, false)
            };
            if allowance.short() && unread.is_none() {
                let place = pointers.of(leaves).to_string();
                let at = evidence(Role::Place, Some(source.entry), source.subject, place, b"");
                unread = Some(injection::unread(Place::Results, at));
            }
            if let Some(sight) = sight {
                let place = pointers.of(leaves);
                if sight.certain_enough() {
                    memory.note_injected(&origin, Arc::clone(&place), sight.excerpt());
                }
                let at = evidence(Role::Place, Some(source.entry), source.subject, place.to_string(), b"");
                told.push(sight.finding(Place::Results, at));
            }
            for hit in hits {
                let value = text.get(hit.span.0..hit.span.1).unwrap_or_default();
                let place = pointers.of(leaves);
                // A server may answer with the key that it was given.
                if !memory.gave(source.entry, &fold::folded(value)) {
                    memory.remember_secret(&origin, value, Arc::clone(&place), hit.generic);
                    memory.trifecta.read(&origin, true);
                }
                secrets.push(Finding {
                    detector: detector.into(),
                    severity: Severity::Low,
                    confidence: hit.confidence(),
                    summary: format!("{summary} ({}).", hit.rule),
                    evidence: vec![Evidence {
                        span: Some(in_leaf(hit.span, text.len(), leaf.text.len())),
                        ..evidence(Role::Place, Some(source.entry), source.subject, place.to_string(), value)
                    }],
                });
            }
            if placeholder::stands_in(&leaf.text) {
                told.push(placeholder::in_result(source, pointers.of(leaves).to_string()));
            }
            // What a server says about itself is told to everybody.
            if leaf.text.len() >= MIN_TEXT && !defines {
                let text = leaf.text.as_bytes();
                let label = if private { Label::Private } else { label };
                let longest = if label == Label::Private { usize::MAX } else { MAX_ORDINARY.min(ordinary) };
                folded.clear();
                fold::fold(text.get(..longest.min(text.len())).unwrap_or_default(), &mut folded);
                if folded.len() >= MIN_TEXT {
                    if label == Label::Ordinary {
                        ordinary -= folded.len();
                    }
                    memory.trifecta.read(&origin, label == Label::Private);
                    memory.remember_text(&origin, label, text, &folded, pointers.of(leaves));
                }
            }
        });
        let mut out = secrets.into_vec();
        out.extend(told.into_vec());
        out.extend(unread);
        self.mask_evidence(memory, &mut out);
        out
    }
}
