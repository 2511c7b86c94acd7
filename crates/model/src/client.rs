//! Who a client is: the process that started the shim, never a name that it sends.

use serde::{Deserialize, Serialize};

use crate::Untrusted;

/// Most ancestors kept.
pub const MAX_ANCESTRY: usize = 8;

/// A client process, as the kernel describes it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ClientProcess {
    /// Its number.
    pub pid: u32,
    /// Path of its executable; empty where that may not be read.
    pub executable: Untrusted,
    /// Path of the script that an interpreter runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub script: Option<Untrusted>,
    /// Names of the executables above it, nearest first, at most [`MAX_ANCESTRY`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ancestry: Vec<Untrusted>,
}

impl ClientProcess {
    /// Name and number, for showing: `node cli.js (4711)`.
    pub fn name(&self) -> Untrusted {
        let base = |path: &Untrusted| path.raw().rsplit('/').next().unwrap_or_default().to_owned();
        let script = self.script.as_ref().map(|s| format!(" {}", base(s))).unwrap_or_default();
        Untrusted::new(format!("{}{script} ({})", base(&self.executable), self.pid))
    }

    /// Whether a rule that names `path` means this client: its executable or its script.
    pub fn is(&self, path: &str) -> bool {
        !path.is_empty() && (self.executable.raw() == path || self.script.as_ref().is_some_and(|s| s.raw() == path))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_paths() {
        let node = ClientProcess {
            pid: 7,
            executable: "/usr/bin/node".into(),
            script: Some("/opt/claude/cli.js".into()),
            ancestry: vec!["bash".into()],
        };
        assert_eq!(node.name().raw(), "node cli.js (7)");
        assert!(node.is("/usr/bin/node") && node.is("/opt/claude/cli.js") && !node.is("/usr/bin") && !node.is(""));
        let hidden = ClientProcess { executable: "".into(), script: None, ..node };
        assert!(!hidden.is(""));
    }
}
