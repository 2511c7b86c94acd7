//! Attacks that a text tells of: in the records of a test, or in quotes beside which it says that they must not be obeyed.

use std::collections::HashSet;

use memchr::memmem;
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
/// In a text that teaches about prompts or attacks: bytes back to the opening quote of an example, and its longest.
const BEFORE_EXAMPLE: usize = 160;
const EXAMPLE: usize = 320;
/// And on either side of where it begins, in which a sentence may say that somebody makes a model do so.
const TALE: usize = 64;
/// What a block of code stands between (CommonMark 0.31.2, section 4.5).
const FENCE: &str = "```";
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
    tale: Regex,
    sayings: HashSet<String>,
}

impl Mentions {
    pub(super) fn new(row: &MentionsRow) -> Result<Self, Box<BuildError>> {
        let regex = |text: &str| Regex::new(&fast_edges(&view::letters(text))).map_err(Box::new);
        Ok(Self {
            label: regex(&row.label)?,
            denial: regex(&row.denial)?,
            tale: regex(&row.tale)?,
            sayings: row.sayings.clone(),
        })
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
        let Some((opens, closes)) = quoted(text, span, BEFORE) else { return false };
        let beside = [part(text, opens.saturating_sub(BESIDE), opens), part(text, closes, closes + BESIDE)];
        beside.into_iter().any(|beside| self.denial.is_match(Input::new(beside)))
    }

    /// Whether the words of a rule at `span` are quoted in passing: in a few words within a sentence, which name no address. Commands are
    /// quoted to be run; these are quoted to be talked about.
    pub(super) fn in_passing(&self, text: &str, rule: &str, span: (usize, usize)) -> bool {
        let Some((opens, closes)) = self.sayings.get(rule).and_then(|_| quoted(text, span, BEFORE)) else {
            return false;
        };
        let said = part(text, opens, closes);
        let short = closes - opens <= PASSING && names_nobody(said);
        short && !said.starts_with('`') && within(part(text, opens.saturating_sub(BEFORE), opens))
    }

    /// Whether such texts show the words of a rule as an example.
    pub(super) fn is_saying(&self, rule: &str) -> bool {
        self.sayings.contains(rule)
    }

    /// Whether words at `span` are an example in a text that teaches: in a block of code, or in a quotation of a few
    /// sentences that its own sentence leads up to. None that names an address.
    pub(super) fn example(&self, text: &str, span: (usize, usize), fences: &[usize]) -> bool {
        let before = fences.partition_point(|at| *at < span.0);
        if before % 2 == 1
            && let Some(closes) = fences.get(before)
        {
            let said = part(text, span.0.saturating_sub(BEFORE_EXAMPLE), span.1.saturating_add(EXAMPLE).min(*closes));
            return names_nobody(said);
        }
        if self.is_tale(text, span) {
            return names_nobody(part(text, span.0, span.1.saturating_add(BEHIND)));
        }
        let Some((opens, closes)) = quoted(text, span, BEFORE_EXAMPLE) else { return false };
        let before = part(text, opens.saturating_sub(BEFORE), opens);
        // Members of an object and elements of a list have a quote before these signs.
        let word = |sign: &str| before.strip_suffix(sign).is_some_and(|before| before.ends_with(view::alphabetic));
        let led = within(before) || word(": ") || word(", ") || before.ends_with("| ");
        closes - opens <= EXAMPLE && led && names_nobody(part(text, opens, closes))
    }

    /// Whether the sentence in which a place stands has said before it that somebody makes a model do so.
    fn is_tale(&self, text: &str, (start, _): (usize, usize)) -> bool {
        let from = text.floor_char_boundary(start.saturating_sub(TALE));
        let met = self.tale.find(Input::new(part(text, from, start.saturating_add(TALE))));
        met.filter(|met| from + met.start() <= start).is_some_and(|met| {
            let between = text.get(from + met.end()..start).unwrap_or_default();
            !between.contains(['.', '!', '?', ':'])
        })
    }
}

/// Where blocks of code begin and end in a text, in turns.
pub(super) fn fences(text: &str) -> Vec<usize> {
    memmem::find_iter(text.as_bytes(), FENCE).collect()
}

fn names_nobody(said: &str) -> bool {
    !said.contains("://") && !said.contains('@')
}

/// Whether a quotation that follows stands within a sentence: behind a word and a blank, or in parentheses. Members, elements of lists and
/// fields of tables have other signs before their quotes, and a quote that closes has none of these.
fn within(before: &str) -> bool {
    before.ends_with('(') || before.strip_suffix(' ').is_some_and(|before| before.ends_with(view::alphabetic))
}

/// Where the quotes stand that are around a place, if any are, the first of them within so many bytes.
fn quoted(text: &str, (start, end): (usize, usize), most: usize) -> Option<(usize, usize)> {
    // A phrase may begin with the quote.
    let quote = text
        .get(start..)
        .and_then(|rest| rest.chars().next())
        .filter(|c| QUOTES.iter().any(|(opening, _)| opening == c));
    let start = start + quote.map_or(0, char::len_utf8);
    let (before, behind) = (part(text, start.saturating_sub(most), start), part(text, end, end + BEHIND));
    let (opens, closes) = before.char_indices().rev().find_map(|(at, c)| {
        let opens = start - before.len() + at;
        if c == '\'' {
            // An apostrophe stands within a word, or behind one.
            let apart = before.get(..at).unwrap_or_default().ends_with([' ', '(', ':', '|']);
            return apart.then(|| (opens, single(behind)));
        }
        let (_, closers) = QUOTES.iter().find(|(opening, _)| *opening == c)?;
        Some((opens, behind.find(*closers)))
    })?;
    Some((opens, end + closes?))
}

/// Where a quotation ends that a single quote of ASCII began.
fn single(behind: &str) -> Option<usize> {
    let mut quotes = behind.match_indices('\'').map(|(at, _)| at);
    quotes.find(|at| !behind.get(at + 1..).unwrap_or_default().starts_with(view::alphabetic))
}

fn part(text: &str, from: usize, to: usize) -> &str {
    let from = text.floor_char_boundary(from);
    text.get(from..text.floor_char_boundary(to.min(text.len()))).unwrap_or_default()
}
