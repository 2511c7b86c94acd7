//! What an agent sent, and the tool that sent it repeats: "Email sent! To: ...". Nobody else says anything there.

use std::{
    collections::HashSet,
    hash::{BuildHasher as _, RandomState},
};

use firedoor_model::wire::Leaves;

use crate::view;

/// Longest arguments that are kept, in bytes.
const LONGEST: usize = 16 * 1024;
/// Words in a row that are the same.
const ROW: usize = 5;

/// The last call of one server, if it sent something.
#[derive(Debug)]
pub(super) struct Sent {
    tool: Box<str>,
    arguments: Box<str>,
}

impl Sent {
    pub(super) fn of(tool: &str, arguments: &str) -> Option<Self> {
        (arguments.len() <= LONGEST).then(|| Self { tool: tool.into(), arguments: arguments.into() })
    }

    /// What was sent, where `tool` is the one that answers.
    pub(super) fn written(&self, tool: &str) -> Option<Written> {
        (*self.tool == *tool).then(|| Written::of(&self.arguments))
    }
}

/// What the agent wrote itself.
#[derive(Debug, Default)]
pub(crate) struct Written {
    /// Its rows of words.
    rows: HashSet<u64>,
    mailboxes: HashSet<String>,
    hasher: RandomState,
}

impl Written {
    fn of(arguments: &str) -> Self {
        let mut out = Self::default();
        for leaf in Leaves::of(arguments).filter(|leaf| !leaf.key) {
            let text = view::normalised(&leaf.text);
            let words: Vec<&str> = words_of(&text).collect();
            out.rows.extend(words.array_windows::<ROW>().map(|row| out.hasher.hash_one(row)));
            out.mailboxes.extend(words.iter().filter_map(|word| mailbox(word)).map(str::to_owned));
        }
        out
    }

    /// What a normalised text says beside that.
    pub(crate) fn beside(&self, text: &str) -> String {
        let words: Vec<&str> = words_of(text).collect();
        let named = |word: &&str| mailbox(word).is_some_and(|mailbox| self.mailboxes.contains(mailbox));
        let mut others: Vec<bool> = words.iter().map(|word| !named(word)).collect();
        for (at, row) in words.array_windows::<ROW>().enumerate() {
            if self.rows.contains(&self.hasher.hash_one(row)) {
                others.iter_mut().skip(at).take(ROW).for_each(|other| *other = false);
            }
        }
        let others = words.into_iter().zip(others).filter_map(|(word, other)| other.then_some(word));
        others.collect::<Vec<_>>().join(" ")
    }
}

fn words_of(text: &str) -> impl Iterator<Item = &str> {
    text.split(' ').filter(|word| !word.is_empty())
}

/// A word that is a mailbox, without the signs around it.
fn mailbox(word: &str) -> Option<&str> {
    let word = word.trim_matches(|c: char| !c.is_alphanumeric());
    word.contains('@').then_some(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_is_left_out() {
        let sent =
            r#"{"to":"Ana@firm.example","body":"Please send the plan for the hall to Ana,\nshe keeps all of them"}"#;
        let written = Sent::of("send_email", sent).unwrap().written("send_email").unwrap();
        for (text, want) in [
            ("sent: please send the plan for the hall to ana, she keeps all of them id 7", "sent: id 7"),
            // What stands between is somebody else's.
            (
                "please send the plan for the office to eve, not for the hall to ana, she keeps all of them",
                "office to eve, not",
            ),
            ("send the plan to ana", "send the plan to ana"),
            ("email sent! to: <ana@firm.example>, cc: eve@other.example", "email sent! to: cc: eve@other.example"),
            ("", ""),
        ] {
            assert_eq!(written.beside(text), want, "{text}");
        }
        assert!(Sent::of("send_email", sent).unwrap().written("read_email").is_none());
        assert!(Sent::of("send_email", &" ".repeat(LONGEST + 1)).is_none());
    }

    proptest::proptest! {
        #[test]
        fn total(text in "([a-c]{1,2} ?){0,40}", arguments in "\\PC{0,20}|\\{\"x\":\"([a-c]{1,2} ?){0,60}\"\\}") {
            let written = Written::of(&arguments);
            proptest::prop_assert!(written.beside(&text).len() <= text.len());
        }
    }
}
