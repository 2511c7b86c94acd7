//! Rows of the audit log.

use std::path::PathBuf;

use firedoor_clients::Clients;
use firedoor_ipc::command::{Count, Request, Row};
use firedoor_model::{
    EntryId, Finding, Millis, Verdict,
    audit::{Outcome, What},
    launch::{Access, Grant},
    notice::Noticed,
    question::{Choice, Duration},
};
use serde::{Deserialize, Serialize};

use super::{FindingView, app_name, name, sentence};

/// A piece of the log.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct ActivityView {
    /// Newest first.
    pub rows: Vec<RowView>,
    /// Where the next, older piece begins; absent at the log's beginning.
    #[cfg_attr(test, ts(type = "number | null"))]
    pub next: Option<u64>,
}

/// Which rows. What is absent does not matter.
#[derive(Clone, Debug, Default, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(default, deny_unknown_fields)]
#[cfg_attr(test, ts(optional_fields))]
pub struct RowsQuery {
    /// Below this number.
    #[cfg_attr(test, ts(optional, type = "number"))]
    pub before: Option<u64>,
    /// Above this number.
    #[cfg_attr(test, ts(optional, type = "number"))]
    pub after: Option<u64>,
    /// The server's name, as it is shown.
    pub server: Option<String>,
    /// The client's id.
    pub client: Option<String>,
    /// The client's process.
    pub process: Option<u32>,
    pub outcome: Option<OutcomeView>,
    pub text: Option<String>,
    #[cfg_attr(test, ts(optional, type = "number"))]
    pub since: Option<u64>,
    #[cfg_attr(test, ts(optional, type = "number"))]
    pub until: Option<u64>,
}

/// What became of something, in few kinds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "snake_case")]
pub enum OutcomeView {
    Allowed,
    Recorded,
    Asked,
    Blocked,
    Answered,
    Server,
    Changed,
    Failed,
}

/// Tool calls by server and time.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct CountsView {
    #[cfg_attr(test, ts(type = "number"))]
    pub since: u64,
    /// Length of one span, in milliseconds.
    #[cfg_attr(test, ts(type = "number"))]
    pub step: u64,
    pub counts: Vec<CountView>,
}

/// Calls of one server in one span that went the same way.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct CountView {
    #[cfg_attr(test, ts(type = "number"))]
    pub at: u64,
    pub app: String,
    pub server: String,
    pub outcome: OutcomeView,
    #[cfg_attr(test, ts(type = "number"))]
    pub calls: u64,
}

impl From<OutcomeView> for Outcome {
    fn from(outcome: OutcomeView) -> Self {
        match outcome {
            OutcomeView::Allowed => Self::Allowed,
            OutcomeView::Recorded => Self::Recorded,
            OutcomeView::Asked => Self::Asked,
            OutcomeView::Blocked => Self::Blocked,
            OutcomeView::Answered => Self::Answered,
            OutcomeView::Server => Self::Server,
            OutcomeView::Changed => Self::Changed,
            OutcomeView::Failed => Self::Failed,
        }
    }
}

impl From<Outcome> for OutcomeView {
    fn from(outcome: Outcome) -> Self {
        match outcome {
            Outcome::Allowed => Self::Allowed,
            Outcome::Recorded => Self::Recorded,
            Outcome::Asked => Self::Asked,
            Outcome::Blocked => Self::Blocked,
            Outcome::Answered => Self::Answered,
            Outcome::Server => Self::Server,
            Outcome::Changed => Self::Changed,
            Outcome::Failed => Self::Failed,
        }
    }
}

impl ActivityView {
    /// For showing.
    pub fn new(rows: &[Row], next: Option<u64>, clients: &Clients) -> Self {
        Self { rows: rows.iter().map(|row| RowView::new(row, clients)).collect(), next }
    }
}

impl CountsView {
    /// For showing.
    pub fn new(counts: &[Count], since: Millis, step: u64, clients: &Clients) -> Self {
        let counts = counts.iter().map(|c| CountView {
            at: c.at.0,
            app: app_name(clients, &c.entry),
            server: name(c.entry.server()),
            outcome: c.outcome.into(),
            calls: c.calls,
        });
        Self { since: since.0, step, counts: counts.collect() }
    }
}

