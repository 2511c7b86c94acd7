//! Many words in one pass over a text, ASCII letters without regard to case where the words ask for that.
//!
//! Every second place of the text is looked at. Of each word of five bytes and more, two stretches of four bytes stand in a
//! table, one byte apart, so that one of them begins at such a place wherever the word stands; of shorter words two bytes
//! each. With them stands which bytes may be beside. Only where the text passes a table are words compared. No step waits
//! for the one before it, and none asks a processor to guess: the places of a stretch that pass are noted first. So a byte
//! costs a fraction of what a step of an automaton does, and the time is linear: the words behind one place of a table are
//! few and short.

mod common;

use common::{COMMON_FOUR, commonness, commonness_of_two};

/// log2 of the places for four bytes: with the other table most of a processor's first cache.
const BITS: u32 = 15;
/// log2 of the entries that say what stands beside those.
const BITS_BESIDE: u32 = 13;
/// Bytes with the case of ASCII letters taken away; others fall together, too, which only costs a comparison.
const FOLDED: u32 = 0x2020_2020;
/// Places of the text that are looked at before words are compared.
const STRETCH: usize = 63;
/// A power of two, so that no place is out of bounds.
const ROOM: usize = 64;
/// The stretch of a word that stands in the table begins within so many bytes.
const MAX_OFFSET: usize = 100;

/// A word in a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Met {
    /// Its number, in the order in which the words were given.
    pub(crate) word: usize,
    pub(crate) start: usize,
    pub(crate) end: usize,
}

/// A word that is looked for, as the place of a table knows it.
struct Word {
    bytes: Box<[u8]>,
    number: usize,
    /// Whether capitals count.
    exact: bool,
    /// Where it begins, from the place of the text that is looked at.
    start: isize,
}

/// The places of two bytes of a word, from the place of the text that is looked at, and those bytes, folded: of those by which it is not
/// known already the ones that ordinary text has least. Most places that pass a table are told by them.
#[derive(Clone, Copy)]
struct Telling([(i16, u8); 2]);

/// Words that are looked for together.
pub(crate) struct Keywords {
    /// By four bytes of the word.
    long: Table<{ 1 << BITS }>,
    /// Words of up to four bytes, by two: the second and the third of four bytes of the text.
    short: Table<{ 1 << 16 }>,
}

/// Words by the bytes of the text that they are known by.
struct Table<const PLACES: usize> {
    /// Not zero where a word may be met.
    met: Box<[u8]>,
    /// Which bytes beside those a word is met with, as bits: see [`behind`] and [`beside`]. Several places may share an entry.
    beside: Box<[u32]>,
    /// Which places have words, a bit for each, and how many of those before it have some.
    places: Box<[(u64, u32)]>,
    /// The first word of each place that has some, and behind them how many words there are.
    first: Box<[u32]>,
    words: Box<[Word]>,
    /// What tells each of `words`, apart from them: it is small enough for a processor's cache.
    telling: Box<[Telling]>,
}

impl std::fmt::Debug for Keywords {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let places = self.long.words.len() + self.short.words.len();
        f.debug_struct("Keywords").field("places", &places).finish_non_exhaustive()
    }
}

impl<const PLACES: usize> Table<PLACES> {
    /// From places, bits of the filter, and words. The words of one place stand in the order in which they begin.
    fn new(mut words: Vec<(usize, u32, (Word, Telling))>, entries: usize) -> Self {
        words.sort_by_key(|(place, _, (word, _))| (*place, word.start, word.number));
        let (mut met, mut beside) = (vec![0u8; PLACES], vec![0u32; entries]);
        let (mut places, mut first) = (vec![(0u64, 0u32); PLACES.div_ceil(64)], Vec::new());
        for (number, (place, bits, _)) in words.iter().enumerate() {
            let entry = beside.get_mut(place / (PLACES / entries));
            if let (Some(met), Some(beside), Some((some, _))) = (met.get_mut(*place), entry, places.get_mut(place / 64))
            {
                if *met == 0 {
                    first.push(number as u32);
                }
                *met = 1;
                *beside |= bits;
                *some |= 1 << (place % 64);
            }
        }
        first.push(words.len() as u32);
        let mut before = 0;
        for (some, count) in &mut places {
            *count = before;
            before += some.count_ones();
        }
        let (words, telling): (Vec<_>, Vec<_>) = words.into_iter().map(|(_, _, word)| word).unzip();
        let (words, telling) = (words.into(), telling.into());
        let (places, first) = (places.into(), first.into());
        Self { met: met.into(), beside: beside.into(), places, first, words, telling }
    }

