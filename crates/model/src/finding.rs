//! What a detector saw, and the evidence for it. A finding never says what to do about it.

use std::{borrow::Cow, fmt, path::Path, str::FromStr};

use serde::{Deserialize, Serialize};

use crate::{EntryId, Untrusted, launch::Access};

/// The detector of files that the sandbox closed to a server.
pub const SANDBOX_FILE: &str = "sandbox/file";
/// Pointer of the evidence that names a folder which could be granted to read.
pub const GRANT_READ: &str = "/grant/ro";
/// The same, to read and write.
pub const GRANT_WRITE: &str = "/grant/rw";

/// How bad it would be if the finding is true.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// Worth a line in the log.
    Low,
    /// Worth a look.
    Medium,
    /// Data or control would be lost.
    High,
    /// No honest use is known.
    Critical,
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
            Self::Critical => "critical",
        })
    }
}

impl FromStr for Severity {
    type Err = &'static str;
    fn from_str(s: &str) -> Result<Self, Self::Err> {
        [Self::Low, Self::Medium, Self::High, Self::Critical]
            .into_iter()
            .find(|level| level.to_string() == s)
            .ok_or("a level is low, medium, high or critical")
    }
}

/// How sure the detector is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Confidence {
    /// Often wrong; only for the record.
    Possible,
    /// Usually right; above the threshold at which a detector may interrupt.
    Likely,
    /// Decidable fact, such as a changed hash or a verbatim match of a secret.
    Certain,
}

/// One observation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// Stable name of the detector, such as `flow/secret`.
    pub detector: Cow<'static, str>,
    /// How bad.
    pub severity: Severity,
    /// How sure.
    pub confidence: Confidence,
    /// One sentence in our own words. Never contains text from a message or a secret.
    pub summary: String,
    /// Where it was seen. A flow has one [`Role::Source`] and one [`Role::Sink`].
    pub evidence: Vec<Evidence>,
}

impl Finding {
    /// The same finding, whenever it is made.
    pub fn ageless(&self) -> Self {
        let mut finding = self.clone();
        finding.evidence.iter_mut().for_each(|evidence| evidence.age_ms = None);
        finding
    }

    /// What would make it go away, in one sentence.
    pub fn remedy(&self) -> Option<&'static str> {
        crate::remedy::remedy(&self.detector)
    }

    /// The folder that could be granted so that what was refused works, and for what; it may be a single file.
    pub fn folder(&self) -> Option<(&Path, Access)> {
        if self.detector != SANDBOX_FILE {
            return None;
        }
        self.evidence.iter().find_map(|e| {
            let access = match e.pointer.raw() {
                GRANT_READ => Access::Read,
                GRANT_WRITE => Access::Write,
                _ => return None,
            };
            Some((Path::new(e.excerpt.raw()), access))
        })
    }
}

/// Which end of a flow a piece of evidence is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Where data entered the agent's context.
    Source,
    /// Where data would leave it.
    Sink,
    /// The place itself (no flow).
    Place,
}

/// One place in one message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Evidence {
    /// Which end of a flow.
    pub role: Role,
    /// The server's entry, where known (`inspect` on loose records has none).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entry: Option<EntryId>,
    /// The tool's name, as the server spells it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<Untrusted>,
    /// JSON pointer (RFC 6901) into the message's params or result.
    pub pointer: Untrusted,
    /// The bytes of that string, its JSON escapes undone, in which it was seen: from the first to the one after the last.
    /// Where it was seen through an encoding, the bytes of what is encoded. Absent where the whole place is meant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub span: Option<(usize, usize)>,
    /// The matched text with the middle of secrets masked. At most 200 characters.
    pub excerpt: Untrusted,
    /// How the text was transformed on its way, such as `base64`. Absent for verbatim.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transform: Option<Cow<'static, str>>,
    /// How long ago the source was seen, in milliseconds. Only for sources.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub age_ms: Option<u64>,
}

/// Masks the middle of a secret for showing and storing: at most its first four characters stay, and only when at least
/// twelve are hidden.
pub fn mask(secret: &str) -> String {
    let count = secret.chars().count();
    let keep = if count >= 16 { 4 } else { 0 };
    let mut out: String = secret.chars().take(keep).collect();
    out.push_str("••••");
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masks_leave_little() {
        assert_eq!(mask("short"), "••••");
        assert_eq!(mask("AKIAIOSFODNN7EXAMPLE"), "AKIA••••");
    }
}
