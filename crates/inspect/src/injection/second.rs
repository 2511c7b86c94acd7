//! When the network is asked for its opinion, and what its word is worth.

use serde::Deserialize;

use super::{
    model::Best,
    network::{self, Answer, Judged},
    phrases::Place,
};

/// Longest text, in bytes, that is read as a whole. Of a longer one what the linear model finds most likely is, with some text
/// around it, and only where that comes near the threshold: large results must not wait for the network.
const WHOLE: usize = 8 * 1024;
/// Text around the likeliest window of a long text.
const AROUND: usize = 300;

/// What of the linear model's log-odds counts for a definition: one of them alone decides nothing.
const COUNTED: (f32, f32) = (-5.0, 2.0);

/// `[network]` of `profiles/detect/injection.toml`.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Bounds {
    /// The network's log-odds from which a result is taken for an instruction.
    result: f32,
    /// The same of a definition, with a part of the linear model's added.
    definition: f32,
    definition_part: f32,
    /// The linear model's log-odds from which the network is asked at all.
    result_from: f32,
    definition_from: f32,
}

impl Bounds {
    /// The linear model's log-odds from which the network is asked about a text. `near` is where a text begins to be looked at
    /// without it.
    pub(super) fn floor(&self, text: &str, place: Place, near: f32) -> f32 {
        match place {
            _ if text.len() > WHOLE && place == Place::Results => near,
            Place::Results => self.result_from,
            Place::Definitions => self.definition_from,
        }
    }

    /// The window of a normalised text that the network takes for an instruction. `best` is what the linear model found in it.
    pub(super) fn judge(&self, text: &str, place: Place, best: Best, near: f32) -> Option<Judged> {
        if best.score < self.floor(text, place, near) {
            return None;
        }
        let (from, to) = if text.len() > WHOLE && place == Place::Results {
            (best.span.0.saturating_sub(AROUND), text.len().min(best.span.1.saturating_add(AROUND)))
        } else {
            (0, text.len())
        };
        let from = text.floor_char_boundary(from);
        let part = text.get(from..text.floor_char_boundary(to))?;
        let (answer, bound) = match place {
            Place::Results => (Answer::Result, self.result),
            Place::Definitions => {
                let (least, most) = COUNTED;
                (Answer::Definition, self.definition - self.definition_part * best.score.clamp(least, most))
            }
        };
        let judged = network::shipped()?.best(part, answer).filter(|judged| judged.score >= bound)?;
        Some(Judged { span: (judged.span.0 + from, judged.span.1 + from), ..judged })
    }
}
