//! Words of which one stands in whatever a regex finds: they are looked for first, since the regex takes longer.

use aho_corasick::{AhoCorasick, AhoCorasickKind};
use regex_automata::util::syntax;
use regex_syntax::hir::{Class, Hir, HirKind};

use super::near::SURROUNDINGS;

/// Most words that stand for one piece of a regex, and most characters of a class that do.
const MAX_WORDS: usize = 320;
const MAX_CLASS: usize = 8;

/// What every phrase of a regex needs: of each of these one word.
#[derive(Debug)]
pub(super) struct Needs {
    words: Vec<AhoCorasick>,
    /// Longest phrase, in bytes.
    reach: usize,
}

impl Needs {
    /// Of a regex of which some `pieces` stand in everything that it finds. A piece that may be any word leaves nothing out.
    pub(super) fn of(regex: &str, pieces: &[String], config: syntax::Config) -> Option<Self> {
        let longest = syntax::parse_with(regex, &config).ok()?.properties().maximum_len();
        let reach = longest.map_or(SURROUNDINGS, |longest| longest.min(SURROUNDINGS));
        let words = pieces.iter().filter_map(|piece| Piece::of(&syntax::parse_with(piece, &config).ok()?).words());
        let words = words.filter_map(|words| {
            // Of letters beyond ASCII the rarest bytes stand everywhere: to look for them first leaves nothing out.
            let rare = words.all.iter().all(|word| word.is_ascii());
            // There are hundreds of these, and they look through little: what takes least memory.
            let small = Some(AhoCorasickKind::ContiguousNFA);
            AhoCorasick::builder().prefilter(rare).kind(small).build(words.all).ok()
        });
        Some(Self { words: words.collect(), reach })
    }

    /// The parts of some stretches where a phrase can stand.
    pub(super) fn near(&self, text: &str, stretches: &[(usize, usize)]) -> Vec<(usize, usize)> {
        let whole = |(from, to): &(usize, usize)| (text.floor_char_boundary(*from), text.floor_char_boundary(*to));
        let narrowed = |stretches: Vec<_>, words| self.around(words, text.as_bytes(), &stretches);
        self.words.iter().fold(stretches.iter().map(whole).collect(), narrowed)
    }

    fn around(&self, words: &AhoCorasick, text: &[u8], stretches: &[(usize, usize)]) -> Vec<(usize, usize)> {
        let mut out: Vec<(usize, usize)> = Vec::new();
        for (from, to) in stretches {
            for word in words.find_iter(text.get(*from..*to).unwrap_or_default()) {
                let (start, end) = (from + word.start(), from + word.end());
                let around = (end.saturating_sub(self.reach).max(*from), (start + self.reach).min(*to));
                match out.last_mut() {
                    Some(last) if around.0 <= last.1 => last.1 = around.1,
                    _ => out.push(around),
                }
            }
        }
        out
    }

    #[cfg(test)]
    pub(super) fn memory(&self) -> usize {
        self.words.iter().map(AhoCorasick::memory_usage).sum()
    }
}

/// Words, and how seldom they are met.
#[derive(Clone, Debug)]
struct Words {
    all: Vec<Vec<u8>>,
    /// Letters of the shortest.
    letters: usize,
}

impl Words {
    fn of(mut all: Vec<Vec<u8>>) -> Self {
        let letters = all.iter().map(|word| String::from_utf8_lossy(word).chars().count()).min().unwrap_or_default();
        // What begins with another one says no more.
        all.sort();
        all.dedup_by(|word, before| word.starts_with(before));
        Self { all, letters }
    }

    /// Those whose shortest is longer, or that are fewer.
    fn rarer(one: Option<Self>, other: Option<Self>) -> Option<Self> {
        let (Some(first), Some(second)) = (&one, &other) else { return one.or(other) };
        let shorter = (first.letters, second.all.len()) < (second.letters, first.all.len());
        if shorter { other } else { one }
    }
}

/// What a piece of a regex finds.
#[derive(Debug, Default)]
struct Piece {
    /// All of it, where that is few.
    whole: Option<Vec<Vec<u8>>>,
    /// What stands in it, otherwise.
    within: Option<Words>,
}

impl Piece {
    fn of(hir: &Hir) -> Self {
        let whole = |whole| Self { whole, within: None };
        match hir.kind() {
            HirKind::Empty | HirKind::Look(_) => whole(Some(vec![Vec::new()])),
            HirKind::Literal(literal) => whole(Some(vec![literal.0.to_vec()])),
            HirKind::Class(class) => whole(characters(class)),
            HirKind::Capture(capture) => Self::of(&capture.sub),
            HirKind::Repetition(repeated) => {
                let once = Self::of(&repeated.sub);
                match (repeated.min, repeated.max) {
                    (1, Some(1)) => once,
                    (0, Some(1)) => whole(once.whole.map(|all| [all, vec![Vec::new()]].concat())),
                    (0, _) => Self::default(),
                    _ => Self { whole: None, within: once.words() },
                }
            }
            HirKind::Concat(pieces) => Self::row(pieces),
            HirKind::Alternation(pieces) => Self::one_of(pieces),
        }
    }

