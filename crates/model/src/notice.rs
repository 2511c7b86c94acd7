//! What the watcher of configurations saw happen.

use serde::{Deserialize, Serialize};

use crate::Untrusted;

/// What became of a server's entry, or of a file, in a client's configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Noticed {
    /// A server is new.
    Appeared,
    /// What an entry starts or reaches is another than before.
    Changed,
    /// The entry was protected, and somebody else than Firedoor has put the server back in the shim's place.
    Dropped,
    /// It was protected, and the whole entry is gone.
    Removed,
    /// It is protected now.
    Protected,
    /// Firedoor gave it back.
    Restored,
    /// A file can no longer be read.
    Unreadable,
    /// A file has appeared that Firedoor leaves alone.
    LeftAlone,
}

/// One thing that happened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Notice {
    /// What.
    pub noticed: Noticed,
    /// The client's name for people, from the catalog.
    pub client: String,
    /// Which file.
    pub path: Untrusted,
    /// Whether this client had no file before.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub first: bool,
    /// What is wrong with the file, or with the entry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<Untrusted>,
}

impl Notice {
    /// In one sentence, about the server of this name, safe to show.
    pub fn in_words(&self, server: Option<&str>) -> String {
        let server = format!("{:?}", Untrusted::new(server.unwrap_or_default()));
        let (client, path) = (&self.client, self.path.visible(300));
        let mut text = match self.noticed {
            Noticed::Appeared if self.first => format!("{client} is new here, with the server {server} in {path}"),
            Noticed::Appeared => format!("new server {server} in {client} ({path})"),
            Noticed::Changed => format!("the server {server} in {client} was changed ({path})"),
            Noticed::Dropped => format!("{client} dropped Firedoor from {server} ({path}): it runs unprotected"),
            Noticed::Removed => format!("the server {server} was removed from {client} ({path})"),
            Noticed::Protected => format!("the server {server} in {client} is protected now ({path})"),
            Noticed::Restored => format!("the server {server} in {client} was given back ({path})"),
            Noticed::Unreadable => format!("a file of {client} can no longer be read ({path})"),
            Noticed::LeftAlone => format!("a file of {client} has appeared that Firedoor leaves alone ({path})"),
        };
        if let Some(detail) = &self.detail {
            text.push_str(&format!(": {}", detail.visible(300)));
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences_hide_nothing() {
        let notice = |noticed, first| Notice {
            noticed,
            client: "Cursor".into(),
            path: "/h/\u{202e}x".into(),
            first,
            detail: None,
        };
        for (noticed, first, want) in [
            (Noticed::Appeared, false, "new server “a⟨U+200B⟩” in Cursor (/h/⟨U+202E⟩x)"),
            (Noticed::Appeared, true, "Cursor is new here, with the server “a⟨U+200B⟩” in /h/⟨U+202E⟩x"),
            (Noticed::Dropped, false, "Cursor dropped Firedoor from “a⟨U+200B⟩” (/h/⟨U+202E⟩x): it runs unprotected"),
        ] {
            assert_eq!(notice(noticed, first).in_words(Some("a\u{200b}")), want);
        }
    }
}