    /// Visits the words that stand in a text where `at` is a place of theirs. False when `visit` returned that.
    fn all(&self, place: usize, text: &[u8], at: isize, visit: &mut impl FnMut(Met) -> bool) -> bool {
        let Some((some, before)) = self.places.get(place / 64) else { return true };
        let bit = 1u64 << (place % 64);
        if some & bit == 0 {
            return true;
        }
        let rank = (before + (some & (bit - 1)).count_ones()) as usize;
        let (Some(from), Some(to)) = (self.first.get(rank), self.first.get(rank + 1)) else { return true };
        let range = *from as usize..*to as usize;
        let telling = self.telling.get(range.clone()).unwrap_or_default().iter().zip(range);
        let mut told = telling.filter(|(telling, _)| telling.tells(text, at));
        told.all(|(_, number)| self.words.get(number).is_none_or(|word| word.visit(text, at, visit)))
    }
}

impl Keywords {
    /// Words for which capitals do not count. Empty words are never met.
    pub(crate) fn new<W: AsRef<str>>(words: impl IntoIterator<Item = W>) -> Self {
        Self::with_case(words.into_iter().map(|word| (word, false)))
    }

    /// Words, and whether capitals count. Empty words are never met.
    pub(crate) fn with_case<W: AsRef<str>>(words: impl IntoIterator<Item = (W, bool)>) -> Self {
        let (mut long, mut short, often) = (Vec::new(), Vec::new(), often());
        for (number, (word, exact)) in words.into_iter().enumerate() {
            let bytes = word.as_ref().as_bytes();
            // Known by so many bytes from `known` on.
            let make = |start: isize, known: isize, many: isize| {
                (Word { bytes: bytes.into(), number, exact, start }, Telling::of(bytes, start, known..known + many))
            };
            if let Some(at) = rarest(bytes, &often) {
                for at in [at, at + 1] {
                    let four = bytes.get(at..).and_then(|b| b.first_chunk::<4>()).copied().unwrap_or_default();
                    let bits = bytes.get(at + 4).map_or(u32::MAX, |b| behind(*b));
                    long.push((slot(u32::from_le_bytes(four) | FOLDED), bits, make(-(at as isize), 0, 4)));
                }
            } else {
                for (two, start) in pairs(bytes) {
                    // The byte before the two or the one after them belongs to the word, if it is long enough.
                    let byte = |at: isize| usize::try_from(at).ok().and_then(|at| bytes.get(at)).copied();
                    let bits = match (byte(-start), byte(3 - start)) {
                        (Some(before), _) => beside(before, false),
                        (None, Some(after)) => beside(after, true),
                        (None, None) => u32::MAX,
                    };
                    for [a, b] in spellings(two, exact) {
                        short.push((usize::from(u16::from_le_bytes([a, b])), bits, make(start, 1, 2)));
                    }
                }
            }
        }
        Self { long: Table::new(long, 1 << BITS_BESIDE), short: Table::new(short, 1 << 16) }
    }