/// One row.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct RowView {
    /// Its number.
    #[cfg_attr(test, ts(type = "number"))]
    pub seq: u64,
    /// When, in milliseconds since 1970.
    #[cfg_attr(test, ts(type = "number"))]
    pub at: u64,
    /// The client's name.
    pub app: Option<String>,
    /// The server's name.
    pub server: Option<String>,
    /// The client's process.
    pub process: Option<String>,
    /// Its number.
    pub pid: Option<u32>,
    /// The client's id.
    pub client: Option<String>,
    /// What happened.
    pub what: WhatView,
    /// The folder that could be granted so that what was refused works.
    pub folder: Option<String>,
    /// What granting it means. Never leaves this process.
    #[serde(skip)]
    #[cfg_attr(test, ts(skip))]
    pub offer: Option<Offer>,
}

/// A folder that the engine says could be granted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Offer {
    /// To which entry.
    pub entry: EntryId,
    /// The folder, or a single file.
    pub path: PathBuf,
}

/// The kinds of event.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum WhatView {
    Started {
        level: String,
    },
    Resumed,
    Ended {
        status: String,
    },
    Refused {
        reason: String,
    },
    Judged {
        method: String,
        subject: Option<String>,
        verdict: VerdictView,
        reference: Option<String>,
        /// The number of the rule that settled it, if one did.
        #[cfg_attr(test, ts(type = "number | null"))]
        rule: Option<i64>,
        findings: Vec<FindingView>,
    },
    Answered {
        reference: String,
        allowed: bool,
        duration: String,
    },
    Unanswered {
        reference: String,
    },
    Withdrawn {
        reference: String,
    },
    Expired {
        reference: String,
    },
    Noise {
        #[cfg_attr(test, ts(type = "number"))]
        lines: u64,
        #[cfg_attr(test, ts(type = "number"))]
        bytes: u64,
    },
    Pinned {
        subject: String,
        changed: Vec<String>,
    },
    Command {
        text: String,
    },
    Denied {
        text: String,
        by: String,
        reason: String,
    },
    Noticed {
        text: String,
        /// Whether something lost its protection, or cannot be looked at any more.
        loss: bool,
    },
    Failed {
        reason: String,
    },
}

/// What was decided.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "snake_case")]
pub enum VerdictView {
    Allow,
    Ask,
    Block,
}

impl Offer {
    fn of(entry: &EntryId, what: &What) -> Option<Self> {
        let What::Judged { findings, .. } = what else { return None };
        let (path, _) = findings.iter().find_map(Finding::folder)?;
        // What is shown must be what is granted.
        let whole = path.is_absolute() && sentence(&path.to_string_lossy()) == path.to_string_lossy();
        whole.then(|| Self { entry: entry.clone(), path: path.to_owned() })
    }

    /// The order to open it, to write as well or only to read.
    pub fn grant(self, write: bool) -> Request {
        let access = if write { Access::Write } else { Access::Read };
        let grants = vec![Grant { path: self.path, access }];
        Request::AddGrants { entry: self.entry, grants, env: Vec::new(), hosts: Vec::new(), sockets: Vec::new() }
    }

    /// The order to close it again.
    pub fn take_back(self) -> Request {
        let paths = vec![self.path];
        Request::RemoveGrants { entry: self.entry, paths, env: Vec::new(), hosts: Vec::new(), sockets: Vec::new() }
    }
}

impl RowView {
    /// For showing.
    pub fn new(row: &Row, clients: &Clients) -> Self {
        let entry = row.event.entry.as_ref();
        let offer = entry.and_then(|entry| Offer::of(entry, &row.event.what));
        Self {
            folder: offer.as_ref().map(|o| sentence(&o.path.to_string_lossy())),
            offer,
            seq: row.seq,
            at: row.event.at.0,
            app: entry.map(|e| app_name(clients, e)),
            server: entry.map(|e| name(e.server())),
            process: row.event.client.as_ref().map(|c| name(c.name().raw())),
            pid: row.event.client.as_ref().map(|c| c.pid),
            client: entry.map(|e| name(e.client())),
            what: WhatView::new(&row.event.what, entry, clients),
        }
    }

    /// Whether a call did not pass: by a finding or a rule, or by the user's answer.
    pub fn blocked(&self) -> bool {
        match &self.what {
            WhatView::Judged { verdict, .. } => *verdict == VerdictView::Block,
            WhatView::Answered { allowed, .. } => !allowed,
            _ => false,
        }
    }

