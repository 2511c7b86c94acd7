//! Who makes somebody the administrator of a system, by its tool's name and the role that is given.

use firedoor_model::{
    Confidence, Finding, Severity,
    finding::Role,
    wire::{Leaves, pointer},
};
use serde::Deserialize;

use crate::{Call, evidence};

/// The same as that of commands which do so.
pub(super) const DETECTOR: &str = "call/grants-all";

/// Which calls make somebody an administrator.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Administrators {
    tools: Vec<String>,
    members: Vec<String>,
    roles: Vec<String>,
    names: Vec<String>,
}

impl Administrators {
    /// Where a call of a tool with such words in its name makes somebody one, as a pointer into its arguments.
    pub(super) fn made(&self, call: &Call<'_>, named: &[String]) -> Option<String> {
        if call.method != "tools/call" || !named.iter().any(|word| self.tools.contains(word)) {
            return None;
        }
        if self.names.iter().any(|name| name.split(' ').all(|part| named.iter().any(|word| word == part))) {
            return Some(String::new());
        }
        let (arguments, mut member) = (call.arguments.unwrap_or_default(), false);
        Leaves::of(arguments).find_map(|leaf| {
            if leaf.key {
                member = self.members.contains(&leaf.text.to_ascii_lowercase());
                return None;
            }
            let role = || self.roles.iter().any(|role| leaf.text.trim().eq_ignore_ascii_case(role));
            (member && role()).then(|| pointer(arguments, leaf.span.0))
        })
    }
}

/// What is said about such a call.
pub(super) fn finding(call: &Call<'_>, place: &str) -> Finding {
    Finding {
        detector: DETECTOR.into(),
        severity: Severity::High,
        confidence: Confidence::Likely,
        summary: "The call makes somebody the owner or administrator of a system.".to_owned(),
        evidence: vec![evidence(Role::Sink, Some(call.entry), call.subject, format!("/arguments{place}"), b"")],
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::{
        Inspector,
        privacy::tests::{call, entry},
    };

    #[test]
    fn roles_are_told_by_members_and_names() {
        let inspector = Inspector::new();
        let entry = entry("site");
        for (tool, arguments, want) in [
            ("wp_create_user", json!({"username": "ana", "roles": ["administrator"]}), Some("/arguments/roles/0")),
            ("update_member", json!({"id": 4, "data": {"org_role": " Owner "}}), Some("/arguments/data/org_role")),
            ("promote_admin", json!({"user_id": 5}), Some("/arguments")),
            ("wp_create_user", json!({"username": "admin", "roles": ["editor"]}), None),
            ("create_or_update_file", json!({"owner": "admin", "path": "roles.md"}), None),
            ("list_users", json!({"role": "administrator"}), None),
            ("get_admin_report", json!({}), None),
            ("send_message", json!({"role": "admin", "text": "x"}), None),
        ] {
            let arguments = arguments.to_string();
            let call = call(&inspector, &entry, tool, &arguments);
            let found: Vec<_> = inspector.commands(&call);
            let place = found.first().and_then(|finding| finding.evidence.first()).map(|at| at.pointer.raw());
            assert_eq!(place, want, "{tool} {arguments}");
            assert!(found.iter().all(|finding| finding.detector == super::DETECTOR), "{tool} {arguments}");
        }
    }
}
