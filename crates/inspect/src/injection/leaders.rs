//! Leaders: the rows of dots between a title and its page that tables of contents are set with (`Scope . . . . . 4`). Each dot counts
//! for the model as much as a word, so that one row of them would outweigh all that stands around it.

use std::{borrow::Cow, sync::LazyLock};

use memchr::memmem::Finder;

/// Dots and the blanks around them from which a row is a leader.
static ROW: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(" . . . . "));

/// A normalised text with one dot for each leader.
pub(super) struct Short<'t> {
    pub(super) text: Cow<'t, str>,
    /// Where a leader ends in `text`, and how many bytes were left out up to there.
    cuts: Vec<(usize, usize)>,
}

impl<'t> Short<'t> {
    pub(super) fn of(normal: &'t str) -> Self {
        let (mut text, mut cuts, mut copied) = (String::new(), Vec::new(), 0);
        while let Some(found) = normal.get(copied..).and_then(|rest| ROW.find(rest.as_bytes())) {
            // With its first dot.
            let keep = copied + found + 2;
            let dots =
                normal.as_bytes().get(keep..).unwrap_or_default().chunks(2).take_while(|two| *two == b" .").count();
            text.push_str(normal.get(copied..keep).unwrap_or_default());
            copied = keep + 2 * dots;
            cuts.push((text.len(), copied - text.len()));
        }
        if cuts.is_empty() {
            return Self { text: Cow::Borrowed(normal), cuts };
        }
        text.push_str(normal.get(copied..).unwrap_or_default());
        Self { text: Cow::Owned(text), cuts }
    }

    /// Where a byte of `text` stands in the normalised text.
    pub(super) fn place(&self, at: usize) -> usize {
        let before = self.cuts.partition_point(|(end, _)| *end <= at);
        at + before.checked_sub(1).and_then(|last| self.cuts.get(last)).map_or(0, |(_, out)| *out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leaders_are_one_dot() {
        for (text, short) in [
            ("1. scope . . . . . 4 2. terms . . . . . . . 5 and so on", "1. scope . 4 2. terms . 5 and so on"),
            ("so . . . it is", "so . . . it is"),
            ("a . . . . .b", "a .b"),
            (" . . . . ", " . "),
            ("", ""),
        ] {
            let led = Short::of(text);
            assert_eq!(led.text, short);
            // Each place has the byte that it is said to have.
            for (at, b) in led.text.bytes().enumerate() {
                assert_eq!(text.as_bytes().get(led.place(at)), Some(&b), "{text} {at}");
            }
        }
    }

    proptest::proptest! {
        #[test]
        fn places_are_right(text in "(?: \\.| |\\.|a|é| \\. \\. \\. \\.){0,60}") {
            let led = Short::of(&text);
            proptest::prop_assert!(!led.text.contains(" . . . . . ") || led.text.len() <= text.len());
            for (at, b) in led.text.bytes().enumerate() {
                proptest::prop_assert_eq!(text.as_bytes().get(led.place(at)), Some(&b));
            }
        }
    }
}