    fn one_of(pieces: &[Hir]) -> Self {
        let pieces: Vec<Self> = pieces.iter().map(Self::of).collect();
        let whole: Option<Vec<_>> = pieces.iter().map(|piece| piece.whole.clone()).collect();
        if let Some(whole) = whole.map(|all| all.concat()).filter(|all| all.len() <= MAX_WORDS) {
            return Self { whole: Some(whole), within: None };
        }
        let within: Option<Vec<Words>> = pieces.into_iter().map(Self::words).collect();
        let all: Option<Vec<_>> = within.map(|each| each.into_iter().flat_map(|words| words.all).collect());
        Self { whole: None, within: all.filter(|all| all.len() <= MAX_WORDS).map(Words::of) }
    }

    /// Of pieces that follow each other.
    fn row(pieces: &[Hir]) -> Self {
        let mut row = Self { whole: Some(vec![Vec::new()]), within: None };
        let mut few = true;
        for piece in pieces {
            let Self { whole, within } = Self::of(piece);
            row = match (row.whole, whole) {
                (Some(before), Some(whole)) if before.len() * whole.len() <= MAX_WORDS => {
                    let joined = before.iter().flat_map(|b| whole.iter().map(move |w| [b.as_slice(), w].concat()));
                    Self { whole: Some(joined.collect()), within: row.within }
                }
                (before, whole) => {
                    few = false;
                    let before = Self { whole: before, within: row.within }.words();
                    Self { whole: whole.or(Some(vec![Vec::new()])), within: Words::rarer(before, within) }
                }
            };
        }
        if few { row } else { Self { whole: None, within: row.words() } }
    }

    /// Of which words one stands in it.
    fn words(self) -> Option<Words> {
        let whole = self.whole.filter(|all| !all.iter().any(Vec::is_empty)).map(Words::of);
        Words::rarer(whole, self.within)
    }
}

/// The characters of a class, where they are few.
fn characters(class: &Class) -> Option<Vec<Vec<u8>>> {
    let all: Vec<Vec<u8>> = match class {
        Class::Unicode(class) => {
            let all = class.ranges().iter().flat_map(|range| range.start()..=range.end()).take(MAX_CLASS + 1);
            all.map(|c| c.to_string().into_bytes()).collect()
        }
        Class::Bytes(class) => {
            let all = class.ranges().iter().flat_map(|range| range.start()..=range.end()).take(MAX_CLASS + 1);
            all.map(|b| vec![b]).collect()
        }
    };
    (all.len() <= MAX_CLASS).then_some(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(regex: &str) -> Option<Vec<String>> {
        let words = Piece::of(&syntax::parse(regex).unwrap()).words()?;
        Some(words.all.iter().map(|word| String::from_utf8_lossy(word).into_owned()).collect())
    }

    #[test]
    fn words_of_which_one_stands_in_every_phrase() {
        for (regex, want) in [
            ("forget", Some(vec!["forget"])),
            (r"\bforgets?\b|(?:omit|omits)", Some(vec!["forget", "omit"])),
            ("a[bc]d", Some(vec!["abd", "acd"])),
            ("(?:no|not) [^.]{0,9}(?:tell|say)", Some(vec!["say", "tell"])),
            ("[^.]{0,9}(?:tell|[a-z])", None),
            ("(?:tell)?", None),
            ("(?:tell)+ her", Some(vec![" her"])),
            ("[a-z]@[a-z]|https?://", Some(vec!["@", "http://", "https://"])),
            (".", None),
        ] {
            let want = want.map(|want| want.into_iter().map(str::to_owned).collect::<Vec<_>>());
            assert_eq!(words(regex), want, "{regex}");
        }
    }

    #[test]
    fn phrases_stand_where_each_need_is_near() {
        let needs = |pieces: &[&str]| {
            let pieces: Vec<String> = pieces.iter().map(|piece| (*piece).to_owned()).collect();
            Needs::of("abc.{0,4}def", &pieces, syntax::Config::new().utf8(false)).unwrap()
        };
        let text = format!("{}abc{}def{}abc", "-".repeat(90), "-".repeat(5), "-".repeat(99));
        let whole = [(0, 60), (60, text.len())];
        for (pieces, want) in [
            (&[][..], whole.to_vec()),
            (&["abc"][..], vec![(71, 112), (181, 203)]),
            (&["abc", "def"][..], vec![(79, 112)]),
            (&["abc", "ghi"][..], vec![]),
            (&["."][..], whole.to_vec()),
        ] {
            assert_eq!(needs(pieces).near(&text, &whole), want, "{pieces:?}");
        }
    }
}