    /// Hands on every place of every word, also where they overlap, until `visit` returns false. The places of one word
    /// come in order.
    pub(crate) fn each(&self, text: &[u8], mut visit: impl FnMut(Met) -> bool) {
        let (Some(long), Some(long_beside)) = (self.long.met.first_chunk(), self.long.beside.first_chunk()) else {
            return;
        };
        let (Some(short), Some(short_beside)) = (self.short.met.first_chunk(), self.short.beside.first_chunk()) else {
            return;
        };
        let met = |four: u32| {
            u8::from(of::<{ 1 << BITS }, u8>(long, slot(four | FOLDED)) | of::<{ 1 << 16 }, u8>(short, pair(four)) != 0)
        };
        // One in the lowest bit where a word may be met, by the eight bytes from a place on.
        let by_long = |eight: u64| {
            of::<{ 1 << BITS_BESIDE }, u32>(long_beside, slot(eight as u32 | FOLDED) >> (BITS - BITS_BESIDE))
                >> (eight >> 32 & 31)
        };
        let by_short = |eight: u64| {
            let bits = of::<{ 1 << 16 }, u32>(short_beside, pair(eight as u32));
            bits >> (eight & 15) | bits >> (16 | eight >> 24 & 15)
        };
        let mut one = |at: isize, eight: u64| {
            let long = by_long(eight) & 1 == 0 || self.long.all(slot(eight as u32 | FOLDED), text, at, &mut visit);
            long && (by_short(eight) & 1 == 0 || self.short.all(pair(eight as u32), text, at, &mut visit))
        };
        // The place before the first, for words of one and two bytes.
        if text.is_empty() || !one(-2, eight(text, 0) << 16) {
            return;
        }
        let mut start = 0;
        while start < text.len() {
            let stretch = text.get(start..).unwrap_or_default();
            let (mut places, mut many) = ([0u8; ROOM], 0);
            let mut note = |place: usize, four: u32| {
                places[many % ROOM] = place as u8;
                many += usize::from(met(four));
            };
            // Three places at once: eight bytes of text hold the four bytes of each.
            match stretch.first_chunk::<{ 2 * STRETCH + 2 }>() {
                Some(stretch) => (0..STRETCH).step_by(3).for_each(|place| {
                    let eight = eight(&stretch[2 * place..], 0);
                    (0..3).for_each(|more| note(place + more, (eight >> (16 * more)) as u32));
                }),
                None => (0..stretch.len().div_ceil(2).min(STRETCH))
                    .for_each(|place| note(place, eight(stretch, 2 * place) as u32)),
            }
            let mut left = 0;
            for number in 0..many {
                let place = places[number % ROOM];
                let eight = eight(stretch, 2 * usize::from(place));
                places[left % ROOM] = place;
                left += ((by_long(eight) | by_short(eight)) & 1) as usize;
            }
            for place in places.iter().take(left) {
                let at = start + 2 * usize::from(*place);
                if !one(at as isize, eight(text, at)) {
                    return;
                }
            }
            start += 2 * STRETCH;
        }
    }
}

/// An entry of a table.
#[inline]
fn of<const PLACES: usize, T: Copy + Default>(table: &[T; PLACES], place: usize) -> T {
    table.get(place).copied().unwrap_or_default()
}

/// Eight bytes of a text, the first lowest; zeros behind its end.
#[inline]
fn eight(text: &[u8], at: usize) -> u64 {
    let rest = text.get(at..).unwrap_or_default();
    match rest.first_chunk() {
        Some(eight) => u64::from_le_bytes(*eight),
        None => rest.iter().rev().fold(0, |number, b| number << 8 | u64::from(*b)),
    }
}

/// A regex with the edges of ASCII words for those of Unicode's: the latter send every text with another character to an
/// engine that takes ten times as long.
pub(crate) fn fast_edges(regex: &str) -> String {
    regex.replace(r"\b", r"(?-u:\b)")
}

