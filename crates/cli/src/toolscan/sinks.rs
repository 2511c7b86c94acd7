//! What of a program's output an agent reads: everything on standard output, cut into single texts with their places.

use firedoor_model::wire::Leaves;
use serde_json::value::RawValue;

use super::report::{Sink, SinkKind};

/// Most texts of one output.
const MAX_SINKS: usize = 20_000;
/// Most places where JSON over several lines is looked for in vain: each look may read the whole rest.
const MAX_VAIN: usize = 64;
/// Shortest name of a member, and shortest number, that could carry something.
const MIN_CARRIER: usize = 8;

/// Cuts standard output. JSON may stand in one line or in several.
pub fn sinks(stdout: &str) -> Vec<Sink> {
    let mut out = Vec::new();
    let mut vain = 0;
    let mut rest = stdout;
    while !rest.is_empty() && out.len() < MAX_SINKS {
        let (line, after) = rest.split_once('\n').unwrap_or((rest, ""));
        let text = line.trim();
        let start = rest.len() - rest.trim_start().len();
        if text.contains("PROMPT:") {
            out.push(Sink::new(SinkKind::PromptLine, String::new(), text));
        } else if serde_json::from_str::<&RawValue>(text).is_ok() {
            document(text, &mut out);
        } else if text.starts_with(['{', '[']) && vain < MAX_VAIN {
            let tail = rest.get(start..).unwrap_or_default();
            let mut stream = serde_json::Deserializer::from_str(tail).into_iter::<&RawValue>();
            if let Some(Ok(raw)) = stream.next() {
                document(raw.get(), &mut out);
                rest = tail.get(stream.byte_offset()..).unwrap_or_default();
                continue;
            }
            vain += 1;
            out.push(Sink::new(SinkKind::Text, String::new(), text));
        } else if !text.is_empty() {
            out.push(Sink::new(SinkKind::Text, String::new(), text));
        }
        rest = after;
    }
    out
}

/// The texts in one JSON text. Duplicate members are all looked at.
fn document(raw: &str, out: &mut Vec<Sink>) {
    let mut leaves = Leaves::of(raw);
    while let Some(leaf) = leaves.next() {
        let string = raw.as_bytes().get(leaf.span.0) == Some(&b'"');
        if out.len() >= MAX_SINKS || (leaf.key || !string) && leaf.text.len() < MIN_CARRIER || leaf.text.is_empty() {
            continue;
        }
        let pointer = leaves.pointer();
        let message = pointer.strip_prefix("/messages/").and_then(|p| p.split_once('/')).map(|(_, rest)| rest);
        let prompt = pointer == "/prompt" || message.is_some_and(|p| p == "content" || p.starts_with("content/"));
        let kind = if prompt && !leaf.key { SinkKind::JsonPrompt } else { SinkKind::ToolReturn };
        let mut path = json_path(&pointer);
        if leaf.key {
            path.push('~');
        }
        out.push(Sink::new(kind, path, &leaf.text));
    }
}

/// A JSON pointer (RFC 6901) as a JSONPath (RFC 9535). Numbers are taken for indices.
fn json_path(pointer: &str) -> String {
    let mut path = String::from("$");
    for part in pointer.split('/').skip(1) {
        let name = part.replace("~1", "/").replace("~0", "~");
        let word = |c: char| c.is_alphanumeric() || c == '_';
        if !name.is_empty() && name.bytes().all(|b| b.is_ascii_digit()) {
            path.push_str(&format!("[{name}]"));
        } else if !name.is_empty() && name.chars().all(word) {
            path.push_str(&format!(".{name}"));
        } else {
            path.push_str(&format!("['{}']", name.replace('\\', "\\\\").replace('\'', "\\'")));
        }
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(stdout: &str, want: &[(SinkKind, &str, &str)]) {
        let found = sinks(stdout);
        let found: Vec<_> = found.iter().map(|s| (s.kind, s.path.as_str(), s.text.as_str())).collect();
        assert_eq!(found, want, "{stdout}");
    }

    #[test]
    fn lines_and_documents() {
        use SinkKind::{JsonPrompt, PromptLine, Text, ToolReturn};
        check(" log: PROMPT: do it \n\nplain\n", &[(PromptLine, "", "log: PROMPT: do it"), (Text, "", "plain")]);
        check(
            r#"{"prompt":"p","messages":[{"role":"r","content":"c"}]}"#,
            &[
                (JsonPrompt, "$.prompt", "p"),
                (ToolReturn, "$.messages~", "messages"),
                (ToolReturn, "$.messages[0].role", "r"),
                (JsonPrompt, "$.messages[0].content", "c"),
            ],
        );
        check(
            "{\n \"a b\": [1, \"x\"],\n \"a b\": \"y\"}\nafter",
            &[(ToolReturn, "$['a b'][1]", "x"), (ToolReturn, "$['a b']", "y"), (Text, "", "after")],
        );
        check(
            r#"{"aSecretName":12345678,"n":7}"#,
            &[(ToolReturn, "$.aSecretName~", "aSecretName"), (ToolReturn, "$.aSecretName", "12345678")],
        );
        check("{broken\n[1,2\nend", &[(Text, "", "{broken"), (Text, "", "[1,2"), (Text, "", "end")]);
        check("\"just a string\"", &[(ToolReturn, "$", "just a string")]);
    }

    #[test]
    fn bounded() {
        assert_eq!(sinks(&"x\n".repeat(30_000)).len(), MAX_SINKS);
        assert!(sinks(&"{\n".repeat(30_000)).len() <= MAX_SINKS);
        assert_eq!(sinks(&"[".repeat(100_000)).len(), 1);
    }
}
