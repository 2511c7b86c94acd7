//! What a server says of one of its tools, prompts or resources, or of itself.

use firedoor_model::{
    Confidence, Evidence, Finding, Severity,
    finding::Role,
    wire::{Leaves, Object, pointer},
};

use super::{Allowance, MIN_KEY, MIN_LEAF, Sight, phrases::Place, unread};
use crate::Inspector;

/// Longest text of one definition that is read, in bytes.
const MAX_DEFINITION: usize = 256 * 1024;

impl Inspector {
    /// Judges one definition: an element of a list, or the whole result of a handshake. What is found says nothing yet
    /// about its being new.
    pub fn definition(&self, raw: &str) -> Vec<Finding> {
        let object = Object::parse(raw);
        let name = object.as_ref().and_then(|o| o.get("name")).and_then(firedoor_model::wire::unescape);
        let at = || Evidence {
            role: Role::Place,
            entry: None,
            tool: name.as_deref().map(Into::into),
            pointer: "".into(),
            span: None,
            excerpt: "".into(),
            transform: None,
            age_ms: None,
        };
        let (text, starts) = joined(raw, 0);
        let mut allowance = Allowance::default();
        let sight = self.injections.look(&text, Place::Definitions, true, &mut allowance).sight;
        let placed = |mut sight: Sight, text: &str, starts: &[(usize, usize)]| {
            let next = starts.partition_point(|(start, _)| *start <= sight.span.0);
            let (start, offset) = next.checked_sub(1).and_then(|n| starts.get(n)).copied().unwrap_or_default();
            // The end of the text around a phrase may stand in the next string.
            let end = starts.get(next).map_or(text.len(), |(start, _)| *start).saturating_sub(2);
            sight.span = (sight.span.0 - start, sight.span.1.clamp(sight.span.0.min(end), end) - start);
            let pointer = pointer(raw, offset).as_str().into();
            sight.finding(Place::Definitions, Evidence { pointer, ..at() })
        };
        let mut out = Vec::new();
        let likely = sight.as_ref().is_some_and(Sight::certain_enough);
        // The network has learnt from strings that say something, without names and types between them.
        let (said, said_starts) = if likely { Default::default() } else { joined(raw, MIN_LEAF) };
        match self.injections.second(&said).filter(|_| !likely) {
            Some(second) => out.push(placed(second, &said, &said_starts)),
            None => out.extend(sight.map(|sight| placed(sight, &text, &starts))),
        }
        if hides(&text) {
            out.push(Finding {
                detector: "definition/hidden-text".into(),
                severity: Severity::High,
                confidence: Confidence::Likely,
                summary: "The definition holds characters that nothing shows, or that change what is shown.".into(),
                evidence: vec![at()],
            });
        }
        if allowance.short() {
            out.push(unread(Place::Definitions, at()));
        }
        out.extend(self.capabilities.judge(raw));
        out
    }
}

/// The strings of a definition that have so many bytes, as one text, and where each begins, in it and in `raw`.
fn joined(raw: &str, least: usize) -> (String, Vec<(usize, usize)>) {
    let (mut text, mut starts) = (String::new(), Vec::new());
    for leaf in Leaves::of(raw).filter(|l| l.text.len() >= if l.key { MIN_KEY } else { least }) {
        if text.len() + leaf.text.len() > MAX_DEFINITION {
            break;
        }
        starts.push((text.len(), leaf.span.0));
        text.push_str(&leaf.text);
        text.push_str("\n ");
    }
    (text, starts)
}

/// Whether a definition holds terminal sequences, bidirectional overrides, an invisible character behind an ASCII letter, or many
/// soft hyphens. What stands at the end of a line was copied along with it.
fn hides(text: &str) -> bool {
    let mut before = ' ';
    let mut hyphens = 0usize;
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        if matches!(c, '\u{1b}' | '\u{202D}' | '\u{202E}') {
            return true;
        }
        let inside = before.is_ascii_alphanumeric() && chars.peek().is_some_and(|next| *next != '\n');
        match c {
            '\u{200B}'..='\u{200D}' | '\u{2060}'..='\u{2064}' | '\u{FEFF}' if inside => return true,
            '\u{AD}' => hyphens += usize::from(inside),
            _ => {}
        }
        before = c;
    }
    hyphens >= 6
}
