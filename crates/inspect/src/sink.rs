//! Does a tool send its arguments out of this machine?

use firedoor_model::wire::{Leaves, Object};
use serde::Deserialize;

use crate::{Call, hosts::schemes};

/// Where a call's arguments go.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Sink {
    /// They stay on this machine.
    Local,
    /// They leave it.
    External,
    /// Not known; judged as if they left.
    #[default]
    Unknown,
}

/// The words of `profiles/detect/sinks.toml`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SinkWords {
    external: Vec<String>,
    weak: Vec<String>,
    local: Vec<String>,
    parameters: Vec<String>,
}

impl SinkWords {
    /// Judges by the tool's name and, where it is known, its definition (an element of `tools/list`). What the server
    /// says about itself can only make a tool external, never local, where a word contradicts it.
    pub(crate) fn classify(&self, name: &str, definition: Option<&str>) -> Sink {
        let words = words(name);
        let any = |list: &[String]| words.iter().any(|w| list.iter().any(|l| l == w));
        let definition = definition.and_then(Object::parse);
        let open_world = definition
            .as_ref()
            .and_then(|d| d.get("annotations"))
            .and_then(Object::parse)
            .and_then(|a| a.get("openWorldHint").map(|v| v == "true"));
        if open_world == Some(true) || any(&self.external) {
            return Sink::External;
        }
        let properties = definition
            .as_ref()
            .and_then(|d| d.get("inputSchema"))
            .and_then(Object::parse)
            .and_then(|s| s.get("properties").and_then(Object::parse));
        let takes_address = properties.is_some_and(|p| {
            p.0.iter().take(256).any(|(n, _)| {
                let n = n.to_ascii_lowercase();
                self.parameters.contains(&n)
            })
        });
        let local = any(&self.local);
        if takes_address || (any(&self.weak) && !local) {
            return Sink::External;
        }
        if local || open_world == Some(false) { Sink::Local } else { Sink::Unknown }
    }

    /// Whether a call sends its arguments away. One that names files of this machine where its tool takes addresses, and says nothing else,
    /// does not, unless the tool's own name says that it sends. What its server does with such a file is not known.
    pub(crate) fn sends(&self, call: &Call<'_>) -> bool {
        call.sink == Sink::External
            && (self.classify(call.subject, None) == Sink::External || !self.names_files_only(call))
    }

    /// Whether a tool's name says that it sends, whatever else it says.
    pub(crate) fn says_so(&self, name: &str) -> bool {
        words(name).iter().any(|word| self.external.contains(word))
    }

    fn names_files_only(&self, call: &Call<'_>) -> bool {
        let (mut address, mut files) = (false, 0);
        let here = Leaves::of(call.arguments.unwrap_or_default()).all(|leaf| {
            if leaf.key {
                address = self.parameters.contains(&leaf.text.to_ascii_lowercase());
                return true;
            }
            files += usize::from(address);
            // Windows takes two slashes for another machine's name.
            let path = leaf.text.strip_prefix("file:///").filter(|path| !path.starts_with(['/', '\\']));
            path.is_some_and(|path| schemes(path).next().is_none())
        });
        here && files > 0
    }

    /// A resource is local when its URI's scheme is.
    pub(crate) fn classify_uri(uri: &str) -> Sink {
        match uri.split_once(':').map(|(scheme, _)| scheme.to_ascii_lowercase()).as_deref() {
            Some("file") => Sink::Local,
            Some("http" | "https" | "ws" | "wss" | "ftp" | "mailto") => Sink::External,
            _ => Sink::Unknown,
        }
    }
}

