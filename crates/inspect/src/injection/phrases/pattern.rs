//! The regexes of phrases.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, OnceLock, PoisonError},
};

use regex_automata::{
    Input, Match,
    meta::{BuildError, Cache, Regex},
    nfa::thompson::WhichCaptures,
    util::syntax,
};

use super::needs::Needs;
use crate::{keywords::fast_edges, view};

/// Bytes before a phrase that may say that it is none.
const UNLESS: usize = 80;
/// Phrases of one rule in one stretch that may be excused by it. More of them count.
const MAX_EXCUSED: usize = 16;
/// Most bytes of a compiled regex.
const SIZE: usize = 8 << 20;
/// Regexes of languages whose caches are kept, and how large one of those may grow.
const KEPT: usize = 8;
const SMALL_CACHE: usize = 512 << 10;
/// One character but those that follow, in a text that is UTF-8. What the class itself is compiled to takes four times as much.
const BUT: (&str, &str) = ("(?-u:[^", r"\x80-\xBF][\x80-\xBF]*)");

/// What must not stand in a phrase, of all that look for it.
#[derive(Debug)]
pub(super) struct Except {
    regex: String,
    compiled: OnceLock<Option<Regex>>,
}

impl Except {
    pub(super) fn new(regex: &str) -> Arc<Self> {
        Arc::new(Self { regex: fast_edges(&view::letters(regex)), compiled: OnceLock::new() })
    }

    /// A regex that cannot be compiled would be one of the program's own, and a test compiles all of them.
    pub(super) fn compiled(&self) -> Option<&Regex> {
        self.compiled.get_or_init(|| compile(&self.regex, false).ok()).as_ref()
    }
}

/// What a rule looks for, and what must not stand right before that, nor in it.
#[derive(Debug)]
pub(super) struct Pattern {
    regex: String,
    unless: Option<String>,
    except: Option<Arc<Except>>,
    /// Of one of many languages, most of which are seldom met: it keeps nothing of what it has read, see [`Kept`].
    small: bool,
    needs: Option<Needs>,
    compiled: OnceLock<Option<Compiled>>,
}

#[derive(Debug)]
struct Compiled {
    regex: Regex,
    unless: Option<Regex>,
}

/// What the regexes of languages work in, of those that were tried last: most texts of one agent are in few languages, and to begin
/// anew costs more than a text of some kilobytes does otherwise. At most [`KEPT`], of [`SMALL_CACHE`] for either direction.
#[derive(Debug, Default)]
pub(super) struct Kept(Mutex<VecDeque<(usize, Cache)>>);

impl Kept {
    fn take(&self, line: usize) -> Option<Cache> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let at = kept.iter().position(|(of, _)| *of == line)?;
        kept.remove(at).map(|(_, cache)| cache)
    }

    fn put(&self, line: usize, cache: Cache) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() >= KEPT {
            kept.pop_front();
        }
        kept.push_back((line, cache));
    }
}

impl Pattern {
    /// One of a program's own language.
    pub(super) fn own(regex: &str, unless: Option<&str>) -> Self {
        Self::of(regex, unless, None)
    }

    /// One of many languages. Of each of `needs` something stands in what it finds.
    pub(super) fn of_language(regex: &str, unless: Option<&str>, needs: &[String]) -> Self {
        Self::of(regex, unless, Some(needs))
    }

    fn of(regex: &str, unless: Option<&str>, needs: Option<&[String]>) -> Self {
        let written = |regex: &str| fast_edges(&view::letters(regex));
        let regex = written(regex);
        let unless = unless.map(|unless| written(&format!("(?:{unless})$")));
        let small = needs.is_some();
        let pieces: Vec<String> = needs.into_iter().flatten().map(|piece| written(piece)).collect();
        let needs = if small { Needs::of(&regex, &pieces, syntax()) } else { None };
        Self { regex, unless, except: None, small, needs, compiled: OnceLock::new() }
    }

    /// With what must not stand in it.
    pub(super) fn but(self, except: Option<Arc<Except>>) -> Self {
        Self { except, ..self }
    }

    fn compiled(&self) -> Option<&Compiled> {
        let compile = |regex: &String| compile(regex, self.small).ok();
        let both = || {
            let unless = match &self.unless {
                Some(unless) => Some(compile(unless)?),
                None => None,
            };
            Some(Compiled { regex: compile(&self.regex)?, unless })
        };
        self.compiled.get_or_init(both).as_ref()
    }