impl Telling {
    /// Of a word that begins at `start`, where the bytes at `known` are.
    fn of(word: &[u8], start: isize, known: std::ops::Range<isize>) -> Self {
        // The two that are known least, as they come.
        let mut least = [None; 2];
        for (at, b) in (start..).zip(word) {
            let Ok(place) = i16::try_from(at) else { break };
            let common = (known.contains(&at), commonness(b.to_ascii_lowercase()));
            let one = Some((common, (place, b | FOLDED as u8)));
            let rarer = |than: Option<((bool, u32), _)>| than.is_none_or(|(than, _)| common < than);
            match least {
                [first, _] if rarer(first) => least = [one, first],
                [_, second] if rarer(second) => least[1] = one,
                _ => {}
            }
        }
        let [first, second] = least;
        Self([first, second.or(first)].map(|one| one.map(|(_, byte)| byte).unwrap_or_default()))
    }

    /// Whether the bytes stand where they must for a place.
    #[inline]
    fn tells(&self, text: &[u8], at: isize) -> bool {
        let stands = |(place, byte): &(i16, u8)| {
            // A place before the text is one far behind it.
            text.get((at + isize::from(*place)) as usize).is_some_and(|b| b | FOLDED as u8 == *byte)
        };
        self.0.iter().all(stands)
    }
}

impl Word {
    /// Visits the word if it stands where it must for this place.
    #[inline(never)]
    fn visit(&self, text: &[u8], at: isize, visit: &mut impl FnMut(Met) -> bool) -> bool {
        let Ok(start) = usize::try_from(at + self.start) else { return true };
        let end = start + self.bytes.len();
        let is = text
            .get(start..end)
            .is_some_and(|t| if self.exact { *t == *self.bytes } else { t.eq_ignore_ascii_case(&self.bytes) });
        !is || visit(Met { word: self.number, start, end })
    }
}

/// The second and the third of four bytes.
#[inline]
fn pair(four: u32) -> usize {
    usize::from((four >> 8) as u16)
}

/// The bit for the byte behind four that a word is known by: the same for small letters and capitals.
#[inline]
fn behind(byte: u8) -> u32 {
    1 << (byte & 31)
}

/// The bit for the byte before the two that a short word is known by, or for the one after them.
#[inline]
fn beside(byte: u8, after: bool) -> u32 {
    1 << (byte & 15 | u8::from(after) << 4)
}

/// Multiplicative hashing (Knuth, TAOCP 6.4).
#[inline]
fn slot(key: u32) -> usize {
    (key.wrapping_mul(0x9E37_79B1) >> (32 - BITS)) as usize
}

/// Where the six bytes stand that ordinary text has least, or all five; `None` for words that are shorter.
fn rarest(word: &[u8], often: &[u8]) -> Option<usize> {
    if word.len() < 5 {
        return None;
    }
    let two = |w: &[u8]| w.iter().zip(w.iter().skip(1)).map(|(a, b)| commonness_of_two(*a, *b)).sum::<u32>();
    // Of the two stretches of four bytes in them.
    let four = |w: &[u8]| {
        w.windows(4)
            .take(2)
            .filter_map(|four| often.get(slot(u32::from_le_bytes(*four.first_chunk()?) | FOLDED)))
            .map(|often| u32::from(*often))
            .sum::<u32>()
    };
    let six = word.windows(word.len().min(6)).take(MAX_OFFSET).enumerate();
    six.min_by_key(|(_, w)| (four(w), two(w))).map(|(at, _)| at)
}

/// How often ordinary text comes to each place of the table for four bytes.
fn often() -> Box<[u8]> {
    let mut often = vec![0u8; 1 << BITS];
    for (four, weight) in COMMON_FOUR.as_bytes().chunks(4).zip((1..=u8::MAX).rev()) {
        let Some(four) = four.first_chunk() else { continue };
        if let Some(often) = often.get_mut(slot(u32::from_le_bytes(*four) | FOLDED)) {
            *often = often.saturating_add(weight);
        }
    }
    often.into()
}

