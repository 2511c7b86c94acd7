//! What the agent itself wrote lately. Servers answer with what they were given: a mail that was sent, an event that was made.

use std::collections::{HashSet, VecDeque};

use firedoor_model::{EntryId, wire::Leaves};

use super::named::packed;
use crate::{Call, view};

/// Most calls that are kept, and longest arguments of one.
const CALLS: usize = 6;
const LONGEST: usize = 64 * 1024;
/// Shortest word that counts, in characters; fewest of them, and which part of them, that make a text the agent's own.
const WORD: usize = 4;
const FEWEST: usize = 6;
const PART: (usize, usize) = (2, 3);
/// Shortest text that is compared letter by letter, in bytes.
const SHORTEST: usize = 16;

#[derive(Debug, Default)]
pub(super) struct Own(VecDeque<(EntryId, Box<str>)>);

impl Own {
    pub(super) fn note(&mut self, call: &Call<'_>) {
        let Some(arguments) = call.arguments.filter(|arguments| arguments.len() <= LONGEST) else { return };
        if self.0.len() >= CALLS {
            self.0.pop_front();
        }
        self.0.push_back((call.entry.clone(), arguments.into()));
    }

    /// Whether a text, or most of its words, stands in one of the last calls of a server.
    pub(super) fn wrote(&self, entry: &EntryId, text: &str) -> bool {
        let text = view::normalised(text);
        let said: HashSet<&str> = words(&text).collect();
        let whole = packed(&text);
        (said.len() >= FEWEST || whole.len() >= SHORTEST)
            && self.0.iter().filter(|(of, _)| of == entry).any(|(_, arguments)| {
                let given: Vec<String> = Leaves::of(arguments).map(|leaf| view::normalised(&leaf.text)).collect();
                if whole.len() >= SHORTEST && given.iter().any(|leaf| packed(leaf).contains(&whole)) {
                    return true;
                }
                let given: HashSet<&str> = given.iter().flat_map(|leaf| words(leaf)).collect();
                said.len() >= FEWEST
                    && said.iter().filter(|word| given.contains(*word)).count() * PART.1 >= said.len() * PART.0
            })
    }
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_alphanumeric()).filter(|word| word.chars().nth(WORD - 1).is_some())
}
