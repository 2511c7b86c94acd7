//! What the tests of several modules judge.

use firedoor_model::{
    ClientProcess, Confidence, Digest, Evidence, Finding, Millis, Mode, Severity, Untrusted,
    finding::Role,
    question::Choice,
    rule::{Match, Origin, Rule},
};

use crate::{Input, MessageKind, Subject};

pub fn subject() -> Subject {
    Subject {
        entry: "cursor/user/web".parse().unwrap(),
        client: Some(ClientProcess { pid: 7, executable: "/usr/bin/node".into(), script: None, ancestry: Vec::new() }),
        tool: Some("http_post".into()),
        call: Digest::of(b"call").into(),
        address: Some("paste.example.net".into()),
        mentions: Vec::new(),
        launch: Some(Digest::of(b"launch")),
        definition: Some(Digest::of(b"definition")),
    }
}

pub fn finding(detector: &'static str, severity: Severity, confidence: Confidence) -> Finding {
    Finding { detector: detector.into(), severity, confidence, summary: String::new(), evidence: Vec::new() }
}

/// A flow from the server `source`, such as `cursor/user/fs`.
pub fn flow(source: &str) -> Finding {
    let place = |role, entry: &str| Evidence {
        role,
        entry: entry.parse().ok(),
        tool: None,
        pointer: Untrusted::new("/x"),
        span: None,
        excerpt: Untrusted::new("AKIA••••"),
        transform: None,
        age_ms: None,
    };
    let evidence = vec![place(Role::Source, source), place(Role::Sink, "cursor/user/web")];
    Finding { evidence, ..finding("flow/secret", Severity::High, Confidence::Likely) }
}

pub fn rule(id: i64, effect: Choice, origin: Origin, matches: Match) -> Rule {
    Rule { id, effect, matches, origin, created: Millis(0), expires: None }
}

pub fn input<'a>(subject: &'a Subject, findings: &'a [Finding], rules: &'a [Rule]) -> Input<'a> {
    Input {
        mode: Mode::Balanced,
        findings,
        kind: MessageKind::Call,
        subject,
        rules,
        now: Millis(1000),
        quarantined: false,
        new_tool: false,
        paused: false,
        round: None,
    }
}
