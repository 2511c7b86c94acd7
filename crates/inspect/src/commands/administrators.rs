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
    about: Vec<String>,
    unless: Vec<String>,
    members: Vec<String>,
    roles: Vec<String>,
    data: Vec<String>,
    names: Vec<String>,
}

impl Administrators {
    /// Where a call of a tool with such words in its name makes somebody one, as a pointer into its arguments.
    pub(super) fn made(&self, call: &Call<'_>, named: &[String]) -> Option<String> {
        let any = |list: &[String]| named.iter().any(|word| list.contains(word));
        let ends = |name: &String| {
            let mut last = named.iter().rev();
            name.rsplit(' ').all(|part| last.next().is_some_and(|word| word == part))
        };
        if call.method != "tools/call" {
            return None;
        }
        if self.names.iter().any(ends) {
            return Some(String::new());
        }
        if !any(&self.tools) || !any(&self.about) || any(&self.unless) {
            return None;
        }
        let (arguments, mut member) = (call.arguments.unwrap_or_default(), false);
        Leaves::of(arguments).find_map(|leaf| {
            if leaf.key {
                member = self.members.contains(&leaf.text.to_ascii_lowercase());
                return None;
            }
            let role = || self.roles.iter().any(|role| leaf.text.trim().eq_ignore_ascii_case(role));
            let place = || pointer(arguments, leaf.span.0);
            let data = |place: &String| place.split('/').any(|part| self.data.iter().any(|data| data == part));
            (member && role()).then(place).filter(|place| !data(place))
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
        arguments::Arguments,
        privacy::tests::{call, entry},
    };

    #[test]
    fn every_name_can_end_one() {
        let table = crate::commands::tests::table();
        for name in &table.administrators.names {
            assert!(
                name.split(' ').count() > 1 && crate::sink::words(&name.replace(' ', "_")).join(" ") == *name,
                "{name}"
            );
        }
    }

    #[test]
    fn roles_are_told_by_members_and_names() {
        let inspector = Inspector::new();
        let entry = entry("site");
        for (tool, arguments, want) in [
            ("wp_create_user", json!({"username": "ana", "roles": ["administrator"]}), Some("/arguments/roles/0")),
            ("update_member", json!({"id": 4, "user": {"org_role": " Owner "}}), Some("/arguments/user/org_role")),
            ("promote_admin", json!({"user_id": 5}), Some("/arguments")),
            ("transferOwnership", json!({"to": "eve"}), Some("/arguments")),
            ("invite_to_org", json!({"email": "eve@evil.example", "role": "owner"}), Some("/arguments/role")),
            ("add_admin_note", json!({"text": "x"}), None),
            ("set_admin_email", json!({"email": "ana@firm.example"}), None),
            ("hubspot_create_contact", json!({"properties": {"role": "Owner"}}), None),
            ("create_event", json!({"attendees": [{"role": "owner"}]}), None),
            ("update_users", json!({"filter": {"role": "admin"}, "update": {"role": "viewer"}}), None),
            ("wp_create_user", json!({"username": "admin", "roles": ["editor"]}), None),
            ("create_or_update_file", json!({"owner": "admin", "path": "roles.md"}), None),
            ("list_users", json!({"role": "administrator"}), None),
            ("add_group_member", json!({"member_email": "ana@school.example", "role": "OWNER"}), None),
            ("share_drive_file", json!({"role": "owner"}), None),
            ("get_admin_report", json!({}), None),
            ("send_message", json!({"role": "admin", "text": "x"}), None),
        ] {
            let arguments = arguments.to_string();
            let call = call(&inspector, &entry, tool, &arguments);
            let found: Vec<_> = inspector.commands(&call, &Arguments::of(&call));
            let place = found.first().and_then(|finding| finding.evidence.first()).map(|at| at.pointer.raw());
            assert_eq!(place, want, "{tool} {arguments}");
            assert!(found.iter().all(|finding| finding.detector == super::DETECTOR), "{tool} {arguments}");
        }
    }
}
