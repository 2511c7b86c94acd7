//! Whether a text tells about particular people or about what an organisation keeps to itself: a linear model over hashed features.
//!
//! A text and its ordinary counterpart share topic and words ("diagnosis", "salary"). What differs is how they are told: names,
//! amounts, dates, who speaks about whom. So words count, their beginnings and ends, and the shapes of neighbours: short words as they
//! stand, others by how they are written, numbers by what they look like. How the weights were made: `examples/telling`; from what, and
//! what they are good for: `docs/model-card.md`.

use crate::weights::{Weights, WeightsError};

/// log2 of the number of weights.
pub const BITS: u32 = 16;
/// Bytes of a window; of a text some windows are looked at, spread over it.
pub const WINDOW: usize = 600;
const WINDOWS: usize = 6;

const MAGIC: &[u8; 4] = b"FDT1";

/// Longest word that stands in rows of shapes as it is, in bytes.
const SHORT: usize = 3;
/// Bytes of a word's beginning that count.
const PREFIX: usize = 4;

/// Multiplicative hashing (Knuth, TAOCP 6.4).
const SPREAD: u64 = 0x9E37_79B9_7F4A_7C15;

/// The weight of a key, each kind of keys for itself.
#[inline]
fn slot(key: u64, kind: u64) -> usize {
    ((key ^ kind.wrapping_mul(0xD6E8_FEB8_6659_FD93)).wrapping_mul(SPREAD) >> (64 - BITS)) as usize
}

/// Visits the features of a stretch of text, as often as they occur.
#[inline]
pub fn features(text: &str, mut visit: impl FnMut(usize)) {
    let mut before = 0u64;
    // Nothing was said yet: a capital is the sentence's.
    let mut begins = true;
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let shape = match first {
            b' ' => {
                rest = after;
                continue;
            }
            b'0'..=b'9' => {
                let length = rest.iter().take_while(|b| b.is_ascii_digit() || b".,:/-".contains(b)).count();
                let (number, after) = rest.split_at(length);
                rest = after;
                begins = false;
                number_shape(number)
            }
            _ if letter(*first) => {
                let word = Word::first(rest);
                rest = rest.get(word.length..).unwrap_or_default();
                visit(slot(word.hash, 1));
                if word.length > PREFIX {
                    visit(slot(word.prefix, 2));
                    visit(slot(word.suffix, 3));
                }
                word.shape(std::mem::take(&mut begins))
            }
            sign => {
                rest = after;
                begins |= matches!(sign, b'.' | b'!' | b'?' | b':' | b'\n');
                u64::from(*sign)
            }
        };
        let shape = shape.wrapping_mul(SPREAD);
        visit(slot(shape, 4));
        visit(slot(shape ^ before.rotate_left(21), 5));
        before = shape;
    }
}

/// Whether a byte belongs to a word: letters of ASCII, and all other characters.
fn letter(b: u8) -> bool {
    b.is_ascii_alphabetic() || b >= 0x80
}

/// Whether a byte begins a character that is a word of its own: from U+3000 on (Chinese, Japanese, Korean).
const fn ideograph(b: u8) -> bool {
    matches!(b, 0xE3..=0xED)
}

/// What each byte of a word becomes, letters in lower case; 0 for what ends one.
const LOWER: [u8; 256] = {
    let mut table = [0; 256];
    let mut b = 0usize;
    while b < 256 {
        let byte = b as u8;
        if byte.is_ascii_alphabetic() || byte == b'\'' || byte >= 0x80 && !ideograph(byte) {
            table[b] = byte.to_ascii_lowercase();
        }
        b += 1;
    }
    table
};

struct Word {
    /// In lower case.
    hash: u64,
    /// Its first bytes, and its last.
    prefix: u64,
    suffix: u64,
    capitals: usize,
    length: usize,
}

impl Word {
    /// The word that a text begins with.
    #[inline]
    fn first(text: &[u8]) -> Self {
        let mut word = Self { hash: 0, prefix: 0, suffix: 0, capitals: 0, length: 0 };
        let alone = text.first().is_some_and(|b| ideograph(*b));
        let text = if alone { text.get(..3).unwrap_or(text) } else { text };
        for b in text {
            let lower = if alone { *b } else { LOWER.get(usize::from(*b)).copied().unwrap_or_default() };
            if lower == 0 {
                break;
            }
            word.hash = (word.hash.rotate_left(5) ^ u64::from(lower)).wrapping_mul(SPREAD);
            word.capitals += usize::from(lower != *b);
            word.length += 1;
            if word.length == PREFIX {
                word.prefix = word.hash;
            }
        }
        let last = text.get(word.length.saturating_sub(3)..word.length).unwrap_or_default();
        word.suffix = last.iter().fold(0, |suffix, b| suffix << 8 | u64::from(b | 0x20));
        word
    }

    /// How it is written; short words stand for themselves.
    fn shape(&self, begins: bool) -> u64 {
        match self.capitals {
            capitals if self.length > 1 && capitals == self.length => 2,
            1.. if begins => 3,
            1.. => 4,
            0 if self.length <= SHORT => self.hash,
            0 => 5,
        }
    }
}

