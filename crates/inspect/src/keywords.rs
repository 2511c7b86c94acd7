//! Many words in one pass over a text, ASCII letters without regard to case where the words ask for that.
//!
//! Every second place of the text is looked at. Of each word of five bytes and more, two stretches of four bytes stand in a
//! table, one byte apart, so that one of them begins at such a place wherever the word stands; of shorter words two bytes
//! each. Only where the text passes a table are words compared. No step waits for the one before it, so that a byte costs
//! a fraction of what a step of an automaton does, and the time is linear: the words behind one place of a table are few
//! and short.

/// log2 of the places for four bytes: with the other table most of a processor's first cache.
const BITS: u32 = 15;
/// Bytes with the case of ASCII letters taken away; others fall together, too, which only costs a comparison.
const FOLDED: u32 = 0x2020_2020;
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
    /// The place of a byte of it, from the same place, and that byte, folded: of those by which it is not known already the
    /// one that ordinary text has least. Most places that pass a table are told by it.
    telling: (isize, u8),
}

/// Words that are looked for together.
pub(crate) struct Keywords {
    /// By four bytes of the word.
    long: Table<{ 1 << BITS }>,
    /// Words of up to four bytes, by two: the second and the third of four bytes of the text.
    short: Table<{ 1 << 16 }>,
}

/// Words by the bytes of the text that they are known by.
struct Table<const PLACES: usize> {
    /// Not zero where a word may be met. The bits are those of the table's own and no other's.
    filter: Box<[u8]>,
    /// The first word of each place.
    first: Box<[u32]>,
    words: Box<[Word]>,
}

/// The bits of the tables' filters: one of four, by the lowest bits of a byte beside those that a word is known by, or all where
/// the word has none there. Of long words it is the byte behind them.
const LONG: u8 = 0x0F;
const SHORT: u8 = 0xF0;

impl std::fmt::Debug for Keywords {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let places = self.long.words.len() + self.short.words.len();
        f.debug_struct("Keywords").field("places", &places).finish_non_exhaustive()
    }
}

impl<const PLACES: usize> Table<PLACES> {
    /// From places, bits of the filter, and words. The words of one place stand in the order in which they begin.
    fn new(mut words: Vec<(usize, u8, Word)>) -> Self {
        words.sort_by_key(|(place, _, word)| (*place, word.start, word.number));
        let mut filter = vec![0u8; PLACES];
        let mut first = vec![0u32; PLACES + 1];
        for (place, bits, _) in &words {
            if let (Some(filter), Some(after)) = (filter.get_mut(*place), first.get_mut(place + 1)) {
                *filter |= bits;
                *after += 1;
            }
        }
        let mut before = 0;
        for count in &mut first {
            before += *count;
            *count = before;
        }
        let words = words.into_iter().map(|(_, _, word)| word).collect();
        Self { filter: filter.into(), first: first.into(), words }
    }

    /// Not zero where a word may be met.
    #[inline]
    fn at(filter: &[u8; PLACES], place: usize) -> u8 {
        filter.get(place).copied().unwrap_or_default()
    }

    /// The filter, of a size that a compiler knows.
    fn filter(&self) -> Option<&[u8; PLACES]> {
        self.filter.first_chunk()
    }

    fn words(&self, place: usize) -> &[Word] {
        let range = (self.first.get(place), self.first.get(place + 1));
        let (Some(from), Some(to)) = range else { return &[] };
        self.words.get(*from as usize..*to as usize).unwrap_or_default()
    }
}

impl Keywords {
    /// Words for which capitals do not count. Empty words are never met.
    pub(crate) fn new<W: AsRef<str>>(words: impl IntoIterator<Item = W>) -> Self {
        Self::with_case(words.into_iter().map(|word| (word, false)))
    }

