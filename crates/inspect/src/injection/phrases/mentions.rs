//! Attacks that a text tells of: in the records of a test, or in quotes beside which it says that they must not be obeyed.

use std::collections::HashSet;

use regex_automata::{
    Input,
    meta::{BuildError, Regex},
};

use super::table::MentionsRow;
use crate::{keywords::fast_edges, view};

/// Bytes on either side of an attack in which its record may say what it is, and of its quotes in which a text may.
const RECORD: usize = 300;
const BESIDE: usize = 160;
/// Bytes from where a phrase begins back to its opening quote, and from where it ends to the closing one.
const BEFORE: usize = 48;
const BEHIND: usize = 200;
/// Longest quotation of a few words.
const PASSING: usize = 72;
/// Bytes around an attack that are looked at, roughly.
pub(super) const LOOKED_AT: usize = 2 * (RECORD + BESIDE + BEHIND);
/// Quotes, and what ends them.
const QUOTES: [(char, &[char]); 8] = [
    ('"', &['"']),
    ('“', &['”']),
    ('„', &['“', '”']),
    ('«', &['»']),
    ('»', &['«']),
    ('‘', &['’']),
    ('`', &['`']),
    ('「', &['」']),
];

/// What shows it.
#[derive(Debug)]
pub(super) struct Mentions {
    label: Regex,
    denial: Regex,
    sayings: HashSet<String>,
}

impl Mentions {
    pub(super) fn new(row: &MentionsRow) -> Result<Self, Box<BuildError>> {
        let regex = |text: &str| Regex::new(&fast_edges(&view::letters(text))).map_err(Box::new);
        Ok(Self { label: regex(&row.label)?, denial: regex(&row.denial)?, sayings: row.sayings.clone() })
    }

    /// Whether anything of the kind stands in a text.
    pub(super) fn anywhere(&self, text: &str) -> bool {
        self.label.is_match(Input::new(text)) || self.denial.is_match(Input::new(text))
    }

    /// Whether a record around `span` of a normalised text says that it is an attack.
    pub(super) fn labelled(&self, text: &str, (start, end): (usize, usize)) -> bool {
        self.label.is_match(Input::new(part(text, start.saturating_sub(RECORD), end + RECORD)))
    }

    /// Whether what stands at `span` is quoted, and must not be obeyed.
    pub(super) fn denied(&self, text: &str, span: (usize, usize)) -> bool {
        let Some((opens, closes)) = quoted(text, span) else { return false };
        let beside = [part(text, opens.saturating_sub(BESIDE), opens), part(text, closes, closes + BESIDE)];
        beside.into_iter().any(|beside| self.denial.is_match(Input::new(beside)))
    }

    /// Whether the words of a rule at `span` are quoted in passing: in a few words within a sentence, which name no address. Commands are
    /// quoted to be run; these are quoted to be talked about.
    pub(super) fn in_passing(&self, text: &str, rule: &str, span: (usize, usize)) -> bool {
        let Some((opens, closes)) = self.sayings.get(rule).and_then(|_| quoted(text, span)) else { return false };
        let said = part(text, opens, closes);
        let short = closes - opens <= PASSING && !said.contains("://") && !said.contains('@');
        short && !said.starts_with('`') && within(part(text, opens.saturating_sub(BEFORE), opens))
    }
}

/// Whether a quotation that follows stands within a sentence: behind a word and a blank, or in parentheses. Members, elements of lists and
/// fields of tables have other signs before their quotes, and a quote that closes has none of these.
fn within(before: &str) -> bool {
    before.ends_with('(') || before.strip_suffix(' ').is_some_and(|before| before.ends_with(view::alphabetic))
}

/// Where the quotes stand that are around a place, if any are.
fn quoted(text: &str, (start, end): (usize, usize)) -> Option<(usize, usize)> {
    let (before, behind) = (part(text, start.saturating_sub(BEFORE), start), part(text, end, end + BEHIND));
    let (opens, closers) = before.char_indices().rev().find_map(|(at, c)| {
        let (_, closers) = QUOTES.iter().find(|(opening, _)| *opening == c)?;
        Some((start - before.len() + at, *closers))
    })?;
    Some((opens, end + behind.find(closers)?))
}

fn part(text: &str, from: usize, to: usize) -> &str {
    let from = text.floor_char_boundary(from);
    text.get(from..text.floor_char_boundary(to.min(text.len()))).unwrap_or_default()
}
