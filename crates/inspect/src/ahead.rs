//! Words in many short strings, looked for as the strings stand in their message: a stretch of it at a time, because a pass
//! of its own for every string costs more than most strings are long.

use crate::keywords::Keywords;

/// Bytes of a message that are looked at together: at first, for short messages, and at most.
const STRETCH: (usize, usize) = (256, 4096);

/// Which of two kinds of words may stand in a string.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Words {
    /// Those that credentials are found by.
    pub(crate) credentials: bool,
    /// Those that phrases are found by.
    pub(crate) phrases: bool,
}

impl Words {
    /// Nothing is known of a string.
    pub(crate) const UNKNOWN: Self = Self { credentials: true, phrases: true };
}

/// The words of both kinds.
#[derive(Debug)]
pub(crate) struct Both {
    keywords: Keywords,
    /// Words from this number on are of phrases.
    phrases: usize,
}

impl Both {
    /// Words by which credentials are found, and whether capitals count in them; words of phrases.
    pub(crate) fn new<'w>(
        credentials: impl Iterator<Item = (&'w str, bool)>,
        phrases: impl Iterator<Item = &'w str>,
    ) -> Self {
        let mut words: Vec<(&str, bool)> = credentials.collect();
        let first = words.len();
        words.extend(phrases.map(|word| (word, false)));
        Self { keywords: Keywords::with_case(words), phrases: first }
    }
}

/// A walk over a message. Its strings are asked about in order.
pub(crate) struct Ahead<'m> {
    words: &'m Both,
    message: &'m [u8],
    /// What was looked at.
    from: usize,
    to: usize,
    /// How much is looked at next.
    stretch: usize,
    /// Where words of each kind begin, as bits from `from` on.
    begin: [[u64; STRETCH.1 / 64]; 2],
}

impl<'m> Ahead<'m> {
    pub(crate) fn new(words: &'m Both, message: &'m str) -> Self {
        let begin = [[0; STRETCH.1 / 64]; 2];
        Self { words, message: message.as_bytes(), from: 0, to: 0, stretch: STRETCH.0, begin }
    }

    /// Which words may begin between two bytes of the message. Where none may, none stands there.
    pub(crate) fn between(&mut self, (start, end): (usize, usize)) -> Words {
        if end.saturating_sub(start) > self.stretch {
            return Words::UNKNOWN;
        }
        if start < self.from || end > self.to {
            self.look(start);
        }
        let [credentials, phrases] = &self.begin;
        let (start, end) = (start - self.from, end.min(self.to) - self.from);
        Words { credentials: any(credentials, start, end), phrases: any(phrases, start, end) }
    }

    fn look(&mut self, from: usize) {
        let stretch = self.message.get(from..).unwrap_or_default();
        let stretch = stretch.get(..self.stretch).unwrap_or(stretch);
        (self.from, self.to) = (from, from + stretch.len());
        self.begin = [[0; STRETCH.1 / 64]; 2];
        self.words.keywords.each(stretch, |met| {
            let [credentials, phrases] = &mut self.begin;
            let begin = if met.word < self.words.phrases { credentials } else { phrases };
            if let Some(bits) = begin.get_mut(met.start / 64) {
                *bits |= 1 << (met.start % 64);
            }
            true
        });
        self.stretch = (self.stretch * 2).min(STRETCH.1);
    }
}

/// Whether a bit from `start` to before `end` is set.
fn any(bits: &[u64], start: usize, end: usize) -> bool {
    let (Some(last), first) = (end.checked_sub(1), start / 64) else { return false };
    (first..=last / 64).any(|word| {
        let low = if word == first { u64::MAX << (start % 64) } else { u64::MAX };
        let high = if word == last / 64 { u64::MAX >> (63 - last % 64) } else { u64::MAX };
        bits.get(word).is_some_and(|bits| bits & low & high != 0)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn both() -> Both {
        Both::new([("AKIA", true), ("token", false)].into_iter(), ["ignore", "@"].into_iter())
    }

    #[test]
    fn words_of_each_kind() {
        let both = both();
        let message = r#"["Token x", "akia", "please IGNORE it", "nothing", "a@b", 12]"#;
        let mut ahead = Ahead::new(&both, message);
        for (string, credentials, phrases) in [
            ("Token x", true, false),
            ("akia", false, false),
            ("please IGNORE it", false, true),
            ("nothing", false, false),
            ("a@b", false, true),
            ("12", false, false),
        ] {
            let start = message.find(string).unwrap();
            let words = ahead.between((start, start + string.len()));
            assert_eq!(words, Words { credentials, phrases }, "{string}");
        }
    }

    #[test]
    fn what_is_longer_than_a_stretch_is_unknown() {
        let both = both();
        let message = "a".repeat(10_000);
        assert_eq!(Ahead::new(&both, &message).between((1, 9000)), Words::UNKNOWN);
    }

    proptest::proptest! {
        #[test]
        fn no_word_is_missed(parts in proptest::collection::vec("token|ignore|@|AKIA|[ -~]{0,200}", 0..60)) {
            let both = both();
            let message = parts.join("\n");
            let mut ahead = Ahead::new(&both, &message);
            let mut at = 0;
            for part in &parts {
                let words = ahead.between((at, at + part.len()));
                at += part.len() + 1;
                let lower = part.to_ascii_lowercase();
                proptest::prop_assert!(words.credentials || !(lower.contains("token") || part.contains("AKIA")));
                proptest::prop_assert!(words.phrases || !(lower.contains("ignore") || lower.contains('@')));
            }
        }
    }
}
