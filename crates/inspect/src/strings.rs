//! The strings of a message, each with the credentials in it.

use std::borrow::Cow;

use firedoor_model::wire::{Leaf, Leaves};

use crate::{
    Inspector,
    ahead::{Ahead, Words},
    credentials,
};

impl Inspector {
    /// Walks all strings and numbers of `raw` and hands each on with its credentials. A value whose member's name says
    /// that it is a secret is read as the assignment that it is, and so is a member `value` beside one that names it (`"label": "PASSWORD"`).
    pub(crate) fn each_string<'s>(&'s self, raw: &str, visit: OnString<'_, 's>) {
        let mut secret_key: Option<String> = None;
        let mut labelled = Labelled::default();
        let mut joined = Vec::new();
        let mut leaves = Leaves::of(raw);
        let mut ahead = Ahead::new(&self.words, raw);
        while let Some(leaf) = leaves.next() {
            let text = leaf.text.as_bytes();
            let key = if leaf.key { None } else { secret_key.take() };
            if leaf.key {
                labelled.member(&leaf.text);
            } else if labelled.named {
                labelled.is(self.credentials.names_secret(&leaf.text).then_some(&leaf.text));
            }
            if !leaf.key && text.len() < 8 {
                continue;
            }
            // A string with escapes does not stand in the message as it is.
            let words = if matches!(leaf.text, Cow::Borrowed(_)) { ahead.between(leaf.span) } else { Words::UNKNOWN };
            if leaf.key {
                let secret = words.credentials && self.credentials.names_secret(&leaf.text);
                secret_key = secret.then(|| leaf.text.clone().into_owned()).or_else(|| labelled.of_value(&leaf.text));
                if text.len() < 8 {
                    continue;
                }
            }
            let found = words.credentials || credentials::has_shape(text);
            let hits = if found { self.credentials.scan(text) } else { Vec::new() };
            if hits.is_empty()
                && let Some(key) = key
            {
                joined.clear();
                for part in [key.as_bytes(), b"=\"", text, b"\""] {
                    joined.extend_from_slice(part);
                }
                visit(&leaf, &joined, self.credentials.scan(&joined), words, &leaves);
            } else {
                visit(&leaf, text, hits, words, &leaves);
            }
        }
    }
}

/// Most members between one that names a value and the value.
const MAX_BESIDE: usize = 3;

/// A value that another member of its object names.
#[derive(Default)]
struct Labelled {
    /// The last member's name says that it names another.
    named: bool,
    /// What it is called, and how many members followed.
    label: Option<(String, usize)>,
}

impl Labelled {
    fn member(&mut self, name: &str) {
        self.named = matches!(name, "name" | "label" | "key" | "field" | "variable" | "setting" | "title");
        self.label =
            self.label.take().map(|(label, after)| (label, after + 1)).filter(|(_, after)| *after <= MAX_BESIDE);
    }

    /// The label of a secret, or of something else.
    fn is(&mut self, label: Option<&str>) {
        self.label = label.map(|label| (label.to_owned(), 0));
    }

    /// What the member of this name is called, if it is a value.
    fn of_value(&mut self, name: &str) -> Option<String> {
        (name == "value").then(|| self.label.take().map(|(label, _)| label)).flatten()
    }
}

/// What is called for each string: the leaf, the text that the hits' offsets are of, the hits, which words may stand in the
/// leaf, and the walk, which knows its pointer.
pub(crate) type OnString<'v, 's> = &'v mut dyn FnMut(&Leaf<'_>, &[u8], Vec<credentials::Hit<'s>>, Words, &Leaves<'_>);

/// Where in a leaf of `length` bytes a hit stands whose offsets are of the `read` bytes that [`Inspector::each_string`]
/// handed on: the leaf, or an assignment that ends with the leaf and a quotation mark.
pub(crate) fn in_leaf(span: (usize, usize), read: usize, length: usize) -> (usize, usize) {
    let before = read.saturating_sub(length + 1);
    (span.0.saturating_sub(before).min(length), span.1.saturating_sub(before).min(length))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_that_name_others_say_what_these_are() {
        let inspector = Inspector::new();
        let found = |raw: &str| {
            let mut rules = Vec::new();
            inspector.each_string(raw, &mut |leaf, text, hits, _, _| {
                let of = |hit: credentials::Hit<'_>| {
                    let (from, to) = in_leaf(hit.span, text.len(), leaf.text.len());
                    format!("{} {}", hit.rule, leaf.text.get(from..to).unwrap_or_default())
                };
                rules.extend(hits.into_iter().map(of));
            });
            rules
        };
        for (raw, want) in [
            (r#"{"label":"SMTP_PASS","value":"Pepper1985*"}"#, vec!["assigned-password Pepper1985*"]),
            (
                r#"{"id":9,"name":"db_password","type":"text","value":"FLX06569qxf"}"#,
                vec!["assigned-password FLX06569qxf"],
            ),
            (r#"[{"key":"password","note":"a"},{"key":"colour","value":"FLX06569qxf"}]"#, vec![]),
            (r#"{"name":"password","a":1,"b":2,"c":3,"d":4,"value":"FLX06569qxf"}"#, vec![]),
            (r#"{"text":"password","value":"FLX06569qxf"}"#, vec![]),
            (r#"{"password":"FLX06569qxf"}"#, vec!["assigned-password FLX06569qxf"]),
        ] {
            assert_eq!(found(raw), want, "{raw}");
        }
    }
}
