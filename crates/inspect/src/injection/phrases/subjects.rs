//! What a text is about, by its words: attacks, prompts, agents.

use std::{collections::HashSet, ops::Range};

use super::table::Subject;
use crate::{keywords::Keywords, view};

/// Different words that make a text one about something, and one that is about little else.
const SECURITY: usize = 3;
const PROMPTS: usize = 3;
const AGENTS: usize = 2;
const LESSON: usize = 3;
const TREATISE: usize = 7;
/// How much of a text says what it teaches, in bytes.
const LOOKED_AT: usize = 32 * 1024;

/// The words of all subjects, in one table: each table takes a third of a MiB.
#[derive(Debug)]
pub(in crate::injection) struct Subjects {
    words: Keywords,
    security: Range<usize>,
    prompts: Range<usize>,
    /// All that texts speak of which teach about attacks or prompts.
    taught: Range<usize>,
    agents: Range<usize>,
}

impl Subjects {
    /// `about` is what texts that teach speak of beside the first two.
    pub(super) fn new(security: &Subject, prompts: &Subject, about: &[String], agents: &Subject) -> Self {
        let mut words: Vec<String> = Vec::new();
        let mut add = |more: &[String]| {
            let from = words.len();
            words.extend(more.iter().map(|word| view::letters(word)));
            from..words.len()
        };
        let (security, prompts) = (add(&security.words), add(&prompts.words));
        let taught = 0..add(about).end;
        let agents = add(&agents.words);
        Self { words: Keywords::new(&words), security, prompts, taught, agents }
    }

    /// Whether a normalised text is about security: such texts quote attacks.
    pub(in crate::injection) fn are_of_security(&self, text: &str) -> bool {
        self.has(text, &self.security, SECURITY)
    }

    /// Whether it is about little else: such texts tell of one attack after the other.
    pub(in crate::injection) fn treat_of_security(&self, text: &str) -> bool {
        self.has(text, &self.security, TREATISE)
    }

    /// Whether a normalised text is about how models are prompted.
    pub(in crate::injection) fn are_of_prompts(&self, text: &str) -> bool {
        self.has(text, &self.prompts, PROMPTS)
    }

    /// Whether a normalised text is about agents and their servers: such texts speak of agents, and say what they can be asked.
    pub(in crate::injection) fn are_of_agents(&self, text: &str) -> bool {
        self.has(text, &self.agents, AGENTS)
    }

    /// Whether the beginning of a normalised text teaches about attacks or prompts.
    pub(in crate::injection) fn teach(&self, text: &str) -> bool {
        let head = text.get(..text.floor_char_boundary(LOOKED_AT)).unwrap_or_default();
        self.has(head, &self.taught, LESSON)
    }

    /// Whether so many different ones of some words stand in a text.
    fn has(&self, text: &str, words: &Range<usize>, least: usize) -> bool {
        let mut seen = HashSet::new();
        self.words.each(text.as_bytes(), |met| {
            if words.contains(&met.word) {
                seen.insert(met.word);
            }
            seen.len() < least
        });
        seen.len() >= least
    }
}
