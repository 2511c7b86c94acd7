//! Standing decisions of the user.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{Digest, EntryId, Millis, Untrusted, question::Choice};

/// Where a rule came from. Managed rules are set by an administrator and cannot be overridden by a prompt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    /// `firedoor rules add` or an import.
    User,
    /// An answer with `--for always`.
    Answer,
    /// A row of the log: what was found there was marked as wrong, or is to be blocked from now on.
    Log,
    /// Proposed from what the user had answered, and accepted.
    Suggestion,
    /// An administrator's file.
    Managed,
}

/// What a rule speaks about. Every present field must match.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Match {
    /// This entry only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entry: Option<EntryId>,
    /// Calls of this client only: the path of its executable, or of the script that it runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<Untrusted>,
    /// This tool only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<Untrusted>,
    /// Findings of this detector only (`flow/secret`), or of a family (`flow/`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detector: Option<String>,
    /// This exact call (server, tool and arguments) only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<Digest>,
    /// Calls only that name this address in their arguments. To be allowed they must name no other, without any doubt; to be
    /// blocked they may.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<Untrusted>,
    /// Only while the server's launch identity is this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub launch: Option<Digest>,
    /// Only while the tool's definition is this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub definition: Option<Digest>,
}

/// A typed row. Shown as a sentence by its [`fmt::Display`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rule {
    /// Row number, given by the store.
    pub id: i64,
    /// What it does.
    pub effect: Choice,
    /// To what.
    pub matches: Match,
    /// Who made it.
    pub origin: Origin,
    /// When it was made.
    pub created: Millis,
    /// When it ends, if it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires: Option<Millis>,
}

/// How often a rule settled something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Use {
    /// How often.
    pub hits: u64,
    /// When last.
    pub last: Millis,
}

/// A rule that has no row yet: what an answer or a command asks the store to keep.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Draft {
    /// What it does.
    pub effect: Choice,
    /// To what.
    pub matches: Match,
    /// Who made it.
    pub origin: Origin,
    /// When it was made.
    pub created: Millis,
    /// When it ends, if it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires: Option<Millis>,
}

impl Draft {
    /// The rule with the row number that the store gave it.
    pub fn numbered(self, id: i64) -> Rule {
        let Self { effect, matches, origin, created, expires } = self;
        Rule { id, effect, matches, origin, created, expires }
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Match { entry, client, tool, detector, call, address, launch, definition } = &self.matches;
        f.write_str(match self.effect {
            Choice::Allow => "Allow",
            Choice::Block => "Block",
        })?;
        match (call, tool) {
            (Some(c), Some(t)) => write!(f, " the exact call {} of {}", &c.to_string()[..8], t.visible(80))?,
            (Some(c), None) => write!(f, " the exact call {}", &c.to_string()[..8])?,
            (None, Some(t)) => write!(f, " {}", t.visible(80))?,
            (None, None) => f.write_str(" every tool")?,
        }
        match entry {
            Some(e) => write!(f, " of {}", Untrusted::new(e.to_string()).visible(200))?,
            None => f.write_str(" of every server")?,
        }
        if let Some(a) = address {
            write!(f, " to {}", a.visible(200))?;
        }
        if let Some(c) = client {
            write!(f, " for {}", c.visible(200))?;
        }
        if let Some(d) = detector {
            write!(f, " when {d} is found")?;
        }
        match (launch, definition) {
            (Some(_), Some(_)) => f.write_str(", while the server and the tool's definition stay as they are")?,
            (Some(_), None) => f.write_str(", while the server stays as it is")?,
            (None, Some(_)) => f.write_str(", while the tool's definition stays as it is")?,
            (None, None) => {}
        }
        if self.expires.is_some() {
            f.write_str(", for a limited time")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_read_as_sentences() {
        let check = |matches: Match, want: &str| {
            let rule =
                Rule { id: 1, effect: Choice::Block, matches, origin: Origin::User, created: Millis(0), expires: None };
            assert_eq!(rule.to_string(), want);
        };
        check(Match::default(), "Block every tool of every server");
        check(
            Match {
                entry: "cursor/user/fs".parse().ok(),
                tool: Some("write_file".into()),
                detector: Some("flow/".into()),
                ..Match::default()
            },
            "Block write_file of cursor/user/fs when flow/ is found",
        );
        check(
            Match { tool: Some("post".into()), address: Some("paste.example.net".into()), ..Match::default() },
            "Block post of every server to paste.example.net",
        );
        check(
            Match { client: Some("/usr/bin/node".into()), ..Match::default() },
            "Block every tool of every server for /usr/bin/node",
        );
    }
}