    /// Words, and whether capitals count. Empty words are never met.
    pub(crate) fn with_case<W: AsRef<str>>(words: impl IntoIterator<Item = (W, bool)>) -> Self {
        let (mut long, mut short) = (Vec::new(), Vec::new());
        for (number, (word, exact)) in words.into_iter().enumerate() {
            let bytes = word.as_ref().as_bytes();
            // Known by so many bytes from `known` on.
            let make = |start: isize, known: isize, many: isize| Word {
                bytes: bytes.into(),
                number,
                exact,
                start,
                telling: telling(bytes, start, known..known + many),
            };
            if let Some(at) = rarest(bytes) {
                for at in [at, at + 1] {
                    let four = bytes.get(at..).and_then(|b| b.first_chunk::<4>()).copied().unwrap_or_default();
                    let bits = bytes.get(at + 4).map_or(LONG, |b| behind(*b));
                    long.push((slot(u32::from_le_bytes(four) | FOLDED), bits, make(-(at as isize), 0, 4)));
                }
            } else {
                for (two, start) in pairs(bytes) {
                    // The byte before the two or the one after them belongs to the word, if it is long enough.
                    let beside = [-start, 3 - start].into_iter().find_map(|at| bytes.get(usize::try_from(at).ok()?));
                    let bits = beside.map_or(SHORT, |b| bit(u32::from(*b)));
                    for [a, b] in spellings(two, exact) {
                        short.push((usize::from(u16::from_le_bytes([a, b])), bits, make(start, 1, 2)));
                    }
                }
            }
        }
        Self { long: Table::new(long), short: Table::new(short) }
    }

    /// Hands on every place of every word, also where they overlap, until `visit` returns false. The places of one word
    /// come in order.
    pub(crate) fn each(&self, text: &[u8], mut visit: impl FnMut(Met) -> bool) {
        let (Some(long), Some(short)) = (self.long.filter(), self.short.filter()) else { return };
        let pass = |raw: u32, folded: u32| Table::at(long, slot(folded)) | Table::at(short, pair(raw));
        let byte = |at: usize| text.get(at).copied().unwrap_or_default();
        let mut one = |at: isize, four: u32, bits: u8| {
            if bits == 0 {
                return true;
            }
            let bits = bits & (behind(byte((at + 4) as usize)) | bit(four) | bit(four >> 24));
            bits == 0 || self.place(text, at, four, bits, &mut visit)
        };
        // The place before the first, for words of one and two bytes.
        let first = u32::from_le_bytes([0, 0, byte(0), byte(1)]);
        if text.is_empty() || !one(-2, first, pass(first, first | FOLDED)) {
            return;
        }
        // Three places at once: eight bytes of text hold the four bytes of each.
        let mut at = 0;
        while let Some(eight) = text.get(at..).and_then(|rest| rest.first_chunk()) {
            let eight = u64::from_le_bytes(*eight);
            let folded = eight | u64::from(FOLDED) << 32 | u64::from(FOLDED);
            let place = |shift: u32| pass((eight >> shift) as u32, (folded >> shift) as u32);
            let (first, second, third) = (place(0), place(16), place(32));
            if first | second | third != 0 {
                let here = at as isize;
                let go_on = one(here, eight as u32, first)
                    && one(here + 2, (eight >> 16) as u32, second)
                    && one(here + 4, (eight >> 32) as u32, third);
                if !go_on {
                    return;
                }
            }
            at += 6;
        }
        // At most seven bytes are left, and nothing follows.
        while at < text.len() {
            let four = u32::from_le_bytes([byte(at), byte(at + 1), byte(at + 2), byte(at + 3)]);
            if !one(at as isize, four, pass(four, four | FOLDED)) {
                return;
            }
            at += 2;
        }
    }

    /// Visits the words at one place of the text, which has these four bytes, and these bits of the filters after a look at the
    /// bytes beside them.
    #[inline(never)]
    fn place(&self, text: &[u8], at: isize, four: u32, bits: u8, visit: &mut impl FnMut(Met) -> bool) -> bool {
        let long = if bits & LONG != 0 { self.long.words(slot(four | FOLDED)) } else { &[] };
        let short = if bits & SHORT != 0 { self.short.words(pair(four)) } else { &[] };
        for words in [long, short] {
            for word in words {
                if word.tells(text, at) && !word.visit(text, at, visit) {
                    return false;
                }
            }
        }
        true
    }
}

