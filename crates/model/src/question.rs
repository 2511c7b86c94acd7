//! A held call that waits for the user, and the answer.

use serde::{Deserialize, Serialize};

use crate::{Digest, EntryId, Finding, Millis, Untrusted, network::HostGrant};

/// Short reference of a decision: upper-case hex digits, four or more of them where Firedoor gives one, such as `7F3A`. It
/// stands in refusal texts, the log and `firedoor answer`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ref(pub String);

/// Most digits of one: those of a digest.
const MAX_REF: usize = 64;

/// A text that is no reference.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a reference is a few hex digits, such as 7F3A: see `firedoor pending`")]
pub struct RefError;

impl std::str::FromStr for Ref {
    type Err = RefError;

    /// In upper case or lower.
    fn from_str(text: &str) -> Result<Self, RefError> {
        let good = (1..=MAX_REF).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_hexdigit());
        if good { Ok(Self(text.to_ascii_uppercase())) } else { Err(RefError) }
    }
}

crate::serde_as_text!(Ref);

impl std::fmt::Display for Ref {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

/// What the user decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Choice {
    /// Let the call pass.
    Allow,
    /// Refuse it.
    Block,
}

/// How long the decision holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Duration {
    /// This one call.
    #[default]
    Once,
    /// Until the agent's session ends.
    Session,
    /// As a rule, until removed or until the server changes.
    Always,
}

/// What an allow for longer than once holds for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// The same call: server, tool and arguments.
    Call,
    /// The tool, and where the call names an address, this address.
    #[default]
    Tool,
}

/// How far an answer reaches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Extent {
    /// In time.
    pub duration: Duration,
    /// In calls.
    pub scope: Scope,
}

impl From<Duration> for Extent {
    fn from(duration: Duration) -> Self {
        Self { duration, scope: Scope::default() }
    }
}

/// A connection that a server wants to make and that waits for the answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Connection {
    /// Name or address, and port.
    pub to: HostGrant,
    /// The program that wants it, and its pid.
    pub program: Untrusted,
}

/// A question as the CLI and the desktop show it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Question {
    /// How to refer to it.
    pub id: Ref,
    /// The server asked about.
    pub entry: EntryId,
    /// The agent that made the call: executable name and pid of the client process.
    pub client: Untrusted,
    /// The tool called; host and port when it is about a connection.
    pub tool: Untrusted,
    /// What waits, when it is a connection of the server and not a call of the agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connection: Option<Connection>,
    /// Where the call would send something, when its arguments name exactly one address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<Untrusted>,
    /// Whatever is chosen, an allow holds for this exact call only: where its data would go is not known.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub exact: bool,
    /// Why the user is asked.
    pub findings: Vec<Finding>,
    /// The call's full arguments, secrets masked.
    pub arguments: Untrusted,
    /// Hash over server, tool and arguments: what a permit is good for.
    pub call: Digest,
    /// When the call arrived.
    pub asked: Millis,
    /// Until when the call itself is held.
    pub held_until: Millis,
    /// Until when the question can be answered.
    pub open_until: Millis,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reference_is_hex_digits_and_nothing_else() {
        for (text, want) in [("7F3A", Some("7F3A")), ("7f3a", Some("7F3A")), ("00", Some("00"))] {
            assert_eq!(text.parse().ok(), want.map(|id| Ref(id.into())));
        }
        let long = "A".repeat(MAX_REF + 1);
        for bad in ["", "7F3G", "\u{1b}[2J", "A A", &long] {
            assert_eq!(bad.parse::<Ref>(), Err(RefError), "{bad:?}");
            assert!(serde_json::from_value::<Ref>(bad.into()).is_err(), "{bad:?}");
        }
    }
}
