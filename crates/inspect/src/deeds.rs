//! What a tool does, by its name, where a text gave the agent orders or somebody is to be told something.

use std::collections::HashSet;

use firedoor_model::wire::Leaves;

use crate::{Call, privacy::SourceWords, sink::words};

/// Longest name of what is done.
const DEED: usize = 48;

impl SourceWords {
    /// Whether a tool opens a way in or out for good, by its name.
    pub(crate) fn opens_a_way(&self, tool: &str) -> bool {
        any_of(&words(tool), &self.ways) && !self.looks(tool)
    }

    /// Whether what a tool does lasts, by its name, or by that of what is done: it cannot be undone, or opens a way.
    pub(crate) fn is_lasting(&self, call: &Call<'_>) -> bool {
        let lasts = |name: &str| any_of(&words(name), &self.lasting) || self.opens_a_way(name);
        let mut deed = false;
        lasts(call.subject)
            || Leaves::of(call.arguments.unwrap_or_default()).any(|leaf| {
                if leaf.key {
                    deed = self.deeds.contains(&leaf.text.to_ascii_lowercase());
                }
                deed && !leaf.key && leaf.text.len() <= DEED && lasts(&leaf.text)
            })
    }

    /// Whether a tool only looks at something, by its name.
    pub(crate) fn looks(&self, tool: &str) -> bool {
        any_of(&words(tool), &self.looking)
    }

    /// Whether a tool makes what somebody else is to be told, by its name: a share's link, a new account's first password.
    pub(crate) fn makes_for_others(&self, tool: &str) -> bool {
        let words = words(tool);
        any_of(&words, &self.making) && any_of(&words, &self.made)
    }
}

fn any_of(words: &[String], list: &HashSet<String>) -> bool {
    words.iter().any(|word| list.contains(word))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::{
        Inspector,
        privacy::tests::{call, entry},
    };

    #[test]
    fn deeds_are_told_by_names() {
        let inspector = Inspector::new();
        let entry = entry("home");
        let check = |tool: &str, arguments: serde_json::Value, lasting: bool, way: bool| {
            let arguments = arguments.to_string();
            let call = call(&inspector, &entry, tool, &arguments);
            let sources = &inspector.sources;
            assert_eq!((sources.is_lasting(&call), sources.opens_a_way(tool)), (lasting, way), "{tool} {arguments}");
        };
        check("delete_file", json!({}), true, false);
        check("batchDeleteEmails", json!({}), true, false);
        check("update_webhook", json!({}), true, true);
        check("list_webhooks", json!({}), false, false);
        check("check_permission", json!({}), false, false);
        check("call_service", json!({"service": "unlock", "entity_id": "lock.front"}), true, false);
        check("call_service", json!({"service": "lock.unlock"}), true, false);
        check("call_service", json!({"service": "turn_on", "note": "unlock"}), false, false);
        check("call_service", json!({"action": "unlock ".repeat(40)}), false, false);
        check("deleted_items", json!({}), false, false);
    }

    #[test]
    fn what_is_made_for_others_is_told_by_names() {
        let inspector = Inspector::new();
        for (tool, want) in [
            ("create_share", true),
            ("addUser", true),
            ("generate_invitation", true),
            ("get_share", false),
            ("create_api_key", false),
            ("list_users", false),
        ] {
            assert_eq!(inspector.sources.makes_for_others(tool), want, "{tool}");
        }
    }
}