    /// Where it stands in stretches of a text, `most` places at most. `line` is its number, by which `kept` knows it.
    pub(super) fn hits(
        &self,
        text: &str,
        stretches: &[(usize, usize)],
        most: usize,
        (kept, line): (&Kept, usize),
    ) -> Vec<(usize, usize)> {
        let near = self.needs.as_ref().map(|needs| needs.near(text, stretches));
        let stretches = near.as_deref().unwrap_or(stretches);
        if stretches.is_empty() {
            return Vec::new();
        }
        // A regex that cannot be compiled would be one of the program's own, and a test compiles all of them.
        let Some(Compiled { regex, unless }) = self.compiled() else { return Vec::new() };
        let (mut regex, mut unless) = (self.search(Some(regex)), self.search(unless.as_ref()));
        let except = self.except.as_ref().and_then(|except| except.compiled());
        if self.small {
            regex.cache = kept.take(line);
        }
        let mut excuses = |hit: &Match| {
            let from = text.floor_char_boundary(hit.start().saturating_sub(UNLESS));
            text.as_bytes().get(from..hit.start()).is_some_and(|before| unless.find(Input::new(before)).is_some())
                || except.is_some_and(|except| text.get(hit.range()).is_some_and(|found| except.is_match(found)))
        };
        let mut out = Vec::new();
        for (from, to) in stretches {
            let (mut at, to) = (text.floor_char_boundary(*from), text.floor_char_boundary(*to));
            let mut excused = 0;
            while out.len() < most {
                // With what stands before it: a stretch begins anywhere, and that is not where a sentence does.
                let input = Input::new(text.get(..to).unwrap_or_default()).range(at..);
                let Some(hit) = regex.find(input).filter(|hit| !hit.is_empty()) else { break };
                if excused < MAX_EXCUSED && excuses(&hit) {
                    excused += 1;
                    // Another one may begin within it.
                    at = text.ceil_char_boundary(hit.start() + 1);
                    continue;
                }
                at = hit.end();
                out.push((hit.start(), hit.end()));
            }
        }
        if let Some(cache) = regex.cache {
            kept.put(line, cache);
        }
        out
    }

    fn search<'r>(&self, regex: Option<&'r Regex>) -> Search<'r> {
        Search { regex, small: self.small, cache: None }
    }

    #[cfg(test)]
    pub(super) fn memory(&self) -> Option<usize> {
        let Compiled { regex, unless } = self.compiled()?;
        let needs = self.needs.as_ref().map_or(0, Needs::memory);
        Some(needs + regex.memory_usage() + unless.as_ref().map_or(0, Regex::memory_usage))
    }
}

/// One regex in one text.
struct Search<'r> {
    regex: Option<&'r Regex>,
    small: bool,
    /// What it works in, if it does not keep that itself.
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

fn syntax() -> syntax::Config {
    syntax::Config::new().dot_matches_new_line(true).utf8(false)
}

fn compile(pattern: &str, small: bool) -> Result<Regex, Box<BuildError>> {
    let config = Regex::config()
        .which_captures(WhichCaptures::Implicit)
        .nfa_size_limit(Some(SIZE))
        .utf8_empty(false)
        .onepass(!small)
        .auto_prefilter(!small)
        .dfa(!small);
    let config = if small { config.hybrid_cache_capacity(SMALL_CACHE) } else { config };
    Regex::builder()
        .configure(config)
        .syntax(syntax())
        .build(&if small { small_gaps(pattern) } else { pattern.to_owned() })
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
    fn what_is_kept_is_bounded_and_changes_nothing() {
        let kept = Kept::default();
        let patterns: Vec<Pattern> =
            (0..KEPT + 3).map(|n| Pattern::of_language(&format!("a{n}[^.]{{0,9}}b"), None, &[])).collect();
        for _ in 0..3 {
            for (line, pattern) in patterns.iter().enumerate() {
                let text = format!("x a{line} é b, a{line}. b");
                assert_eq!(pattern.hits(&text, &[(0, text.len())], 9, (&kept, line)).len(), 1, "{text}");
                assert!(kept.0.lock().unwrap().len() <= KEPT);
            }
        }
    }

    #[test]
    fn small_gaps_are_the_same() {
        let pattern = "a(?:[^.!?]{1,3})b|c[^ ]{0,2}[^。.]д|x[^a-f]$";
        for text in ["a한ыéb", "a.b", "acb", "aéééé b", "cдд", "c д", "c。д", "c\u{1F600}\u{1F600}д", "xé", "xb", "ab"]
        {
            let found = [true, false].map(|small| {
                let pattern = match small {
                    true => Pattern::of_language(pattern, None, &[]),
                    false => Pattern::own(pattern, None),
                };
                pattern.hits(text, &[(0, text.len())], 9, (&Kept::default(), 0))
            });
            assert_eq!(found[0], found[1], "{text}");
        }
    }
}
