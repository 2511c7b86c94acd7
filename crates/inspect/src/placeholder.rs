//! Placeholders of secrets in broker mode, where they do not belong. By itself one is of no use; what carries it was after the
//! secret.

use firedoor_model::{Confidence, EntryId, Finding, Severity, broker::placeholder_in, finding::Role};

use crate::{Call, Source, evidence};

const DETECTOR: &str = "broker/placeholder";

/// Whether there is one in a text.
pub(crate) fn stands_in(text: &str) -> bool {
    placeholder_in(text.as_bytes()).is_some()
}

fn finding(severity: Severity, summary: &str, at: firedoor_model::Evidence) -> Finding {
    Finding {
        detector: DETECTOR.into(),
        severity,
        confidence: Confidence::Certain,
        summary: summary.into(),
        evidence: vec![at],
    }
}

/// In what an agent sends.
pub(crate) fn in_call(call: &Call<'_>, pointer: String) -> Finding {
    let at = evidence(Role::Sink, Some(call.entry), call.subject, pointer, b"");
    finding(
        Severity::High,
        "The arguments hold the placeholder that a server was given in place of its credential.",
        at,
    )
}

/// In what a server answers. It was given it, and passing it on harms nobody.
pub(crate) fn in_result(source: &Source<'_>, pointer: String) -> Finding {
    let at = evidence(Role::Place, Some(source.entry), source.subject, pointer, b"");
    finding(Severity::Low, "The result holds the placeholder that a server was given in place of its credential.", at)
}

/// In the name of a host.
pub(crate) fn in_name(entry: &EntryId) -> Finding {
    let at = evidence(Role::Sink, Some(entry), "", "/target".to_owned(), b"");
    finding(Severity::High, "The name of the host holds the placeholder of a credential.", at)
}

#[cfg(test)]
mod tests {
    use firedoor_model::{EntryId, Millis, broker::PLACEHOLDER};

    use super::*;
    use crate::{CallLabel, Inspector, Limits, Memory, Sink};

    #[test]
    fn it_is_found_wherever_it_turns_up() {
        let inspector = Inspector::new();
        let entry: EntryId = "c/s/x".parse().unwrap();
        let one = format!("{PLACEHOLDER}{}", "k2m4q6s3".repeat(4));
        let found = |all: Vec<Finding>| all.into_iter().find(|f| f.detector == DETECTOR).map(|f| f.severity);
        let call = |arguments: &str| {
            let call = Call {
                entry: &entry,
                method: "tools/call",
                subject: "send",
                arguments: Some(arguments),
                sink: Sink::Local,
                schema: None,
                usual: None,
                now: Millis(1),
            };
            found(inspector.call(&mut Memory::new(Limits::default()), &call))
        };
        let result = |text: &str| {
            let label = CallLabel::default();
            let source = Source { entry: &entry, method: "tools/call", subject: "read", label, now: Millis(1) };
            found(inspector.result(&mut Memory::new(Limits::default()), &source, text))
        };
        let name =
            |target: &str| found(inspector.destination(&mut Memory::new(Limits::default()), &entry, target, Millis(1)));
        assert_eq!(call(&format!(r#"{{"to":"x","body":"a {one} b"}}"#)), Some(Severity::High));
        assert_eq!(call(&format!(r#"{{"body":"\u0066{}"}}"#, &one[1..])), Some(Severity::High));
        assert_eq!(call(r#"{"body":"firedoor-broker-mode is what"}"#), None);
        assert_eq!(result(&format!(r#"{{"content":[{{"type":"text","text":"{one}"}}]}}"#)), Some(Severity::Low));
        assert_eq!(result(r#"{"content":[]}"#), None);
        assert_eq!(name(&format!("{one}.evil.example:443")), Some(Severity::High));
        assert_eq!(name(&format!("{}.{}.evil.example", &one[..20], &one[20..])), Some(Severity::High));
        assert_eq!(name("evil.example:443"), None);
    }
}