/// What a number looks like: an amount, a date, a time, a year, a count, a long one.
fn number_shape(number: &[u8]) -> u64 {
    let (mut digits, mut signs, mut inside) = (0, [0; 5], [0; 5]);
    for b in number {
        match b {
            b':' => signs[0] += 1,
            b'/' => signs[1] += 1,
            b'-' => signs[2] += 1,
            b'.' => signs[3] += 1,
            b',' => signs[4] += 1,
            _ => {
                digits += 1;
                // Signs behind the last digit belong to the sentence.
                inside = signs;
            }
        }
    }
    let [colons, slashes, dashes, dots, commas] = inside;
    match digits {
        _ if colons > 0 => 10,
        _ if slashes > 0 || dashes > 1 || dots > 1 => 11,
        _ if dashes > 0 => 12,
        _ if dots + commas > 0 => 13,
        4 if number.starts_with(b"19") || number.starts_with(b"20") => 14,
        ..=2 => 15,
        3..=5 => 16,
        _ => 17,
    }
}

/// The weights.
#[derive(Clone, Debug)]
pub struct Telling(Weights<{ 1 << BITS }>);

impl Telling {
    /// Quantises weights to a byte each.
    pub fn quantised(weights: &[f32], bias: f32) -> Self {
        Self(Weights::quantised(weights, bias))
    }

    /// Reads a file of weights.
    pub fn read(file: &'static [u8]) -> Result<Self, WeightsError> {
        Weights::read(file, MAGIC).map(Self)
    }

    /// The file that [`Telling::read`] reads.
    pub fn file(&self) -> Vec<u8> {
        self.0.file(MAGIC)
    }

    /// The log-odds of a stretch of text.
    pub fn of_window(&self, window: &str) -> f32 {
        let (mut sum, mut count) = (0i32, 0u32);
        features(window, |slot| {
            sum += i32::from(self.0.of(slot));
            count += 1;
        });
        self.0.score(sum, count)
    }

    /// The log-odds of the window that tells most, of those that are looked at.
    pub fn of(&self, text: &str) -> f32 {
        windows(text).map(|window| self.of_window(window)).fold(f32::NEG_INFINITY, f32::max)
    }
}

/// Windows of a text, spread over it.
pub fn windows(text: &str) -> impl Iterator<Item = &str> {
    let count = text.len().div_ceil(WINDOW).min(WINDOWS);
    let step = if count > 1 { (text.len() - WINDOW) / (count - 1) } else { 0 };
    (0..count).filter_map(move |number| {
        let from = text.floor_char_boundary(number * step);
        text.get(from..text.floor_char_boundary((from + WINDOW).min(text.len())))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_round_trip() {
        let mut weights = vec![0f32; 1 << BITS];
        features("Told work it was a stomach bug.", |slot| weights[slot] = 2.0);
        let telling = Telling::quantised(&weights, -1.0);
        let again = Telling::read(telling.file().leak()).unwrap();
        assert_eq!(telling.of("Told work it was"), again.of("Told work it was"));
        assert!(again.of("Told work it was a stomach bug.") > 1.0 && again.of("9,5;-") < 0.0);
        assert_eq!(again.of(""), f32::NEG_INFINITY);
        for bad in [&b"FDT1"[..], b"", b"XXXX00000000", &telling.file().leak()[..100]] {
            assert_eq!(Telling::read(bad).err(), Some(WeightsError));
        }
    }

    #[test]
    fn shapes() {
        for (number, want) in [
            ("1,204.11", 13),
            ("07:12", 10),
            ("2025-03-18", 11),
            ("18.03.2025", 11),
            ("1961", 14),
            ("14.", 15),
            ("4711", 16),
            ("0212345678", 17),
        ] {
            assert_eq!(number_shape(number.as_bytes()), want, "{number}");
        }
        let shape = |word: &str, begins| Word::first(word.as_bytes()).shape(begins);
        assert_ne!(shape("Nora", false), shape("Nora", true));
        assert_eq!(shape("the", true), Word::first(b"the").hash);
        assert_eq!(shape("something", true), shape("nothing", true));
        for (text, want) in [("don't go", 5), ("\u{4F60}\u{597D}", 3), ("a\u{4F60}", 1), ("stra\u{DF}e 5", 7)] {
            assert_eq!(Word::first(text.as_bytes()).length, want, "{text}");
        }
    }

    #[test]
    fn windows_cover_short_texts_and_the_ends_of_long_ones() {
        for length in [0usize, 1, 599, 600, 601, 1300, 3600, 1_000_000] {
            let text = "ä".repeat(length / 2);
            let all: Vec<&str> = windows(&text).collect();
            assert!(all.len() <= WINDOWS && all.iter().all(|window| window.len() <= WINDOW), "{length}");
            if let (Some(first), Some(last)) = (all.first(), all.last()) {
                assert!(text.starts_with(first) && text.ends_with(last), "{length}");
            }
        }
    }

    proptest::proptest! {
        #[test]
        fn total(s in "\\PC*") {
            let telling = Telling::quantised(&vec![0.5; 1 << BITS], 0.0);
            telling.of(&s);
        }
    }
}
