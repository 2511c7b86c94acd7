//! When the network is asked for its opinion, and what its word is worth.

use serde::Deserialize;

use super::{
    model::Best,
    network::{self, Answer, Judged},
    phrases::Place,
};

/// Longest message, in bytes, of which every text is read that the linear model comes near to. Of a longer one only the
/// likeliest window of a text is, with some text around it, and only where the linear model nearly decides: large results must
/// not wait for the network.
const SMALL: usize = 8 * 1024;
/// Bytes that are read of one message: of a small one with what is decoded of it, of a larger one.
const OF_SMALL: usize = 2 * SMALL;
const OF_LARGE: usize = 4 * 1024;
/// Text around the likeliest window of a long text.
const AROUND: usize = 300;

/// What the network may still read of a message.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Room {
    small: bool,
    bytes: usize,
}

impl Room {
    /// For a message of so many bytes.
    pub(crate) fn of(message: usize) -> Self {
        let small = message <= SMALL;
        Self { small, bytes: if small { OF_SMALL } else { OF_LARGE } }
    }

    /// For a definition of so many bytes: honest ones are read as a whole.
    pub(super) fn of_definition(bytes: usize) -> Self {
        let small = bytes <= OF_SMALL;
        Self { small, bytes: if small { OF_SMALL } else { OF_LARGE } }
    }

    /// Nothing.
    pub(super) const NONE: Self = Self { small: false, bytes: 0 };

    fn take(&mut self, bytes: usize) -> Option<()> {
        self.bytes = self.bytes.checked_sub(bytes)?;
        Some(())
    }
}

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
    /// The linear model's log-odds from which the network is asked. `near` is where a text begins to be looked at without it.
    pub(super) fn floor(&self, place: Place, room: Room, near: f32) -> f32 {
        match place {
            _ if room.bytes == 0 => f32::INFINITY,
            Place::Results if !room.small => near,
            Place::Results => self.result_from,
            Place::Definitions => self.definition_from,
        }
    }

    /// The window of a normalised text that the network takes for an instruction. `best` is what the linear model found in it.
    pub(super) fn judge(&self, text: &str, place: Place, best: Best, room: &mut Room) -> Option<Judged> {
        let (from, to) = if room.small {
            (0, text.len())
        } else {
            (best.span.0.saturating_sub(AROUND), text.len().min(best.span.1.saturating_add(AROUND)))
        };
        let from = text.floor_char_boundary(from);
        let part = text.get(from..text.floor_char_boundary(to))?;
        room.take(part.len())?;
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
