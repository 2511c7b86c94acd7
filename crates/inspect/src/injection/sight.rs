//! What is told of an instruction that was seen.

use firedoor_model::{Confidence, Evidence, Finding, Severity};

use super::{layers::Concealment, phrases::Place};
use crate::{
    orders::{Given, NEAR, around},
    privacy::SourceWords,
};

/// Characters of the text that are shown.
const SHOWN: usize = 160;

/// An instruction that was seen.
#[derive(Debug)]
pub(crate) struct Sight {
    pub(super) confidence: Confidence,
    pub(super) severity: Severity,
    pub(super) how: Concealment,
    pub(super) transform: Option<String>,
    pub(super) says: Option<String>,
    pub(super) excerpt: String,
    /// Where in the text, its JSON escapes undone.
    pub(super) span: (usize, usize),
    pub(super) score: f32,
    /// It is an attack that the text tells of.
    pub(super) told: bool,
    /// In plain sight it asks for what people ask each other for, and has nothing else but the model's word against it.
    pub(super) request: bool,
}

impl Sight {
    /// Whether it may be acted on.
    pub(crate) fn certain_enough(&self) -> bool {
        self.confidence >= Confidence::Likely
    }

    pub(crate) fn excerpt(&self) -> &str {
        &self.excerpt
    }

    /// How a text gave it, if it may be followed. Mails and tickets are full of requests that the agent is to answer: whom they name is known
    /// as a hint.
    pub(crate) fn given<'t>(&self, text: &'t str, words: &SourceWords) -> Option<Given<'t>> {
        let hidden = || self.how > Concealment::Customary || self.transform.is_some();
        match self.certain_enough() {
            true if self.request => None,
            true if hidden() || words.means_another(&around(text, self.span, NEAR)) => Some(Given::Hidden),
            true => Some(Given::Plain(text, self.span)),
            false => self.told.then_some(Given::Told(text, self.span)),
        }
    }

    /// The finding about it, with one piece of evidence.
    pub(crate) fn finding(self, place: Place, at: Evidence) -> Finding {
        let hidden = self.how > Concealment::Customary;
        let detector = match (place, hidden) {
            (Place::Results, false) => "result/injection",
            (Place::Results, true) => "result/hidden-injection",
            (Place::Definitions, false) => "definition/injection",
            (Place::Definitions, true) => "definition/hidden-injection",
        };
        let plain = match (place, hidden) {
            (Place::Results, false) => "The result reads like instructions to the agent.",
            (Place::Results, true) => "The result hides instructions to the agent.",
            (Place::Definitions, false) => "The definition reads like instructions to the agent.",
            (Place::Definitions, true) => "The definition hides instructions to the agent.",
        };
        Finding {
            detector: detector.into(),
            severity: self.severity,
            confidence: self.confidence,
            summary: self.says.unwrap_or_else(|| plain.to_owned()),
            evidence: vec![Evidence {
                excerpt: self.excerpt.as_str().into(),
                span: Some(self.span),
                transform: self.transform.map(Into::into),
                ..at
            }],
        }
    }
}

/// Something was left unread for want of allowance.
pub(crate) fn unread(place: Place, at: Evidence) -> Finding {
    let (detector, summary) = match place {
        Place::Results => {
            ("result/unread", "The result holds more hidden texts, or more words of orders, than are looked into.")
        }
        Place::Definitions => (
            "definition/unread",
            "The definition holds more hidden texts, or more words of orders, than are looked into.",
        ),
    };
    Finding {
        detector: detector.into(),
        severity: Severity::Medium,
        confidence: Confidence::Possible,
        summary: summary.into(),
        evidence: vec![at],
    }
}

/// What is shown of a normalized text from `span` on: whole words, at most [`SHOWN`] characters, without what could be a
/// credential. A word is judged as it stands in the text: a part of a credential is too short to look like one.
pub(crate) fn excerpt(normal: &str, span: (usize, usize)) -> String {
    let at = normal.floor_char_boundary(span.0);
    let (before, _) = normal.split_at(at);
    let from = before.rfind(' ').map_or(0, |space| space + 1);
    let secret = |w: &str| w.len() >= 12 && w.bytes().any(|b| b.is_ascii_digit()) || w.len() > 40;
    let mut out = String::new();
    let mut left = SHOWN;
    for word in normal.get(from..).unwrap_or_default().split(' ') {
        let word = if secret(word) { "••••" } else { word };
        let takes = word.chars().count() + usize::from(!out.is_empty());
        let Some(rest) = left.checked_sub(takes) else { break };
        left = rest;
        if !out.is_empty() {
            out.push(' ');
        }
        out.push_str(word);
    }
    out
}
