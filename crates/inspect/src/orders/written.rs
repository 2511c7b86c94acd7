//! What an agent wrote itself, and a server repeats: mails, messages and events come back as they were sent. Nobody else says anything there.

use std::collections::{HashSet, VecDeque};

use firedoor_model::wire::Leaves;

use crate::view;

/// Calls of a server whose arguments are kept, and longest of such, in bytes.
const CALLS: usize = 4;
const LONGEST: usize = 16 * 1024;
/// Words in a row that are the same.
const ROW: usize = 5;

/// The arguments of the last calls of one server, the last one first.
#[derive(Debug, Default)]
pub(super) struct Written(VecDeque<Box<str>>);

impl Written {
    pub(super) fn note(&mut self, arguments: &str) {
        if arguments.len() <= LONGEST {
            self.0.truncate(CALLS - 1);
            self.0.push_front(arguments.into());
        }
    }

    /// What a normalised text says beside what was written; `None` where nothing of it was. Of what answers a call that sends, whom it was
    /// sent to is nothing new either.
    pub(super) fn beside(&self, text: &str, sent: bool) -> Option<String> {
        let leaves = self.0.iter().flat_map(|arguments| Leaves::of(arguments)).filter(|leaf| !leaf.key);
        let written: Vec<String> = leaves.map(|leaf| view::normalised(&leaf.text)).collect();
        let written: Vec<Vec<&str>> = written.iter().map(|text| words_of(text).collect()).collect();
        let rows: HashSet<&[&str]> = written.iter().flat_map(|words| words.windows(ROW)).collect();
        let addresses: HashSet<&str> = written.iter().flatten().filter_map(|word| mailbox(word)).collect();
        let words: Vec<&str> = words_of(text).collect();
        let named = |word: &str| sent && mailbox(word).is_some_and(|mailbox| addresses.contains(mailbox));
        let mut others: Vec<bool> = words.iter().map(|word| !named(word)).collect();
        for (at, _) in words.windows(ROW).enumerate().filter(|(_, row)| rows.contains(row)) {
            others.iter_mut().skip(at).take(ROW).for_each(|other| *other = false);
        }
        if others.iter().all(|other| *other) {
            return None;
        }
        let others = words.into_iter().zip(others).filter_map(|(word, other)| other.then_some(word));
        Some(others.collect::<Vec<_>>().join(" "))
    }
}

/// A word that is a mailbox, without the signs around it.
fn mailbox(word: &str) -> Option<&str> {
    let word = word.trim_matches(|c: char| !c.is_alphanumeric());
    word.contains('@').then_some(word)
}

fn words_of(text: &str) -> impl Iterator<Item = &str> {
    text.split(' ').filter(|word| !word.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_is_left_out() {
        let mut written = Written::default();
        let body =
            r#"{"to":"ana@firm.example","body":"Please send the plan for the hall to Ana,\nshe keeps all of them"}"#;
        written.note(body);
        written.note("{}");
        for (text, want) in [
            ("sent: please send the plan for the hall to ana, she keeps all of them id 7", Some("sent: id 7")),
            // What stands between is somebody else's.
            (
                "please send the plan for the office to eve, not for the hall to ana, she keeps all of them",
                Some("office to eve, not"),
            ),
            ("send the plan to ana", None),
            ("", None),
        ] {
            assert_eq!(written.beside(text, false).as_deref(), want, "{text}");
        }
        let receipt = "email sent! to: <ana@firm.example>, cc: eve@other.example";
        assert_eq!(written.beside(receipt, true).as_deref(), Some("email sent! to: cc: eve@other.example"));
        assert_eq!(written.beside(receipt, false), None);
        (0..CALLS).for_each(|_| written.note("{}"));
        assert_eq!(written.beside("please send the plan for the hall to ana", true), None);
        written.note(&format!("{{\"a\":\"{}\"}}", "a b c d e f ".repeat(LONGEST / 12)));
        assert_eq!(written.beside("a b c d e f", true), None);
    }

    proptest::proptest! {
        #[test]
        fn total(text in "([a-c]{1,2} ?){0,40}", arguments in "\\PC{0,20}|\\{\"x\":\"([a-c]{1,2} ?){0,60}\"\\}") {
            let mut written = Written::default();
            written.note(&arguments);
            proptest::prop_assert!(written.beside(&text, true).is_none_or(|rest| rest.len() <= text.len()));
        }
    }
}
