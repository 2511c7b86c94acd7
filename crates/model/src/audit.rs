//! What is written down. Nothing secret: excerpts arrive masked, arguments are never stored.

use serde::{Deserialize, Serialize};

use crate::{
    ClientProcess, Digest, EntryId, Finding, Millis, Untrusted, Verdict,
    notice::Notice,
    question::{Choice, Duration, Ref},
};

/// One event, before it is chained and numbered by the store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    /// When.
    pub at: Millis,
    /// Which server, if it is about one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entry: Option<EntryId>,
    /// Which session of the engine, if any. Unique within one run of the engine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<u64>,
    /// The client process, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<ClientProcess>,
    /// What happened.
    pub what: What,
}

fn one() -> u64 {
    1
}

/// The kinds of event.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum What {
    /// A server was started; `level` is the sandbox level really in force.
    Started {
        /// Hash of what was started (executable or script, package, arguments).
        launch: Digest,
        /// Human-readable sandbox level.
        level: String,
    },
    /// An engine took a running server over from one that died.
    Resumed,
    /// A server ended.
    Ended {
        /// Exit code or signal, in words.
        status: String,
    },
    /// A server could not be started, or was refused.
    Refused {
        /// Why, in our words.
        reason: String,
    },
    /// A message that was judged. Calls are always written, other messages when they have findings.
    Judged {
        /// MCP method, such as `tools/call`.
        method: Untrusted,
        /// Tool, prompt or resource.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        subject: Option<Untrusted>,
        /// The verdict that took effect.
        verdict: Verdict,
        /// The decision's reference, when it was not a silent allow.
        #[serde(default, rename = "ref", skip_serializing_if = "Option::is_none")]
        reference: Option<Ref>,
        /// Why.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        findings: Vec<Finding>,
    },
    /// A person answered a question.
    Answered {
        /// Which question.
        #[serde(rename = "ref")]
        reference: Ref,
        /// What was chosen.
        choice: Choice,
        /// For how long.
        duration: Duration,
    },
    /// A held call was refused because nobody had answered in time. Its question stays open.
    Unanswered {
        /// Which question.
        #[serde(rename = "ref")]
        reference: Ref,
    },
    /// The agent gave the call up, or has gone, and its question with it.
    Withdrawn {
        /// Which question.
        #[serde(rename = "ref")]
        reference: Ref,
    },
    /// A question ended without an answer.
    Expired {
        /// Which question.
        #[serde(rename = "ref")]
        reference: Ref,
    },
    /// Lines that are not JSON-RPC were dropped from a stream.
    Noise {
        /// Their length in bytes.
        bytes: u64,
        /// How many.
        #[serde(default = "one")]
        lines: u64,
    },
    /// Definitions were pinned or changed.
    Pinned {
        /// The tool, prompt, resource or `instructions`.
        subject: Untrusted,
        /// Names of the fields that changed; empty when it was new.
        changed: Vec<String>,
    },
    /// A setting, rule, grant or pin was changed by a command.
    Command {
        /// The command in words, without secrets.
        text: String,
    },
    /// A command that weakens protection came from a process that may not give it.
    Denied {
        /// The command in words.
        text: String,
        /// Who asked: executable and pid.
        by: Untrusted,
        /// Why it was refused.
        reason: String,
    },
    /// A client's configuration changed.
    Noticed(Notice),
    /// Something inside Firedoor failed and protection held by refusing.
    Failed {
        /// What failed.
        reason: String,
    },
}
