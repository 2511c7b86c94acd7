//! Whether an agent that has read private data, and content that somebody outside wrote, sends data away: the three
//! together are what an injected instruction needs, whatever its words are.

use std::{collections::HashSet, sync::Arc};

use firedoor_model::{Confidence, EntryId, Evidence, Finding, Severity, Untrusted, finding::Role};

use crate::{
    Call, Inspector, Sink, evidence,
    memory::{Memory, Origin},
};

/// Most tools that are remembered as told about.
const MAX_TOLD: usize = 256;

/// How much of it one agent's session has come to.
#[derive(Debug, Default)]
pub(crate) struct Trifecta {
    /// Where private data was first read.
    private: Option<Arc<Origin>>,
    /// Where content from outside was first read.
    outside: Option<Arc<Origin>>,
    /// Servers and tools about which somebody knows.
    told: HashSet<(String, String)>,
}

impl Trifecta {
    /// Notes that something was read.
    pub(crate) fn read(&mut self, origin: &Arc<Origin>, private: bool) {
        if private {
            self.private.get_or_insert_with(|| Arc::clone(origin));
        } else if origin.sink == Sink::External {
            self.outside.get_or_insert_with(|| Arc::clone(origin));
        }
    }
}

impl Memory {
    /// Somebody was asked about a finding of `flow/trifecta`, or it is on record where nobody is asked: once is enough for
    /// each tool. What a pause lets pass does not count.
    pub fn told_of_trifecta(&mut self, entry: &EntryId, tool: &str) {
        self.trifecta.told.insert((entry.to_string(), tool.to_owned()));
    }
}

impl Inspector {
    /// The third of the three, until it is [told](Memory::told_of_trifecta) of the tool.
    pub(crate) fn trifecta(&self, memory: &mut Memory, call: &Call<'_>) -> Option<Finding> {
        if call.method != "tools/call" || call.sink != Sink::External {
            return None;
        }
        let state = &mut memory.trifecta;
        let (private, outside) = (state.private.as_ref()?, state.outside.as_ref()?);
        if state.told.len() >= MAX_TOLD || state.told.contains(&(call.entry.to_string(), call.subject.to_owned())) {
            return None;
        }
        let source = |origin: &Origin| Evidence {
            role: Role::Source,
            entry: Some(origin.entry.clone()),
            tool: Some(origin.tool.clone()),
            pointer: Untrusted::new(""),
            span: None,
            excerpt: Untrusted::new(""),
            transform: None,
            age_ms: Some(call.now.since(origin.at)),
        };
        Some(Finding {
            detector: "flow/trifecta".into(),
            severity: Severity::Medium,
            confidence: Confidence::Possible,
            summary: "The agent has read private data and content from outside, and now sends data away.".into(),
            evidence: vec![
                source(private),
                source(outside),
                evidence(Role::Sink, Some(call.entry), call.subject, "/arguments".to_owned(), b""),
            ],
        })
    }
}

#[cfg(test)]
mod tests {
    use firedoor_model::Millis;

    use super::*;
    use crate::{CallLabel, Limits, Privacy, Source};

    #[test]
    fn all_three_are_needed() {
        let inspector = Inspector::new();
        let entry: EntryId = "c/s/x".parse().unwrap();
        let (private, outside) = (
            CallLabel { privacy: Privacy::Sensitive, sink: Sink::Local },
            CallLabel { privacy: Privacy::Unknown, sink: Sink::External },
        );
        let check = |read: &[CallLabel], sink, want: bool| {
            let mut memory = Memory::new(Limits::default());
            let text = r#"{"text":"Some words that were written down here for somebody to read later on."}"#;
            for label in read {
                let source =
                    Source { entry: &entry, method: "tools/call", subject: "read", label: *label, now: Millis(1) };
                inspector.result(&mut memory, &source, text);
            }
            let call = Call {
                entry: &entry,
                method: "tools/call",
                subject: "send",
                arguments: None,
                sink,
                schema: None,
                usual: None,
                now: Millis(2),
            };
            let found =
                |memory: &mut Memory| inspector.call(memory, &call).iter().any(|f| f.detector == "flow/trifecta");
            // Until somebody knows.
            assert_eq!([found(&mut memory), found(&mut memory)], [want; 2], "{read:?} {sink:?}");
            memory.told_of_trifecta(&entry, "another");
            assert_eq!(found(&mut memory), want, "{read:?} {sink:?}");
            memory.told_of_trifecta(&entry, "send");
            assert!(!found(&mut memory), "{read:?} {sink:?}");
        };
        check(&[private, outside], Sink::External, true);
        check(&[outside, private], Sink::External, true);
        check(&[private, outside], Sink::Local, false);
        check(&[private], Sink::External, false);
        check(&[outside], Sink::External, false);
        check(&[], Sink::External, false);
    }
}
