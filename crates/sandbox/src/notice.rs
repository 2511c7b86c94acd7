//! What there is to tell about a server that runs.

use firedoor_model::network::{Attempt, HostQuestion};
use serde::{Deserialize, Serialize};

/// What the guardian tells about a server that runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Notice {
    /// Something was refused.
    Attempted(Attempt),
    /// A connection waits for [`crate::Tree::rule`].
    Asked(HostQuestion),
    /// Nothing waits for the answer to the question with this number any more.
    Withdrawn(u64),
}
