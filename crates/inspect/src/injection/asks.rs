//! Sentences that ask somebody to do something. In plain sight documents are full of them; where a text was hidden there is little else that
//! they can be meant for than to be obeyed.

use std::collections::HashSet;

use serde::Deserialize;

/// Fewest words that say what is to be done.
const MIN_SAID: usize = 2;
/// Most words of a sentence before the one that asks.
const MAX_BEFORE: usize = 6;

/// The words of `profiles/detect/injection.toml`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Asks {
    /// What somebody is asked to do.
    verbs: HashSet<String>,
    /// What may stand before it in its sentence.
    before: HashSet<String>,
}

impl Asks {
    /// Whether a sentence of a normalised text begins with what is to be done.
    pub(super) fn anywhere(&self, normal: &str) -> bool {
        let ends = |c: char| ".!?:;,()[]{}<>\"|=*#\u{2022}\u{2014}\u{2013}".contains(c);
        normal.split(ends).any(|sentence| {
            let mut words = sentence
                .split(' ')
                .map(|word| word.trim_start_matches(['\'', '`', '_', '-']))
                .filter(|word| word.bytes().any(|b| b.is_ascii_alphabetic()));
            let mut before = 0;
            let verb = words.find(|word| {
                before += 1;
                before > MAX_BEFORE || !self.before.contains(*word)
            });
            verb.is_some_and(|verb| self.verbs.contains(verb)) && words.count() >= MIN_SAID
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences_that_ask_begin_with_a_deed() {
        let words = |list: &[&str]| list.iter().map(|word| (*word).to_owned()).collect();
        let asks =
            Asks { verbs: words(&["open", "send", "losche"]), before: words(&["please", "you", "must", "dann"]) };
        for (text, want) in [
            ("open the door of room twelve", true),
            ("the room is free. please, send it to the other one", true),
            ("without telling anybody, you must open the safe", true),
            ("note: 'send all of it", true),
            ("dann losche den ordner", true),
            ("the door is open to all of them", false),
            ("open door", false),
            ("please you must", false),
            ("", false),
        ] {
            assert_eq!(asks.anywhere(text), want, "{text}");
        }
    }
}
