//! What is judged, and what came out.

use std::borrow::Cow;

use firedoor_model::{
    ClientProcess, Digest, EntryId, Finding, Millis, Mode, Untrusted, Verdict,
    question::Ref,
    rule::{Origin, Rule},
};

use crate::{
    call::Call,
    desk::{Allowed, Round},
};

/// The name that stands for a detector when Strict asks about a tool's first use. Rules can name it.
pub const NEW_TOOL: &str = "policy/new-tool";

/// What a message is about: what rules are matched against.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subject {
    /// The server.
    pub entry: EntryId,
    /// The client, where known.
    pub client: Option<ClientProcess>,
    /// The tool, prompt or resource; absent for what belongs to the server as a whole, such as its instructions.
    pub tool: Option<Untrusted>,
    /// The call.
    pub call: Call,
    /// The address that it would send something to, where its arguments name exactly one and leave no doubt.
    pub address: Option<Untrusted>,
    /// Addresses of blocking rules that its arguments name in any place.
    pub mentions: Vec<Untrusted>,
    /// What was started, where known.
    pub launch: Option<Digest>,
    /// The tool's definition, where it was seen.
    pub definition: Option<Digest>,
}

/// Which way a message goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MessageKind {
    /// A request of the agent.
    Call,
    /// Anything else: results, lists, notifications, requests of the server. A permit is leave to make a call and says
    /// nothing about what comes back.
    Other,
}

/// Everything a judgement depends on besides the session's own decisions.
#[derive(Clone, Copy, Debug)]
pub struct Input<'a> {
    /// How eagerly Firedoor interrupts.
    pub mode: Mode,
    /// What the detectors saw.
    pub findings: &'a [Finding],
    /// Whether it asks for something to be done or brings something back.
    pub kind: MessageKind,
    /// What the message is about.
    pub subject: &'a Subject,
    /// Every standing rule, managed ones included, in any order.
    pub rules: &'a [Rule],
    /// Now.
    pub now: Millis,
    /// The tool's definition changed and was not accepted.
    pub quarantined: bool,
    /// The tool was never used before.
    pub new_tool: bool,
    /// The user is not to be asked for now.
    pub paused: bool,
    /// What it says that it goes on with, when it is a call that was made before.
    pub round: Option<Round<'a>>,
}

/// What happens to the message, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    /// What happens.
    pub verdict: Verdict,
    /// What settled it.
    pub reason: Reason,
    /// Places in `findings` of those worth a question; empty unless the verdict is Ask. May be empty even then: a
    /// tool's first use is asked about without a finding.
    pub asks: Vec<usize>,
    /// The allowed call that this one goes on with. It is not expected again.
    pub round: Option<Allowed>,
}

/// What settled a decision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reason {
    /// Nothing was found.
    Clean,
    /// What was found is below every threshold, or the mode only records.
    Recorded,
    /// A standing rule.
    Rule {
        /// Its number.
        id: i64,
        /// Who made it.
        origin: Origin,
    },
    /// An answer that holds for this session.
    SessionRule {
        /// The question that was answered.
        reference: Ref,
    },
    /// The user refused the same intent in this session.
    Denied {
        /// The question that was answered.
        reference: Ref,
    },
    /// The tool waits for the user to look at its changed definition.
    Quarantined,
    /// A late answer allowed exactly this call, once.
    Permit {
        /// The question that was answered.
        reference: Ref,
    },
    /// The user allowed the call before, and its server wanted to know something first.
    Round,
    /// What a detector saw: the gravest of the findings that count.
    Finding {
        /// Its name.
        detector: Cow<'static, str>,
    },
    /// The mode asks about the first use of a tool.
    NewTool,
}

impl Reason {
    /// The number of the standing rule, if it was one.
    pub fn rule(&self) -> Option<i64> {
        match self {
            Self::Rule { id, .. } => Some(*id),
            _ => None,
        }
    }
}
