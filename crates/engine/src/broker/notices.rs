//! What a listener has noticed, as a finding.

use firedoor_model::{
    Confidence, EntryId, Evidence, Finding, Severity, Untrusted, Verdict,
    audit::What,
    broker::{Notice, Seen},
    finding::Role,
};

use crate::{engine::Engine, session::Session};

/// Puts what a listener has noticed on record. It has done what there was to do.
pub fn record(engine: &Engine, session: &Session, notice: Notice) {
    engine.recorder.record(session.event(engine.now(), judged(&session.entry, notice)));
}

fn judged(entry: &EntryId, Notice { seen, secret, host, place }: Notice) -> What {
    // Bounded here as well: the shim passes on what another program says.
    let short = |text: &str| Untrusted::new(text).visible(200);
    let (secret, host, place) = (secret.visible(80), short(&host), short(&place));
    let (detector, severity, verdict, summary) = match seen {
        Seen::Misplaced => (
            "broker/placeholder",
            Severity::High,
            Verdict::Block,
            format!("the server sent the placeholder of a credential where none belongs, in {place}, and was refused"),
        ),
        Seen::Other => (
            "broker/other-credential",
            Severity::Medium,
            Verdict::Block,
            format!("the server sent another credential than that of its entry, in {place}, and was refused"),
        ),
        Seen::Echoed => (
            "broker/echo",
            Severity::Medium,
            Verdict::Allow,
            format!("the service sent the credential {secret} back, in {place}; it was masked"),
        ),
        Seen::Unnamed => (
            "broker/other-name",
            Severity::Medium,
            Verdict::Block,
            format!(
                "the server named another host than its service on an intercepted connection, in {place}, and was refused"
            ),
        ),
        Seen::Unspoken => (
            "broker/other-protocol",
            Severity::Low,
            Verdict::Block,
            format!(
                "the server spoke something else than HTTP/1.1 over TLS on an intercepted connection, in {place}, and was refused"
            ),
        ),
        Seen::Distrusted => (
            "broker/distrusted",
            Severity::Low,
            Verdict::Allow,
            format!(
                "the server did not take the certificate that Firedoor made for its intercepted connections, in {place}: it \
                 may trust only certificates of its own"
            ),
        ),
    };
    let host = Untrusted::new(host);
    let at = Evidence {
        role: Role::Place,
        entry: Some(entry.clone()),
        tool: None,
        pointer: Untrusted::new(place),
        span: None,
        excerpt: host.clone(),
        transform: None,
        age_ms: None,
    };
    let finding =
        Finding { detector: detector.into(), severity, confidence: Confidence::Certain, summary, evidence: vec![at] };
    What::Judged {
        method: Untrusted::new("request"),
        subject: Some(host),
        verdict,
        reference: None,
        rule: None,
        findings: vec![finding],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_noticed_has_a_name_of_its_own() {
        for (seen, detector) in [
            (Seen::Misplaced, "broker/placeholder"),
            (Seen::Other, "broker/other-credential"),
            (Seen::Echoed, "broker/echo"),
            (Seen::Unnamed, "broker/other-name"),
            (Seen::Unspoken, "broker/other-protocol"),
            (Seen::Distrusted, "broker/distrusted"),
        ] {
            let notice = Notice { seen, secret: "T".into(), host: "https://a.example".into(), place: "x".repeat(999) };
            let What::Judged { findings, .. } = judged(&"a/b/c".parse().unwrap(), notice) else { panic!() };
            assert_eq!(&*findings[0].detector, detector);
            assert!(findings[0].summary.len() < 400);
            assert!(firedoor_model::remedy::remedy(detector).is_some());
        }
    }
}
