//! When the network is asked for its opinion, and what its word is worth.

use serde::Deserialize;

use super::{
    model::Best,
    network::{self, Answer, Judged},
};

/// Shortest result, and shortest definition, that the network is asked about: it takes some that are one plain sentence for orders.
pub(super) const MIN_RESULT: usize = 160;
pub(super) const MIN_DEFINITION: usize = 100;
/// Longest result of which it is asked where the linear model says little, too.
pub(super) const MAX_CLOSELY: usize = 32 * 1024;
/// Longest definition, in bytes, that is read as a whole. Of a longer one only the likeliest window by the linear model is, with some
/// text around it: what a server sends must not cost more than that.
const WHOLE: usize = 16 * 1024;
const AROUND: usize = 2 * 1024;
/// Bytes on either side of what the linear model found in a result: a judgement costs a millisecond, and many honest results come near.
const BESIDE: usize = 300;
/// And the most of them together, where rows of one sign were left out of what it saw.
const PART: usize = 2 * 1024;

/// Most of the linear model's log-odds that counts beside the network's.
const COUNTED: f32 = 2.0;

/// `[network]` of `profiles/detect/injection.toml`.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Bounds {
    /// The network's log-odds from which a definition is taken for an instruction, with a part of the linear model's added.
    definition: f32,
    definition_part: f32,
    /// The linear model's log-odds from which the network is asked about a definition.
    pub(super) definition_from: f32,
    /// The same of a part of a result.
    result: f32,
    result_part: f32,
    /// And from which it is asked about that part.
    pub(super) result_from: f32,
    /// What more is needed in another language than English.
    result_foreign: f32,
    /// The network's log-odds below which what the linear model or a phrase takes for an order in a result is none, and how far above its
    /// own threshold that may be.
    doubt: f32,
    pub(super) doubt_to: f32,
}

impl Bounds {
    /// The window of a normalised definition that the network takes for an instruction. `best` is what the linear model found in it.
    pub(super) fn judge(&self, text: &str, best: Best) -> Option<Judged> {
        let (from, to) = match text.len() <= WHOLE {
            true => (0, text.len()),
            false => (best.span.0.saturating_sub(AROUND), text.len().min(best.span.1.saturating_add(AROUND))),
        };
        let from = text.floor_char_boundary(from);
        let part = text.get(from..text.floor_char_boundary(to))?;
        judged(part, Answer::Definition, from, self.definition - self.definition_part * counted(best))
    }

    /// The part of a normalised result around what the linear model found in it, if the network takes it for an instruction, and how far
    /// above the bound it is.
    pub(super) fn judge_result(&self, text: &str, best: Best, foreign: bool) -> Option<(Judged, f32)> {
        let (from, part) = beside(text, best.span)?;
        let more = if foreign { self.result_foreign } else { 0.0 };
        let bound = self.result + more - self.result_part * counted(best);
        let judged = judged(part, Answer::Result, from, bound)?;
        Some((judged, judged.score - bound))
    }

    /// The part of a normalised result around a place, if it sees nothing like an order there.
    pub(super) fn doubts(&self, text: &str, span: (usize, usize)) -> Option<(usize, usize)> {
        let (from, part) = beside(text, span)?;
        let to = from + part.len();
        // What it was not shown it cannot doubt.
        let judged = network::shipped()?.best(part, Answer::Result).filter(|_| span.1 <= to)?;
        (judged.score < self.doubt).then_some((from, to))
    }
}

/// The text around a place, and where it begins.
fn beside(text: &str, span: (usize, usize)) -> Option<(usize, &str)> {
    let from = text.floor_char_boundary(span.0.saturating_sub(BESIDE));
    let to = span.1.saturating_add(BESIDE).min(from.saturating_add(PART));
    Some((from, text.get(from..text.floor_char_boundary(text.len().min(to)))?))
}

/// What of the linear model's log-odds counts.
fn counted(best: Best) -> f32 {
    best.score.min(COUNTED)
}

/// The window of `part`, which begins at `from`, that the network gives so much.
fn judged(part: &str, answer: Answer, from: usize, bound: f32) -> Option<Judged> {
    let judged = network::shipped()?.best(part, answer).filter(|judged| judged.score >= bound)?;
    Some(Judged { span: (judged.span.0 + from, judged.span.1 + from), ..judged })
}
