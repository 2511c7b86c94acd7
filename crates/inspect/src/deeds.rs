//! What a tool does, by its name and by what a call names as its deed: what lasts, what only looks, what makes something for others.

use firedoor_model::wire::Leaves;

use crate::{
    Call,
    privacy::{Listed, SourceWords},
    sink::words,
};

/// Longest name of what is done, in bytes and in words.
const DEED: usize = 48;
const DEED_WORDS: usize = 3;
/// Longest path that is looked at.
const PATH: usize = 1024;

/// What of a call lasts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lasting {
    /// It cannot be undone.
    Final,
    /// It opens a way in or out.
    Way,
    /// It writes a file that is run later.
    Started,
}

impl Lasting {
    /// Behind "the call".
    pub(crate) fn says(self) -> &'static str {
        match self {
            Self::Final => "does what cannot be undone",
            Self::Way => "opens a way in or out",
            Self::Started => "writes a file that is run later",
        }
    }
}

impl SourceWords {
    /// Whether a tool opens a way in or out for good, by its name.
    pub(crate) fn opens_a_way(&self, tool: &str) -> bool {
        let words = words(tool);
        let all = |way: &String| way.split(' ').all(|part| words.iter().any(|word| word == part));
        self.ways.iter().any(all) && (!any_of(&words, &self.looking) || any_of(&words, &self.writing))
    }

    /// What lasts of a call, by its tool's name, or by that of what is done.
    pub(crate) fn lasting(&self, call: &Call<'_>) -> Option<Lasting> {
        let lasts = |name: &str| match () {
            () if any_of(&words(name), &self.lasting) => Some(Lasting::Final),
            () if self.opens_a_way(name) => Some(Lasting::Way),
            () => None,
        };
        let mut deed = false;
        let named = || {
            Leaves::of(call.arguments.unwrap_or_default()).find_map(|leaf| {
                if leaf.key {
                    deed = self.deeds.contains(&leaf.text.to_ascii_lowercase());
                }
                let name = leaf.text.trim();
                let short = name.len() <= DEED && words(name).len() <= DEED_WORDS && !name.contains(['/', '-']);
                if deed && !leaf.key && short { lasts(name) } else { None }
            })
        };
        lasts(call.subject).or_else(named)
    }

    /// Whether a tool only looks at something, by its name.
    pub(crate) fn looks(&self, tool: &str) -> bool {
        let words = words(tool);
        any_of(&words, &self.looking) && !any_of(&words, &self.writing)
    }

    /// Whether a tool hands on what it is given, by its name.
    pub(crate) fn hands_on(&self, tool: &str) -> bool {
        let words = words(tool);
        any_of(&words, &self.handing) && !any_of(&words, &self.looking)
    }

    /// Whether a tool writes, by its name.
    pub(crate) fn writes(&self, tool: &str) -> bool {
        any_of(&words(tool), &self.writing)
    }

    /// Whether a tool makes what somebody else is to be told, by its name: a share's link, a new account's first password. No key.
    pub(crate) fn makes_for_others(&self, tool: &str) -> bool {
        let words = words(tool);
        any_of(&words, &self.making)
            && any_of(&words, &self.made)
            && !any_of(&words, &self.keys)
            && !any_of(&words, &self.looking)
    }
}

/// A path as it is resolved, if a text may be one: "/" between its parts, none of them empty or ".".
pub(crate) fn path(text: &str) -> Option<String> {
    if text.len() > PATH || text.contains(char::is_whitespace) {
        return None;
    }
    let parts = text.split(['/', '\\']).filter(|part| !part.is_empty() && *part != ".");
    Some(parts.collect::<Vec<_>>().join("/"))
}

fn any_of(words: &[String], list: &Listed) -> bool {
    words.iter().any(|word| list.contains(word))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{Lasting, path};
    use crate::{
        Inspector,
        privacy::tests::{call, entry},
    };

    #[test]
    fn deeds_are_told_by_names() {
        use super::Lasting::{Final, Way};
        let inspector = Inspector::new();
        let entry = entry("home");
        let check = |tool: &str, arguments: serde_json::Value, want: Option<Lasting>| {
            let arguments = arguments.to_string();
            let call = call(&inspector, &entry, tool, &arguments);
            assert_eq!(inspector.sources.lasting(&call), want, "{tool} {arguments}");
        };
        check("delete_file", json!({}), Some(Final));
        check("batchDeleteEmails", json!({}), Some(Final));
        check("update_webhook", json!({}), Some(Way));
        check("create_port_forward", json!({}), Some(Way));
        check("import_ports", json!({}), None);
        check("list_webhooks", json!({}), None);
        check("test_webhook_set", json!({}), Some(Way));
        check("check_permission", json!({}), None);
        check("call_service", json!({"service": "unlock", "entity_id": "lock.front"}), Some(Final));
        check("call_service", json!({"service": format!("lock.unlock{}", " ".repeat(60))}), Some(Final));
        check("call_service", json!({"service": "turn_on", "note": "unlock"}), None);
        check("call_service", json!({"action": "unlock ".repeat(40)}), None);
        check("run", json!({"command": "grep -rn delete src"}), None);
        check("deleted_items", json!({}), None);
    }

    #[test]
    fn paths_are_resolved() {
        for (text, want) in [
            ("/home/u/.git//hooks/./x", Some("home/u/.git/hooks/x")),
            ("C:\\r\\.git\\hooks", Some("C:/r/.git/hooks")),
            ("see .git/hooks", None),
        ] {
            assert_eq!(path(text).as_deref(), want, "{text}");
        }
    }

    #[test]
    fn what_is_made_for_others_is_told_by_names() {
        let inspector = Inspector::new();
        for (tool, want) in [
            ("create_share", true),
            ("addUser", true),
            ("generate_invitation", true),
            ("get_share", false),
            ("list_new_users", false),
            ("create_user_token", false),
            ("create_service_account", false),
            ("create_api_key", false),
            ("list_users", false),
        ] {
            assert_eq!(inspector.sources.makes_for_others(tool), want, "{tool}");
        }
    }
}
