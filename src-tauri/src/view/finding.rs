//! Findings and their evidence.

use firedoor_clients::Clients;
use firedoor_model::{Confidence, Evidence, Finding, Severity, finding::Role};
use serde::Serialize;

use super::{app_name, name, sentence};

/// One finding.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct FindingView {
    /// Such as `flow/secret`.
    pub detector: String,
    /// How bad.
    pub severity: SeverityView,
    /// How sure.
    pub confidence: ConfidenceView,
    /// One sentence of ours.
    pub summary: String,
    /// What would make it go away.
    pub remedy: Option<String>,
    /// Where it was seen.
    pub evidence: Vec<EvidenceView>,
}

/// How bad.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "snake_case")]
pub enum SeverityView {
    Low,
    Medium,
    High,
    Critical,
}

/// How sure.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "snake_case")]
pub enum ConfidenceView {
    Possible,
    Likely,
    Certain,
}

/// Which end of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "snake_case")]
pub enum RoleView {
    Source,
    Sink,
    Place,
}

/// One place.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct EvidenceView {
    /// Which end of a flow.
    pub role: RoleView,
    /// The client's name.
    pub app: Option<String>,
    /// The server's name.
    pub server: Option<String>,
    /// The tool's name.
    pub tool: Option<String>,
    /// JSON pointer into the message.
    pub pointer: String,
    /// The matched text, secrets masked.
    pub excerpt: String,
    /// How the text was changed on its way.
    pub transform: Option<String>,
    /// How long ago the source was seen, in seconds.
    pub age_s: Option<u32>,
}

impl From<Severity> for SeverityView {
    fn from(severity: Severity) -> Self {
        match severity {
            Severity::Low => Self::Low,
            Severity::Medium => Self::Medium,
            Severity::High => Self::High,
            Severity::Critical => Self::Critical,
        }
    }
}

impl FindingView {
    /// For showing.
    pub fn new(finding: &Finding, clients: &Clients) -> Self {
        Self {
            detector: name(&finding.detector),
            severity: finding.severity.into(),
            confidence: match finding.confidence {
                Confidence::Possible => ConfidenceView::Possible,
                Confidence::Likely => ConfidenceView::Likely,
                Confidence::Certain => ConfidenceView::Certain,
            },
            summary: sentence(&finding.summary),
            remedy: finding.remedy().map(str::to_owned),
            evidence: finding.evidence.iter().map(|e| EvidenceView::new(e, clients)).collect(),
        }
    }
}

impl EvidenceView {
    fn new(evidence: &Evidence, clients: &Clients) -> Self {
        Self {
            role: match evidence.role {
                Role::Source => RoleView::Source,
                Role::Sink => RoleView::Sink,
                Role::Place => RoleView::Place,
            },
            app: evidence.entry.as_ref().map(|entry| app_name(clients, entry)),
            server: evidence.entry.as_ref().map(|entry| name(entry.server())),
            tool: evidence.tool.as_ref().map(|tool| name(tool.raw())),
            pointer: name(evidence.pointer.raw()),
            excerpt: sentence(evidence.excerpt.raw()),
            transform: evidence.transform.as_ref().map(|t| name(t)),
            age_s: evidence.age_ms.map(|ms| u32::try_from(ms / 1000).unwrap_or(u32::MAX)),
        }
    }
}