/// The words of an identifier in lower case, at most 16.
pub(crate) fn words(name: &str) -> Vec<String> {
    let mut out: Vec<String> = Vec::new();
    let mut word = String::new();
    let mut lower_before = false;
    for c in name.chars().take(256) {
        if !c.is_alphanumeric() || (c.is_uppercase() && lower_before) {
            if !word.is_empty() && out.len() < 16 {
                out.push(std::mem::take(&mut word));
            }
            word.clear();
        }
        if c.is_alphanumeric() {
            word.extend(c.to_lowercase());
        }
        lower_before = c.is_lowercase();
    }
    if !word.is_empty() {
        out.push(word);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Inspector;

    #[test]
    fn who_names_only_files_of_this_machine_sends_nothing() {
        let inspector = Inspector::new();
        let entry = "c/s/x".parse().unwrap();
        let check = |tool: &str, arguments: serde_json::Value, want: bool| {
            let (arguments, sink) = (arguments.to_string(), Sink::External);
            let (method, schema, usual, now) = ("tools/call", None, None, firedoor_model::Millis(1));
            let call =
                Call { entry: &entry, method, subject: tool, arguments: Some(&arguments), sink, schema, usual, now };
            assert_eq!(inspector.sinks.sends(&call), want, "{tool} {arguments}");
            assert!(!inspector.sinks.sends(&Call { sink: Sink::Local, ..call }), "{tool} {arguments}");
        };
        let json = |text: &str| serde_json::from_str(text).unwrap();
        check("convert_to_markdown", json(r#"{"uri": "file:///home/a/b.pdf"}"#), false);
        check("convert", json(r#"{"urls": ["file:///home/a/b.pdf", "file:///c"]}"#), false);
        check("convert", json(r#"{"uri": "https://a.example/b.pdf"}"#), true);
        check("convert", json(r#"{"uri": "file://a.example/b.pdf"}"#), true);
        check("convert", json(r#"{"uri": "file:///a?to=https://a.example"}"#), true);
        check("convert", json(r#"{"urls": ["file:///c", "a.example"]}"#), true);
        check("convert", json(r#"{"uri": "file:///a", "to": "a@mail.example"}"#), true);
        check("convert", json(r#"{"uri": "file:///a", "note": "see https://a.example"}"#), true);
        check("convert", json(r#"{"path": "file:///a"}"#), true);
        check("convert", json(r#"{"uri": "file:////evil.example/a"}"#), true);
        check("convert", json(r#"{"uri": "file:///\\\\evil.example\\a"}"#), true);
        check("attach", json(r#"{"uri": "file:///a", "account": "eve@evil.example"}"#), true);
        check("fetch", json(r#"{"url": "file:///a"}"#), true);
    }

    #[test]
    fn tools_are_told_apart() {
        let inspector = Inspector::new();
        for (name, definition, want) in [
            ("send_email", None, Sink::External),
            ("sendMessage", None, Sink::External),
            ("http_post", None, Sink::External),
            ("create_issue", None, Sink::External),
            ("search", None, Sink::External),
            ("search_files", None, Sink::Local),
            ("read_file", None, Sink::Local),
            ("writeFile", None, Sink::Local),
            ("add", None, Sink::Unknown),
            ("add", Some(r#"{"annotations":{"openWorldHint":true}}"#), Sink::External),
            ("add", Some(r#"{"annotations":{"openWorldHint":false}}"#), Sink::Local),
            ("post_it", Some(r#"{"annotations":{"openWorldHint":false}}"#), Sink::External),
            ("load", Some(r#"{"inputSchema":{"properties":{"URL":{}}}}"#), Sink::External),
            ("load", Some(r#"{"inputSchema":{"properties":{"x":{}}}}"#), Sink::Unknown),
            ("load", Some("not json"), Sink::Unknown),
            ("", None, Sink::Unknown),
        ] {
            assert_eq!(inspector.sink(name, definition), want, "{name} {definition:?}");
        }
        assert_eq!(SinkWords::classify_uri("file:///x"), Sink::Local);
        assert_eq!(SinkWords::classify_uri("HTTPS://x"), Sink::External);
        assert_eq!(SinkWords::classify_uri("notes:x"), Sink::Unknown);
    }
}