/// By which two bytes a short word is known, after one byte of the text, and where it then begins: for words that begin at
/// an even place, and at an odd one. `None` is any byte.
fn pairs(word: &[u8]) -> Vec<([Option<u8>; 2], isize)> {
    match *word {
        [a] => vec![([Some(a), None], 1), ([None, Some(a)], 2)],
        [a, b] => vec![([None, Some(a)], 2), ([Some(a), Some(b)], 1)],
        [a, b, c] => vec![([Some(b), Some(c)], 0), ([Some(a), Some(b)], 1)],
        [a, b, c, d] => {
            let (first, last) = (commonness_of_two(a, b), commonness_of_two(c, d));
            let odd = if first <= last { ([Some(a), Some(b)], 1) } else { ([Some(c), Some(d)], -1) };
            vec![([Some(b), Some(c)], 0), odd]
        }
        _ => Vec::new(),
    }
}

/// All ways to write two bytes.
fn spellings(two: [Option<u8>; 2], exact: bool) -> Vec<[u8; 2]> {
    let [first, second] = two.map(|byte| match byte {
        None => (0..=255).collect(),
        Some(b) if exact || !b.is_ascii_alphabetic() => vec![b],
        Some(b) => vec![b.to_ascii_lowercase(), b.to_ascii_uppercase()],
    });
    first.into_iter().flat_map(|a| second.iter().map(move |b| [a, *b])).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn met(words: &[&str], text: &str) -> Vec<(usize, usize, usize)> {
        let mut out = Vec::new();
        Keywords::new(words).each(text.as_bytes(), |m| {
            out.push((m.word, m.start, m.end));
            true
        });
        out.sort_unstable();
        out
    }

    #[test]
    fn words_are_met() {
        assert_eq!(met(&["token", "ken", "@", "<|", ""], "@Token <|k"), [(0, 1, 6), (1, 3, 6), (2, 0, 1), (3, 7, 9)]);
        assert_eq!(met(&["지시", "ab"], "AB 지시"), [(0, 3, 9), (1, 0, 2)]);
        assert_eq!(met(&["aaa"], "aaaaa"), [(0, 0, 3), (0, 1, 4), (0, 2, 5)]);
        assert_eq!(met(&["abc"], "ab"), []);
    }

    #[test]
    fn capitals_count_where_they_do() {
        let words = Keywords::with_case([("AKIA", true), ("ghp_", false), ("Secret", true), ("Token", false)]);
        let mut out = Vec::new();
        words.each(b"akia AKIA GHP_ secret Secret tOKEN", |m| {
            out.push((m.word, m.start));
            true
        });
        assert_eq!(out, [(0, 5), (1, 10), (2, 22), (3, 29)]);
    }

    #[test]
    fn a_visitor_can_stop() {
        let mut count = 0;
        Keywords::new(["aaa"]).each(b"aaaaaaaaa", |_| {
            count += 1;
            count < 3
        });
        assert_eq!(count, 3);
    }

    proptest::proptest! {
        #[test]
        fn as_one_by_one(
            words in proptest::collection::vec(("[abC-é]{1,9}", proptest::bool::ANY), 0..12),
            text in "[aBbcC-é]{0,60}",
        ) {
            let mut want = Vec::new();
            for (number, (word, exact)) in words.iter().enumerate() {
                for start in 0..text.len() {
                    let end = start + word.len();
                    let is = |t: &[u8]| if *exact { t == word.as_bytes() } else { t.eq_ignore_ascii_case(word.as_bytes()) };
                    if text.as_bytes().get(start..end).is_some_and(is) {
                        want.push((number, start, end));
                    }
                }
            }
            let mut found = Vec::new();
            Keywords::with_case(words.iter().map(|(w, e)| (w, *e))).each(text.as_bytes(), |m| {
                found.push((m.word, m.start, m.end));
                true
            });
            // The places of one word come in order.
            found.sort_by_key(|(word, ..)| *word);
            proptest::prop_assert_eq!(found, want);
        }
    }
}
