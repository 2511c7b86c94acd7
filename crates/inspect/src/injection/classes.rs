//! Classes of words: those of `profiles/detect/word-classes.toml`, and for other words what their form says.

use std::sync::LazyLock;

use serde::Deserialize;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    class: Vec<Row>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    #[serde(rename = "id")]
    _id: String,
    words: Vec<String>,
}

/// Classes of words that the file does not have.
mod form {
    pub(super) const NUMBER: u64 = 200;
    pub(super) const ADDRESS: u64 = 201;
    pub(super) const ING: u64 = 202;
    pub(super) const ED: u64 = 203;
    pub(super) const LY: u64 = 204;
    pub(super) const S: u64 = 205;
    pub(super) const FOREIGN: u64 = 206;
    pub(super) const MIXED: u64 = 207;
    pub(super) const OTHER: u64 = 208;
}
/// What stands between words counts as its character, above this.
const SIGN: u64 = 300;

/// What stands between words, and what words are made of.
const SEPARATOR: u8 = 0;
const LETTER: u8 = 1;
const DIGIT: u8 = 2;
const BEYOND_ASCII: u8 = 4;

const KINDS: [u8; 256] = {
    let mut table = [SEPARATOR; 256];
    let mut b = 0;
    while b < 256 {
        let byte = b as u8;
        table[b] = if byte >= 0x80 {
            BEYOND_ASCII
        } else if byte.is_ascii_digit() {
            DIGIT
        } else if byte.is_ascii_alphabetic() {
            LETTER
        } else {
            SEPARATOR
        };
        b += 1;
    }
    table
};

/// A word of normalised text.
#[derive(Clone, Copy, Debug)]
pub(super) struct Word<'t> {
    bytes: &'t [u8],
    /// Of its bytes; never zero.
    pub(super) hash: u64,
    /// Of which kinds its bytes are.
    kinds: u8,
}

impl<'t> Word<'t> {
    /// The word that a text begins with, and its length: zero where none does.
    #[inline]
    pub(super) fn first(text: &'t [u8]) -> (Self, usize) {
        let (mut hash, mut kinds, mut length) = (0u64, 0, 0);
        for b in text {
            let kind = KINDS.get(usize::from(*b)).copied().unwrap_or_default();
            if kind == SEPARATOR {
                break;
            }
            kinds |= kind;
            hash = (hash ^ u64::from(*b)).wrapping_mul(0x0000_0100_0000_01B3).wrapping_add(1);
            length += 1;
        }
        (Self { bytes: text.get(..length).unwrap_or_default(), hash: hash.max(1), kinds }, length)
    }
}

/// log2 of the places for the words of the file: twice as many as there are words, at least.
const PLACES: u32 = 11;

/// The words of the file by their hash, with linear steps (Knuth, TAOCP 6.4). A word that was made to have another's hash
/// has its class, which is all that it can have.
struct Known(Box<[(u64, u8); 1 << PLACES]>);

impl Known {
    fn new(words: impl Iterator<Item = (Vec<u8>, u8)>) -> Self {
        let mut places = Box::new([(0, 0); 1 << PLACES]);
        for (word, class) in words {
            let hash = Word::first(&word).0.hash;
            let free = (0..places.len()).map(|step| (Self::home(hash) + step) % (1 << PLACES));
            let place = free.into_iter().find(|at| places.get(*at).is_some_and(|(h, c)| *c == 0 || *h == hash));
            if let Some(place) = place.and_then(|at| places.get_mut(at)) {
                *place = (hash, class);
            }
        }
        Self(places)
    }

    #[inline]
    fn home(hash: u64) -> usize {
        (hash.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (64 - PLACES)) as usize
    }

    /// The class of the word with this hash; zero where there is none.
    #[inline]
    fn class(&self, hash: u64) -> u8 {
        let mut at = Self::home(hash);
        while let Some((known, class)) = self.0.get(at % (1 << PLACES)) {
            if *class == 0 || *known == hash {
                return *class;
            }
            at += 1;
        }
        0
    }
}

/// Every word of the file.
pub(super) fn words() -> impl Iterator<Item = Vec<u8>> {
    rows().map(|(word, _)| word)
}

