//! Findings and rules to a verdict; the question state machine. Pure, sans-I/O.
//!
//! [`judge`] decides about one message. [`Desk`] holds what the decisions of one engine leave behind: open questions,
//! permits, and what was allowed or refused for the rest of a session. [`refusal`] words what the agent is told.
//!
//! Architecture invariants: no I/O, no clock, no randomness (times and a seed are passed in); a detector's finding never
//! decides, and an explicit block beats every allow.

mod call;
mod decision;
mod desk;
#[cfg(test)]
mod fixtures;
mod judge;
mod refs;
mod refusal;
mod session;
mod suggest;
mod thresholds;

pub use call::Call;
pub use decision::{Decision, Input, MessageKind, NEW_TOOL, Reason, Subject};
pub use desk::{
    Allowed, AnswerError, Answered, Ask, Desk, Event, HOLD_MS, HeldId, MAX_HELD, MAX_HOSTS_OF_ONE, MAX_OPEN,
    MAX_OPEN_OF_ONE, OPEN_MS, Opening, Round, Settled, Standing,
};
pub use judge::{judge, verdict_for_record};
pub use refs::Refs;
pub use refusal::{Refusal, as_error, as_tool_result, refusal};
pub use session::{Intent, Permit, SessionId, SessionRules};
pub use suggest::{Bindings, LEARNING_MS, Suggestion, suggest};
pub use thresholds::{FAMILIES, HOST, Threshold, is_nameable, threshold};
