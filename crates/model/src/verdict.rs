//! What is decided about a message.

use serde::{Deserialize, Serialize};

/// The decision about one message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Forward the original bytes.
    Allow,
    /// Hold the message and ask the user.
    Ask,
    /// Refuse the message and explain.
    Block,
}

/// How eagerly Firedoor interrupts. A mode never relaxes the sandbox.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// Record only.
    Watch,
    /// Certain and critical findings block, others above their detector's threshold ask, the rest is recorded.
    #[default]
    Balanced,
    /// As Balanced, and what is new asks as well.
    Strict,
}

impl std::str::FromStr for Mode {
    type Err = String;
    fn from_str(s: &str) -> Result<Self, String> {
        match s {
            "watch" => Ok(Self::Watch),
            "balanced" => Ok(Self::Balanced),
            "strict" => Ok(Self::Strict),
            _ => Err(format!("unknown mode {s:?}: use watch, balanced or strict")),
        }
    }
}

impl std::fmt::Display for Mode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Watch => "watch",
            Self::Balanced => "balanced",
            Self::Strict => "strict",
        })
    }
}