/// Every word of the file and its class, counted from one.
fn rows() -> impl Iterator<Item = (Vec<u8>, u8)> {
    let text = include_str!("../../../../profiles/detect/word-classes.toml");
    #[expect(clippy::expect_used, reason = "the table is part of the program; a test loads it")]
    let file: File = toml::from_str(text).expect("the classes of words that ship with this program are valid");
    let rows = file.class.into_iter().zip(1..);
    rows.flat_map(|(row, class)| row.words.into_iter().map(move |word| (word.into_bytes(), class)))
}

static WORDS: LazyLock<Known> = LazyLock::new(|| Known::new(rows()));

/// The class of a word of normalised text.
pub(super) fn of_word(word: &Word<'_>) -> u64 {
    let class = WORDS.class(word.hash);
    if class != 0 {
        return u64::from(class);
    }
    let (bytes, long) = (word.bytes, word.bytes.len() > 2);
    match bytes {
        _ if word.kinds == DIGIT => form::NUMBER,
        [b'h', b't', b't', b'p', ..] => form::ADDRESS,
        [.., b'i', b'n', b'g'] if long => form::ING,
        [.., b'e', b'd'] if long => form::ED,
        [.., b'l', b'y'] if long => form::LY,
        [_, _, _, .., b's'] => form::S,
        _ if word.kinds & BEYOND_ASCII != 0 => form::FOREIGN,
        _ if word.kinds & DIGIT != 0 => form::MIXED,
        _ => form::OTHER,
    }
}

/// The class of a character between words.
pub(super) fn of_sign(sign: u8) -> u64 {
    SIGN + u64::from(sign)
}

/// The classes of the last five words and signs, and what rows they make.
#[derive(Default)]
pub(super) struct Row5 {
    last: u64,
    /// Those of the last four, spread, the latest first; zero where there was none.
    before: [u64; 4],
}

impl Row5 {
    /// Adds a class and hands on the rows of one to five that end with it, by their length.
    #[inline]
    pub(super) fn push(&mut self, class: u64, mut visit: impl FnMut(u64, u64)) {
        let before = self.before;
        let [first, second, third, _] = before;
        self.before = [class.wrapping_mul(0x2545_F491_4F6C_DD1D).rotate_left(17), first, second, third];
        self.last = class;
        let mut row = class;
        visit(row, 1);
        for (spread, length) in before.into_iter().zip(2..) {
            if spread == 0 {
                return;
            }
            row ^= spread;
            visit(row, length);
        }
    }

    /// The class that was added last; 0 where none was.
    pub(super) fn last(&self) -> u64 {
        self.last
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn of(text: &[u8]) -> u64 {
        let (word, length) = Word::first(text);
        assert_eq!(length, text.len());
        of_word(&word)
    }

    #[test]
    fn words_have_classes() {
        assert_eq!(of(b"send"), of(b"forward"));
        assert_ne!(of(b"send"), of(b"ignore"));
        for (word, class) in [
            (&b"2024"[..], form::NUMBER),
            (b"https", form::ADDRESS),
            (b"walking", form::ING),
            (b"walked", form::ED),
            (b"slowly", form::LY),
            (b"trees", form::S),
            ("größe".as_bytes(), form::FOREIGN),
            (b"x86", form::MIXED),
            (b"tree", form::OTHER),
        ] {
            assert_eq!(of(word), class, "{word:?}");
        }
        // A word of several classes belongs to the last, and each stands by itself among so many places.
        let all: BTreeMap<Vec<u8>, u8> = rows().collect();
        assert!((300..1 << (PLACES - 1)).contains(&all.len()));
        for (word, class) in all {
            assert!(word.iter().all(u8::is_ascii_lowercase) && u64::from(class) < form::NUMBER, "{word:?}");
            assert_eq!(of(&word), u64::from(class), "{word:?}");
        }
    }

    #[test]
    fn rows_end_with_the_latest() {
        let (mut row, mut lengths) = (Row5::default(), Vec::new());
        for class in [1, 2, 3, 4, 5, 6] {
            let mut longest = 0;
            row.push(class, |_, length| longest = length);
            lengths.push(longest);
        }
        assert_eq!((lengths, row.last()), (vec![1, 2, 3, 4, 5, 5], 6));
    }
}
