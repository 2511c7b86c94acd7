//! Rules on their way to the engine, and those that it suggests.

use firedoor_model::{
    Digest, Millis,
    question::Choice,
    rule::{Draft, Match, Origin, Rule},
};
use serde::{Deserialize, Serialize};

/// A rule to add.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WantedRule {
    /// Allow or block.
    pub effect: Choice,
    /// To what.
    pub matches: Match,
    /// When it ends, if it does.
    pub expires: Option<Millis>,
}

impl WantedRule {
    /// As the store takes it.
    pub fn draft(self, created: Millis) -> Draft {
        let Self { effect, matches, expires } = self;
        Draft { effect, matches, origin: Origin::User, created, expires }
    }
}

/// A rule that is suggested.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Suggestion {
    /// What accepting it names.
    pub id: Digest,
    /// The rule, with number 0.
    pub rule: Rule,
    /// Questions that it would have answered.
    pub questions: u32,
}
