//! The regexes of phrases.

use regex_automata::{
    Input, Match,
    meta::{BuildError, Cache, Regex},
    nfa::thompson::WhichCaptures,
    util::syntax,
};

use crate::{keywords::fast_edges, view};

/// Bytes before a phrase that may say that it is none.
const UNLESS: usize = 80;
/// Phrases of one rule in one stretch that may be excused by it. More of them count.
const MAX_EXCUSED: usize = 16;
/// Most bytes of a compiled regex.
const SIZE: usize = 8 << 20;
/// One character but those that follow, in a text that is UTF-8. What the class itself is compiled to takes four times as much.
const BUT: (&str, &str) = ("(?-u:[^", r"\x80-\xBF][\x80-\xBF]*)");

/// What a rule looks for, and what must not stand right before that.
#[derive(Debug)]
pub(super) struct Pattern {
    regex: Regex,
    unless: Option<Regex>,
    /// Of one of many languages, most of which are seldom met: it keeps nothing of what it has read.
    small: bool,
}

impl Pattern {
    pub(super) fn new(regex: &str, unless: Option<&str>, small: bool) -> Option<Self> {
        let compile = |regex: &str| compile(regex, small).ok();
        let unless = match unless {
            Some(unless) => Some(compile(&format!("(?:{unless})$"))?),
            None => None,
        };
        Some(Self { regex: compile(regex)?, unless, small })
    }

    /// Where it stands in stretches of a text.
    pub(super) fn hits<'h>(
        &'h self,
        text: &'h str,
        stretches: &'h [(usize, usize)],
    ) -> impl Iterator<Item = (usize, usize)> + 'h {
        let (mut regex, mut unless) = (self.search(Some(&self.regex)), self.search(self.unless.as_ref()));
        let mut excuses = move |hit: &Match| {
            let from = text.floor_char_boundary(hit.start().saturating_sub(UNLESS));
            text.as_bytes().get(from..hit.start()).is_some_and(|before| unless.find(Input::new(before)).is_some())
        };
        let (mut stretches, mut now) = (stretches.iter(), None);
        std::iter::from_fn(move || {
            loop {
                // Where the search goes on, where it ends, and how many were excused.
                let (at, to, excused) = match &mut now {
                    Some(now) => now,
                    None => {
                        let (from, to) = stretches.next()?;
                        now.insert((text.floor_char_boundary(*from), text.floor_char_boundary(*to), 0))
                    }
                };
                // With what stands before it: a stretch begins anywhere, and that is not where a sentence does.
                let input = Input::new(text.get(..*to).unwrap_or_default()).range(*at..);
                let Some(hit) = regex.find(input).filter(|hit| !hit.is_empty()) else {
                    now = None;
                    continue;
                };
                if *excused < MAX_EXCUSED && excuses(&hit) {
                    *excused += 1;
                    // Another one may begin within it.
                    *at = text.ceil_char_boundary(hit.start() + 1);
                    continue;
                }
                *at = hit.end();
                return Some((hit.start(), hit.end()));
            }
        })
    }

    fn search<'r>(&self, regex: Option<&'r Regex>) -> Search<'r> {
        Search { regex, small: self.small, cache: None }
    }

    #[cfg(test)]
    pub(super) fn memory(&self) -> usize {
        self.regex.memory_usage() + self.unless.as_ref().map_or(0, Regex::memory_usage)
    }
}

/// One regex in one text.
struct Search<'r> {
    regex: Option<&'r Regex>,
    small: bool,
    /// What it works in, if that is not kept for the next text.
    cache: Option<Cache>,
}

impl Search<'_> {
    fn find(&mut self, input: Input<'_>) -> Option<Match> {
        let regex = self.regex?;
        match self.small {
            true => regex.search_with(self.cache.get_or_insert_with(|| regex.create_cache()), &input),
            false => regex.find(input),
        }
    }
}

fn compile(pattern: &str, small: bool) -> Result<Regex, Box<BuildError>> {
    let pattern = fast_edges(&view::letters(pattern));
    let config = Regex::config()
        .which_captures(WhichCaptures::Implicit)
        .nfa_size_limit(Some(SIZE))
        .utf8_empty(false)
        .onepass(!small)
        .dfa(!small);
    Regex::builder()
        .configure(config)
        .syntax(syntax::Config::new().dot_matches_new_line(true).utf8(false))
        .build(&if small { small_gaps(&pattern) } else { pattern })
        .map_err(Box::new)
}

/// A regex with what takes less memory for each class of all characters but some of ASCII.
fn small_gaps(regex: &str) -> String {
    let mut pieces = regex.split("[^");
    let mut out = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        match piece.split_once(']') {
            Some((but, rest)) if but.is_ascii() => out.extend([BUT.0, but, BUT.1, rest]),
            _ => out.extend(["[^", piece]),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_gaps_are_the_same() {
        let pattern = "a(?:[^.!?]{1,3})b|c[^ ]{0,2}[^。.]д|x[^a-f]$";
        for text in ["a한ыéb", "a.b", "acb", "aéééé b", "cдд", "c д", "c。д", "c\u{1F600}\u{1F600}д", "xé", "xb", "ab"]
        {
            let found = [true, false].map(|small| {
                let pattern = Pattern::new(pattern, None, small).unwrap();
                pattern.hits(text, &[(0, text.len())]).collect::<Vec<_>>()
            });
            assert_eq!(found[0], found[1], "{text}");
        }
    }
}
