//! Classes of words: those of `profiles/detect/word-classes.toml`, and for other words what their form says.

use std::{collections::HashMap, sync::LazyLock};

use foldhash::fast::FixedState;
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

static WORDS: LazyLock<HashMap<Vec<u8>, u64, FixedState>> = LazyLock::new(|| {
    let text = include_str!("../../../../profiles/detect/word-classes.toml");
    #[expect(clippy::expect_used, reason = "the table is part of the program; a test loads it")]
    let file: File = toml::from_str(text).expect("the classes of words that ship with this program are valid");
    let rows = file.class.into_iter().zip(1..);
    rows.flat_map(|(row, class)| row.words.into_iter().map(move |word| (word.into_bytes(), class))).collect()
});

/// The class of a word of normalised text.
pub(super) fn of_word(word: &[u8]) -> u64 {
    if let Some(class) = WORDS.get(word) {
        return *class;
    }
    let long = word.len() > 2;
    match word {
        w if w.iter().all(u8::is_ascii_digit) => form::NUMBER,
        w if w.starts_with(b"http") => form::ADDRESS,
        w if long && w.ends_with(b"ing") => form::ING,
        w if long && w.ends_with(b"ed") => form::ED,
        w if long && w.ends_with(b"ly") => form::LY,
        w if word.len() > 3 && w.ends_with(b"s") => form::S,
        w if !w.is_ascii() => form::FOREIGN,
        w if w.iter().any(u8::is_ascii_digit) => form::MIXED,
        _ => form::OTHER,
    }
}

/// The class of a character between words.
pub(super) fn of_sign(sign: u8) -> u64 {
    SIGN + u64::from(sign)
}

/// The classes of the last five words and signs, and what rows they make.
#[derive(Default)]
pub(super) struct Row5([u64; 5]);

impl Row5 {
    /// Adds a class and hands on the rows of one to five that end with it, by their length.
    #[inline]
    pub(super) fn push(&mut self, class: u64, mut visit: impl FnMut(u64, u64)) {
        let [_, second, third, fourth, fifth] = self.0;
        self.0 = [second, third, fourth, fifth, class];
        let mut row = class;
        visit(row, 1);
        for (before, length) in [(fifth, 2), (fourth, 3), (third, 4), (second, 5)] {
            if before == 0 {
                return;
            }
            row ^= before.wrapping_mul(0x2545_F491_4F6C_DD1D).rotate_left(17);
            visit(row, length);
        }
    }

    /// The class that was added last; 0 where none was.
    pub(super) fn last(&self) -> u64 {
        self.0[4]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_have_classes() {
        assert_eq!(of_word(b"send"), of_word(b"forward"));
        assert_ne!(of_word(b"send"), of_word(b"ignore"));
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
            assert_eq!(of_word(word), class, "{word:?}");
        }
        let normal = |word: &Vec<u8>| word.iter().all(|b| b.is_ascii_lowercase());
        assert!(WORDS.len() > 300 && WORDS.keys().all(normal) && WORDS.values().all(|class| *class < form::NUMBER));
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
