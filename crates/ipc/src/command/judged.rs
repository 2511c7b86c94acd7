//! What `firedoor inspect` says about one record.

use firedoor_model::{Finding, Verdict};
use serde::{Deserialize, Serialize};

/// One judged record of `firedoor inspect`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Judged {
    /// The record's id.
    pub id: String,
    /// What was found.
    pub findings: Vec<Explained>,
    /// What Balanced would do.
    pub verdict: Verdict,
}

/// A finding for somebody who wants to know what to do about it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Explained {
    /// What was found.
    #[serde(flatten)]
    pub finding: Finding,
    /// What would make it go away.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remedy: Option<String>,
}

impl From<Finding> for Explained {
    fn from(finding: Finding) -> Self {
        Self { remedy: finding.remedy().map(str::to_owned), finding }
    }
}