/// A regex with the edges of ASCII words for those of Unicode's: the latter send every text with another character to an
/// engine that takes ten times as long.
pub(crate) fn fast_edges(regex: &str) -> String {
    regex.replace(r"\b", r"(?-u:\b)")
}

impl Word {
    /// Whether the byte that tells stands where it must for this place.
    #[inline]
    fn tells(&self, text: &[u8], at: isize) -> bool {
        let (place, byte) = self.telling;
        // A place before the text is one far behind it.
        text.get((at + place) as usize).is_some_and(|b| b | FOLDED as u8 == byte)
    }

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

/// See [`Word::telling`]: of a word that begins at `start`, where the bytes at `known` are.
fn telling(word: &[u8], start: isize, known: std::ops::Range<isize>) -> (isize, u8) {
    let bytes = || (start..).zip(word).map(|(at, b)| (at, *b));
    let rare = |(_, b): &(isize, u8)| commonness(b.to_ascii_lowercase());
    let other = bytes().filter(|(at, _)| !known.contains(at)).min_by_key(rare);
    let (at, byte) = other.or_else(|| bytes().next()).unwrap_or_default();
    (at, byte | FOLDED as u8)
}

/// The second and the third of four bytes.
#[inline]
fn pair(four: u32) -> usize {
    usize::from((four >> 8) as u16)
}

/// The bit of [`SHORT`] for the lowest of these bytes: the same for small letters and capitals.
#[inline]
fn bit(bytes: u32) -> u8 {
    0x10 << (bytes & 3)
}

/// The bit of [`LONG`] for the byte behind four: the same for small letters and capitals.
#[inline]
fn behind(byte: u8) -> u8 {
    1 << (byte & 3)
}

/// Multiplicative hashing (Knuth, TAOCP 6.4).
#[inline]
fn slot(key: u32) -> usize {
    (key.wrapping_mul(0x9E37_79B1) >> (32 - BITS)) as usize
}

/// Where the five bytes stand that ordinary text has least; `None` for words that are shorter.
fn rarest(word: &[u8]) -> Option<usize> {
    let common = |w: &[u8]| w.iter().zip(w.iter().skip(1)).map(|(a, b)| commonness_of_two(*a, *b)).sum::<u32>();
    word.windows(5).take(MAX_OFFSET).enumerate().min_by_key(|(_, w)| common(w)).map(|(at, _)| at)
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

/// What stands most often side by side in English.
#[rustfmt::skip]
const COMMON: [&[u8; 2]; 56] = [
    b"e ", b" t", b"th", b"he", b"s ", b" a", b"in", b"er", b"an", b"d ", b"re", b"t ", b"on", b" s", b"n ", b" o", b" i", b"en",
    b"at", b"or", b"es", b"is", b"it", b"nd", b"y ", b" w", b"te", b"ti", b"ed", b"r ", b"st", b"al", b" c", b"ar", b"nt", b" b",
    b"ng", b"o ", b" f", b" p", b" m", b"to", b"se", b"ha", b"ve", b"ou", b"of", b"as", b"le", b"me", b" d", b" h", b"io", b"ea",
    b"de", b"co",
];

/// How common two bytes are side by side, roughly as a logarithm.
fn commonness_of_two(a: u8, b: u8) -> u32 {
    let two = [a.to_ascii_lowercase(), b.to_ascii_lowercase()];
    let seldom = if COMMON.contains(&&two) { 0 } else { 12 };
    (commonness(two[0]) + commonness(two[1]) + 12).saturating_sub(seldom)
}

/// How common a byte is in English, code and JSON, roughly as a logarithm.
fn commonness(b: u8) -> u32 {
    match b {
        b' ' | b'e' => 10,
        b't' | b'a' | b'o' | b'i' | b'n' | b's' | b'r' => 9,
        b'h' | b'l' | b'd' | b'c' | b'u' => 8,
        b'm' | b'p' | b'f' | b'g' | b'_' | b'-' | b'.' | b',' | b'"' | b':' | b'/' => 7,
        b'w' | b'y' | b'b' | b'v' | b'0'..=b'9' => 6,
        0x80.. => 6,
        b'k' | b'(' | b')' | b'=' => 5,
        _ => 3,
    }
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
