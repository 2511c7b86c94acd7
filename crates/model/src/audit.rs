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
        /// The standing rule that settled it, if one did: what was found was allowed, or the call blocked, by it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        rule: Option<i64>,
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

/// What became of something, in few kinds: for filtering and for counting.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// It passed, and nothing was found.
    Allowed,
    /// It passed, and what was found is on record.
    Recorded,
    /// The user was asked.
    Asked,
    /// It did not pass.
    Blocked,
    /// The user answered.
    Answered,
    /// A server came or went.
    Server,
    /// Definitions, settings, rules or grants changed.
    Changed,
    /// Something failed.
    Failed,
}

impl What {
    /// Its kind.
    pub fn outcome(&self) -> Outcome {
        match self {
            Self::Started { .. } | Self::Resumed | Self::Ended { .. } => Outcome::Server,
            Self::Judged { verdict: Verdict::Block, .. } | Self::Refused { .. } | Self::Unanswered { .. } => {
                Outcome::Blocked
            }
            Self::Judged { verdict: Verdict::Ask, .. } => Outcome::Asked,
            Self::Judged { findings, .. } if findings.is_empty() => Outcome::Allowed,
            Self::Judged { .. } => Outcome::Recorded,
            Self::Answered { .. } | Self::Withdrawn { .. } | Self::Expired { .. } => Outcome::Answered,
            Self::Pinned { .. } | Self::Command { .. } | Self::Noticed(_) => Outcome::Changed,
            Self::Denied { .. } => Outcome::Blocked,
            Self::Noise { .. } | Self::Failed { .. } => Outcome::Failed,
        }
    }

    /// Everything in it that a person may look for.
    fn words(&self) -> Vec<&str> {
        match self {
            Self::Started { level: text, .. }
            | Self::Ended { status: text }
            | Self::Refused { reason: text }
            | Self::Command { text }
            | Self::Failed { reason: text } => vec![text],
            Self::Denied { text, by, reason } => vec![text, by.raw(), reason],
            Self::Judged { method, subject, reference, findings, .. } => {
                let found = findings.iter().flat_map(|f| {
                    let places = f.evidence.iter().map(|e| e.excerpt.raw());
                    [f.detector.as_ref(), f.summary.as_str()].into_iter().chain(places)
                });
                let subject = subject.iter().map(Untrusted::raw);
                let reference = reference.iter().map(|r| r.0.as_str());
                std::iter::once(method.raw()).chain(subject).chain(reference).chain(found).collect()
            }
            Self::Answered { reference, .. }
            | Self::Unanswered { reference }
            | Self::Withdrawn { reference }
            | Self::Expired { reference } => vec![&reference.0],
            Self::Pinned { subject, changed } => {
                std::iter::once(subject.raw()).chain(changed.iter().map(String::as_str)).collect()
            }
            Self::Noticed(notice) => [&notice.client, notice.path.raw()]
                .into_iter()
                .chain(notice.detail.iter().map(Untrusted::raw))
                .collect(),
            Self::Resumed | Self::Noise { .. } => Vec::new(),
        }
    }
}

/// Which events. Everything that is given must be so.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Filter {
    /// About a server of this name, in any client.
    pub server: Option<String>,
    /// About a server of this client, by the client's id.
    pub client: Option<String>,
    /// Of this client process.
    pub process: Option<u32>,
    /// That went this way.
    pub outcome: Option<Outcome>,
    /// In which this text stands, in any case.
    pub text: Option<String>,
    /// At this time or later.
    pub since: Option<Millis>,
    /// Before this time.
    pub until: Option<Millis>,
}

impl Filter {
    /// Whether an event passes.
    pub fn passes(&self, event: &Event) -> bool {
        let Self { server, client, process, outcome, text, since, until } = self;
        let entry = event.entry.as_ref();
        server.as_ref().is_none_or(|s| entry.is_some_and(|e| e.server() == s))
            && client.as_ref().is_none_or(|c| entry.is_some_and(|e| e.client() == c))
            && process.is_none_or(|pid| event.client.as_ref().is_some_and(|c| c.pid == pid))
            && outcome.is_none_or(|o| event.what.outcome() == o)
            && since.is_none_or(|t| event.at >= t)
            && until.is_none_or(|t| event.at < t)
            && text.as_ref().is_none_or(|t| mentions(event, t))
    }
}

fn mentions(event: &Event, text: &str) -> bool {
    let wanted = text.to_lowercase();
    let has = |of: &str| of.to_lowercase().contains(&wanted);
    event.entry.as_ref().is_some_and(|e| has(e.server()) || has(e.client()))
        || event.client.as_ref().is_some_and(|c| has(c.name().raw()))
        || event.what.words().into_iter().any(has)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters() {
        let event = Event {
            at: Millis(100),
            entry: "cursor/user/Files".parse().ok(),
            session: None,
            client: Some(ClientProcess {
                pid: 7,
                executable: "/usr/bin/node".into(),
                script: None,
                ancestry: Vec::new(),
            }),
            what: What::Judged {
                method: "tools/call".into(),
                subject: Some("read_file".into()),
                verdict: Verdict::Block,
                reference: Some(Ref("7F3A".into())),
                rule: None,
                findings: Vec::new(),
            },
        };
        let check = |filter: Filter, want: bool| assert_eq!(filter.passes(&event), want, "{filter:?}");
        let none = Filter::default;
        check(none(), true);
        check(Filter { server: Some("Files".into()), ..none() }, true);
        check(Filter { server: Some("files".into()), ..none() }, false);
        check(Filter { client: Some("cursor".into()), process: Some(7), ..none() }, true);
        check(Filter { process: Some(8), ..none() }, false);
        check(Filter { outcome: Some(Outcome::Blocked), ..none() }, true);
        check(Filter { outcome: Some(Outcome::Allowed), ..none() }, false);
        for (text, want) in [("READ_", true), ("7f3a", true), ("files", true), ("node (7)", true), ("write", false)] {
            check(Filter { text: Some(text.into()), ..none() }, want);
        }
        check(Filter { since: Some(Millis(100)), until: Some(Millis(101)), ..none() }, true);
        check(Filter { since: Some(Millis(101)), ..none() }, false);
        check(Filter { until: Some(Millis(100)), ..none() }, false);
    }
}
