//! What the sandbox refused, as a finding.

use std::rc::Rc;

use firedoor_model::{
    Confidence, EntryId, Evidence, Finding, Severity, Untrusted, Verdict,
    audit::What,
    finding::Role,
    network::{Attempt, AttemptKind},
};

use super::Session;
use crate::engine::Engine;

/// Puts a refused attempt on record, with what remembered data its destination holds. On a task of its own, because the
/// agent's memory may be busy with a large message.
pub fn record(engine: &Rc<Engine>, session: &Rc<Session>, attempt: Attempt) {
    let (engine, session) = (engine.clone(), session.clone());
    tokio::task::spawn_local(async move {
        let (now, target) = (engine.now(), attempt.target.raw().to_owned());
        let carried = if attempt.kind == AttemptKind::Network {
            let mut memory = session.agent.memory.lock().await;
            engine.inspector.destination(&mut memory, &session.entry, &target, now)
        } else {
            Vec::new()
        };
        engine.recorder.record(session.event(now, judged(&session.entry, attempt, carried)));
    });
}

/// The audit row of a refused attempt. The sandbox has refused it already; nobody is asked.
fn judged(entry: &EntryId, attempt: Attempt, carried: Vec<Finding>) -> What {
    let (detector, method, tried) = match attempt.kind {
        AttemptKind::Network => ("sandbox/network", "connect", "reach a host"),
        AttemptKind::Listen => ("sandbox/network", "listen", "listen for connections"),
        AttemptKind::Socket => ("sandbox/socket", "connect", "reach a Unix socket"),
        AttemptKind::Resource => ("sandbox/limits", "use", "use more than its limits allow"),
        AttemptKind::File => ("sandbox/file", "write", "change a protected file"),
    };
    let evidence = |pointer: &str, excerpt: Untrusted| Evidence {
        role: Role::Place,
        entry: Some(entry.clone()),
        tool: None,
        pointer: Untrusted::new(pointer),
        span: None,
        excerpt,
        transform: None,
        age_ms: None,
    };
    // Bounded here as well: the shim passes on what a guardian says.
    let reason: String = match carried.is_empty() {
        true => attempt.reason.chars().take(300).collect(),
        // It would name the host.
        false => "its name holds data that the agent has read".into(),
    };
    let program = Untrusted::new(format!("{} ({})", attempt.program.visible(160), attempt.pid));
    let target = match carried.is_empty() {
        true => Untrusted::new(attempt.target.visible(200)),
        false => without_data(attempt.target.raw()),
    };
    let finding = Finding {
        detector: detector.into(),
        severity: Severity::Medium,
        confidence: Confidence::Certain,
        summary: format!("the server tried to {tried} and was refused: {reason}"),
        evidence: vec![evidence("/target", target.clone()), evidence("/process", program)],
    };
    What::Judged {
        method: Untrusted::new(method),
        subject: Some(target),
        verdict: Verdict::Block,
        reference: None,
        rule: None,
        findings: std::iter::once(finding).chain(carried).collect(),
    }
}

/// A destination whose name holds data, as it is written down: its last two parts say whose it is.
pub(super) fn without_data(target: &str) -> Untrusted {
    let owner = target.match_indices('.').rev().nth(1).and_then(|(at, _)| target.get(at..));
    Untrusted::new(Untrusted::new(format!("••••{}", owner.unwrap_or_default())).visible(200))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attempts_name_process_and_destination() {
        for (kind, detector) in [
            (AttemptKind::Network, "sandbox/network"),
            (AttemptKind::Listen, "sandbox/network"),
            (AttemptKind::Socket, "sandbox/socket"),
            (AttemptKind::Resource, "sandbox/limits"),
            (AttemptKind::File, "sandbox/file"),
        ] {
            let attempt = Attempt {
                pid: 7,
                program: Untrusted::new("/usr/bin/node"),
                kind,
                target: Untrusted::new("evil.example:443"),
                reason: "no grant".into(),
            };
            let carried = vec![Finding {
                detector: "flow/secret".into(),
                severity: Severity::High,
                confidence: Confidence::Certain,
                summary: String::new(),
                evidence: Vec::new(),
            }];
            let entry: EntryId = "a/b/c".parse().unwrap();
            let secret = Attempt { target: Untrusted::new("hunter2.hunter3.evil.example:443"), ..attempt.clone() };
            let What::Judged { subject: Some(subject), findings, .. } = judged(&entry, secret, carried) else {
                panic!()
            };
            assert_eq!((subject.raw(), findings.len()), ("••••.evil.example:443", 2));
            let what = judged(&entry, attempt, Vec::new());
            let What::Judged { subject: Some(subject), verdict: Verdict::Block, findings, .. } = what else {
                panic!("{what:?}")
            };
            assert_eq!((subject.raw(), &*findings[0].detector), ("evil.example:443", detector));
            assert_eq!(findings[0].evidence[1].excerpt.raw(), "/usr/bin/node (7)");
        }
    }
}
