//! Many words in one pass over a text, ASCII letters without regard to case.
//!
//! Of each word the three bytes that ordinary text has least go into a filter; only where three bytes of the text pass it
//! are words compared. No step waits for the one before it, so that a byte costs about a third of what a step of an
//! automaton does, and the time is linear: the words behind one place of the filter are few and short.

/// log2 of the filter's bits: 8 KiB, a sixth of a processor's first cache.
const BITS: u32 = 16;
/// In [`Keywords::bytes`]: this byte alone is a word, or ends one of two bytes.
const SHORT: u16 = 0x100;

/// A word in a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Met {
    /// Its number, in the order in which the words were given.
    pub(crate) word: usize,
    pub(crate) start: usize,
    pub(crate) end: usize,
}

struct Word {
    /// In lower case.
    bytes: Box<[u8]>,
    number: usize,
    /// Where the bytes that stand in the filter end.
    anchor: usize,
}

/// Words that are looked for together.
pub(crate) struct Keywords {
    /// Each byte in lower case, and [`SHORT`].
    bytes: Box<[u16; 256]>,
    filter: Box<[u64; 1 << (BITS - 6)]>,
    /// By place in the filter.
    words: Vec<Word>,
    /// By place in the filter: its first word.
    first: Vec<u32>,
    /// Words of one or two bytes.
    short: Vec<Word>,
}

impl std::fmt::Debug for Keywords {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Keywords").field("words", &(self.words.len() + self.short.len())).finish_non_exhaustive()
    }
}

impl Keywords {
    /// Empty words are never met.
    pub(crate) fn new<W: AsRef<str>>(words: impl IntoIterator<Item = W>) -> Self {
        let mut bytes = Box::new([0u16; 256]);
        for (b, lower) in (0u8..=255).zip(bytes.iter_mut()) {
            *lower = u16::from(b.to_ascii_lowercase());
        }
        let mut filter = Box::new([0u64; 1 << (BITS - 6)]);
        let (mut long, mut short) = (Vec::new(), Vec::new());
        for (number, word) in words.into_iter().enumerate() {
            let lower: Box<[u8]> = word.as_ref().to_ascii_lowercase().into_bytes().into();
            if let Some(last) = lower.last().copied().filter(|_| lower.len() < 3) {
                for b in [last, last.to_ascii_uppercase()] {
                    if let Some(byte) = bytes.get_mut(usize::from(b)) {
                        *byte |= SHORT;
                    }
                }
                short.push(Word { anchor: lower.len(), bytes: lower, number });
            } else if let Some(at) = rarest(&lower) {
                let key = lower.iter().skip(at).take(3).fold(0u32, |key, b| key << 8 | u32::from(*b));
                if let Some(bits) = filter.get_mut(slot(key) >> 6) {
                    *bits |= 1 << (slot(key) & 63);
                }
                long.push((slot(key), Word { anchor: at + 3, bytes: lower, number }));
            }
        }
        long.sort_by_key(|(slot, word)| (*slot, word.number));
        let first = (0..=1usize << BITS).map(|slot| long.partition_point(|(s, _)| *s < slot) as u32).collect();
        Self { bytes, filter, words: long.into_iter().map(|(_, word)| word).collect(), first, short }
    }

    /// Hands on every place of every word, also where they overlap, until `visit` returns false. The places of one word
    /// come in order.
    pub(crate) fn each(&self, text: &[u8], mut visit: impl FnMut(Met) -> bool) {
        let mut key = 0u32;
        for (at, b) in text.iter().enumerate() {
            let byte = self.bytes.get(usize::from(*b)).copied().unwrap_or_default();
            key = (key << 8 | u32::from(byte & 0xFF)) & 0xFF_FFFF;
            let slot = slot(key);
            let bits = self.filter.get(slot >> 6).copied().unwrap_or_default();
            if bits >> (slot & 63) & 1 == 1 {
                let range = (self.first.get(slot), self.first.get(slot + 1));
                let (Some(from), Some(to)) = range else { continue };
                let words = self.words.get(*from as usize..*to as usize).unwrap_or_default();
                if !words.iter().all(|word| word.visit(text, at + 1, &mut visit)) {
                    return;
                }
            }
            if byte & SHORT != 0 && !self.short.iter().all(|word| word.visit(text, at + 1, &mut visit)) {
                return;
            }
        }
    }
}

/// A regex with the edges of ASCII words for those of Unicode's: the latter send every text with another character to an
/// engine that takes ten times as long.
pub(crate) fn fast_edges(regex: &str) -> String {
    regex.replace(r"\b", r"(?-u:\b)")
}

impl Word {
    /// Visits the word if it stands where its anchor ends at `end`.
    fn visit(&self, text: &[u8], end: usize, visit: &mut impl FnMut(Met) -> bool) -> bool {
        let Some(start) = end.checked_sub(self.anchor) else { return true };
        let end = start + self.bytes.len();
        let edge = |a: Option<&u8>, b: Option<&u8>| a.map(u8::to_ascii_lowercase) == b.copied();
        let is = text.get(start..end).is_some_and(|t| {
            edge(t.first(), self.bytes.first())
                && edge(t.last(), self.bytes.last())
                && t.eq_ignore_ascii_case(&self.bytes)
        });
        !is || visit(Met { word: self.number, start, end })
    }
}

/// Multiplicative hashing (Knuth, TAOCP 6.4).
#[inline]
fn slot(key: u32) -> usize {
    (key.wrapping_mul(0x9E37_79B1) >> (32 - BITS)) as usize
}

/// Where the three bytes stand that ordinary text has least.
fn rarest(word: &[u8]) -> Option<usize> {
    let common = |w: &[u8]| w.iter().map(|b| commonness(*b)).sum::<u32>();
    word.windows(3).enumerate().min_by_key(|(_, w)| common(w)).map(|(at, _)| at)
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
        fn as_one_by_one(words in proptest::collection::vec("[abC-é]{1,5}", 0..12), text in "[aBbcC-é]{0,60}") {
            let plain: Vec<&str> = words.iter().map(String::as_str).collect();
            let mut want = Vec::new();
            for (number, word) in words.iter().enumerate() {
                for start in 0..text.len() {
                    let end = start + word.len();
                    if text.as_bytes().get(start..end).is_some_and(|t| t.eq_ignore_ascii_case(word.as_bytes())) {
                        want.push((number, start, end));
                    }
                }
            }
            proptest::prop_assert_eq!(met(&plain, &text), want);
        }
    }
}