    /// The tool, prompt or resource of a judged message.
    pub fn subject(&self) -> Option<&str> {
        match &self.what {
            WhatView::Judged { subject, .. } => subject.as_deref(),
            _ => None,
        }
    }
}

impl WhatView {
    fn new(what: &What, entry: Option<&EntryId>, clients: &Clients) -> Self {
        match what {
            What::Started { level, .. } => Self::Started { level: sentence(level) },
            What::Resumed => Self::Resumed,
            What::Ended { status } => Self::Ended { status: sentence(status) },
            What::Refused { reason } => Self::Refused { reason: sentence(reason) },
            What::Judged { method, subject, verdict, reference, rule, findings } => Self::Judged {
                method: name(method.raw()),
                subject: subject.as_ref().map(|s| name(s.raw())),
                verdict: match verdict {
                    Verdict::Allow => VerdictView::Allow,
                    Verdict::Ask => VerdictView::Ask,
                    Verdict::Block => VerdictView::Block,
                },
                reference: reference.as_ref().map(|r| name(&r.0)),
                rule: *rule,
                findings: findings.iter().map(|f| FindingView::new(f, clients)).collect(),
            },
            What::Answered { reference, choice, duration } => Self::Answered {
                reference: name(&reference.0),
                allowed: *choice == Choice::Allow,
                duration: match duration {
                    Duration::Once => "once",
                    Duration::Session => "session",
                    Duration::Always => "always",
                }
                .to_owned(),
            },
            What::Unanswered { reference } => Self::Unanswered { reference: name(&reference.0) },
            What::Withdrawn { reference } => Self::Withdrawn { reference: name(&reference.0) },
            What::Expired { reference } => Self::Expired { reference: name(&reference.0) },
            What::Noise { lines, bytes } => Self::Noise { lines: *lines, bytes: *bytes },
            What::Pinned { subject, changed } => {
                Self::Pinned { subject: name(subject.raw()), changed: changed.iter().map(|c| name(c)).collect() }
            }
            What::Command { text } => Self::Command { text: sentence(text) },
            What::Denied { text, by, reason } => {
                Self::Denied { text: sentence(text), by: name(by.raw()), reason: sentence(reason) }
            }
            What::Noticed(notice) => Self::Noticed {
                text: sentence(&notice.in_words(entry.map(EntryId::server))),
                loss: matches!(notice.noticed, Noticed::Dropped | Noticed::Unreadable),
            },
            What::Failed { reason } => Self::Failed { reason: sentence(reason) },
        }
    }
}

#[cfg(test)]
mod tests {
    use firedoor_model::{
        Confidence, Evidence, Severity, Untrusted,
        finding::{GRANT_READ, Role, SANDBOX_FILE},
    };

    use super::*;

    #[test]
    fn a_folder_is_offered_as_a_whole_or_not_at_all() {
        let offered = |detector: &'static str, pointer: &str, path: &str| {
            let evidence = Evidence {
                role: Role::Place,
                entry: None,
                tool: None,
                pointer: Untrusted::new(pointer),
                span: None,
                excerpt: Untrusted::new(path),
                transform: None,
                age_ms: None,
            };
            let finding = Finding {
                detector: detector.into(),
                severity: Severity::Low,
                confidence: Confidence::Likely,
                summary: String::new(),
                evidence: vec![evidence],
            };
            let what = What::Judged {
                method: "read".into(),
                subject: None,
                verdict: Verdict::Block,
                reference: None,
                rule: None,
                findings: vec![finding],
            };
            Offer::of(&"cursor/user/fs".parse().unwrap(), &what).map(|offer| offer.path)
        };
        let long = format!("/{}", "x".repeat(700));
        for (detector, pointer, path, want) in [
            (SANDBOX_FILE, GRANT_READ, "/home/u/notes", true),
            (SANDBOX_FILE, "/path", "/home/u/notes", false),
            ("injection/plain", GRANT_READ, "/home/u/notes", false),
            (SANDBOX_FILE, GRANT_READ, "relative", false),
            (SANDBOX_FILE, GRANT_READ, "/home/u/\u{202e}setón", false),
            (SANDBOX_FILE, GRANT_READ, &long, false),
        ] {
            let want = want.then(|| PathBuf::from(path));
            assert_eq!(offered(detector, pointer, path), want, "{detector} {pointer} {path}");
        }
    }
}
