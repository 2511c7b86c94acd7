//! The matcher of the paper's prototype, to compare with: "MCP-SandboxScan" (arXiv 2601.01241v1, sections III and IV, and its
//! public code of January 2026). Written anew from what it does; nothing of Firedoor's own matching is used.

use serde_json::Value;

use super::report::{Flow, Level, Sink, SinkKind, Source, SourceKind};

/// Shortest snippet.
const MIN_SNIPPET: usize = 4;
/// Shortest leaf of a tool's result.
const MIN_LEAF: usize = 12;
/// Names of leaves that it passes over.
const METADATA: [&str; 6] = [".id", ".uuid", ".timestamp", ".status", ".code", ".version"];

/// What it takes for visible to the model.
pub fn sinks(stdout: &str) -> Vec<Sink> {
    let mut prompts = Vec::new();
    let mut leaves = Vec::new();
    for line in stdout.lines().map(str::trim) {
        let parsed: Option<Value> = serde_json::from_str(line).ok();
        if line.contains("PROMPT:") {
            prompts.push(Sink::new(SinkKind::PromptLine, String::new(), line));
        } else if let Some(value) = &parsed {
            if let Some(prompt) = value.get("prompt").and_then(Value::as_str) {
                prompts.push(Sink::new(SinkKind::JsonPrompt, "$.prompt".into(), prompt));
            }
            let messages = value.get("messages").and_then(Value::as_array).into_iter().flatten();
            let contents: Vec<&str> = messages.filter_map(|m| m.get("content")?.as_str()).collect();
            let joined = contents.join("\n");
            if !joined.trim().is_empty() {
                prompts.push(Sink::new(SinkKind::JsonPrompt, "$.messages".into(), joined.trim()));
            }
        }
        if let Some(value) = parsed.filter(|v| v.get("prompt").is_none() && v.get("messages").is_none()) {
            collect(&value, "$", &mut leaves);
        }
    }
    leaves.sort_by(|a: &Sink, b| a.text.cmp(&b.text));
    prompts.extend(leaves);
    prompts
}

/// String leaves. The parser bounds the depth (serde_json: 128).
fn collect(value: &Value, path: &str, out: &mut Vec<Sink>) {
    match value {
        Value::String(text) => {
            let named = path.to_ascii_lowercase();
            if text.trim().len() >= MIN_LEAF && !METADATA.iter().any(|m| named.ends_with(m)) {
                out.push(Sink::new(SinkKind::ToolReturn, path.to_owned(), text));
            }
        }
        Value::Array(items) => {
            for (i, item) in items.iter().enumerate() {
                collect(item, &format!("{path}[{i}]"), out);
            }
        }
        Value::Object(members) => {
            for (name, item) in members {
                collect(item, &format!("{path}.{name}"), out);
            }
        }
        _ => {}
    }
}

/// One flow for each source and kind of sink: the first snippet of the source that stands in the sink as it is.
pub fn flows(sources: &[Source], sinks: &[Sink]) -> Vec<Flow> {
    let mut out: Vec<Flow> = Vec::new();
    for (source, given) in sources.iter().enumerate() {
        let content = if given.kind == SourceKind::Http { "<intent-only>" } else { &given.value };
        let snippets = snippets(content.trim());
        for (sink, shown) in sinks.iter().enumerate() {
            let seen =
                out.iter().any(|f| f.source == source && sinks.get(f.sink).is_some_and(|s| s.kind == shown.kind));
            if let Some(snippet) = snippets.iter().find(|s| !seen && shown.text.contains(s.as_str())) {
                let (snippet, confidence) = (snippet.clone(), Level::High);
                out.push(Flow { source, sink, snippet, confidence, transform: None });
            }
        }
    }
    out
}

/// The whole, its first 16, 24 and 32 bytes, and 24 from its middle.
fn snippets(text: &str) -> Vec<String> {
    let bytes = text.as_bytes();
    let mut all = vec![(0, bytes.len())];
    all.extend([16, 24, 32].map(|n| (0, n)));
    if bytes.len() > 48 {
        let start = bytes.len() / 2 - 12;
        all.push((start, start + 24));
    }
    let parts = all.into_iter().filter_map(|(start, end)| bytes.get(start..end));
    let parts = parts.map(|part| String::from_utf8_lossy(part).into_owned());
    parts.filter(|s| s.len() >= MIN_SNIPPET && !s.trim().is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: &str = "SEKRET_0123456789abcdef0123456789abcdef";

    fn check(secret: Option<&str>, stdout: &str, want_sinks: usize, want_flows: usize) {
        let sources: Vec<Source> = secret.map(|v| Source::env("DEMO_SECRET", v)).into_iter().collect();
        let sinks = sinks(stdout);
        assert_eq!((sinks.len(), flows(&sources, &sinks).len()), (want_sinks, want_flows), "{stdout}");
    }

    #[test]
    fn as_the_paper_observed() {
        let (a, b) = LONG.split_at(19);
        check(Some(LONG), &format!("{{\"result\":{{\"note\":\"debug_token={LONG}\"}}}}"), 1, 1);
        check(Some(LONG), &format!("{{\"result\":{{\"part1\":\"{a}\",\"part2\":\"{b}\"}}}}"), 2, 1);
        check(Some(LONG), r#"{"result":{"note":"b64=U0VLUkVUXzAxMjM0NTY3ODlhYmNkZWYwMTIz"}}"#, 1, 0);
        check(Some(LONG), r#"{"result":{"note":"token_prefix=SEKRET_0..."}}"#, 1, 0);
        check(Some(LONG), &format!("{{\"status\":\"{LONG}\",\"result\":{{\"note\":\"ok\"}}}}"), 0, 0);
        let noise =
            "{\"result\":{\"msg\":\"a harmless string: xxabcdyyzz\"}}\n{\"result\":{\"detail\":\"no secrets here\"}}";
        check(Some("abcd"), noise, 2, 1);
        check(Some(LONG), noise, 2, 0);
        check(None, noise, 2, 0);
    }

    #[test]
    fn prompts() {
        check(Some("hello"), "x PROMPT: say hello\nPROMPT: hello again\nplain hello", 2, 1);
        check(
            Some("hello"),
            "{\"messages\":[{\"content\":\"a\"},{\"content\":\"hello\"}]}\n{\"prompt\":\"hello\"}",
            2,
            1,
        );
        check(Some("abc"), "PROMPT: abc", 1, 0);
    }
}
