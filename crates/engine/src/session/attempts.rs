//! What the sandbox refused, as a finding.

use firedoor_model::{
    Confidence, EntryId, Evidence, Finding, Severity, Untrusted, Verdict,
    audit::What,
    finding::Role,
    network::{Attempt, AttemptKind},
};

/// The audit row of a refused attempt. The sandbox has refused it already; nobody is asked.
pub fn judged(entry: &EntryId, attempt: Attempt) -> What {
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
        excerpt,
        transform: None,
        age_ms: None,
    };
    // Bounded here as well: the shim passes on what a guardian says.
    let reason: String = attempt.reason.chars().take(300).collect();
    let program = Untrusted::new(format!("{} ({})", attempt.program.visible(160), attempt.pid));
    let target = Untrusted::new(attempt.target.visible(200));
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
        findings: vec![finding],
    }
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
            let what = judged(&"a/b/c".parse().unwrap(), attempt);
            let What::Judged { subject: Some(subject), verdict: Verdict::Block, findings, .. } = what else {
                panic!("{what:?}")
            };
            assert_eq!((subject.raw(), &*findings[0].detector), ("evil.example:443", detector));
            assert_eq!(findings[0].evidence[1].excerpt.raw(), "/usr/bin/node (7)");
        }
    }
}
