//! What a request carries and where it goes, as inspection sees it.

use std::rc::Rc;

use firedoor_inspect::{Call, CallLabel, Inspector, Memory, Sink};
use firedoor_model::{Confidence, Finding, Severity};

use super::{LARGE, Session};
use crate::engine::Engine;

/// What of one message is looked at.
#[derive(Clone, Copy)]
pub(super) struct Content<'a> {
    pub method: &'a str,
    /// The tool, prompt or resource; empty where the method reaches none.
    pub subject: &'a str,
    /// Raw JSON.
    pub said: Option<&'a str>,
    pub sink: Sink,
    /// It stands beside a call's arguments.
    pub beside: bool,
}

impl Session {
    /// Where a request's content goes.
    pub(super) fn sink(&self, engine: &Engine, method: &str, subject: &str) -> Sink {
        match method {
            "tools/call" => {
                let known = self.tools.borrow().get(subject).map(|t| t.sink);
                known.unwrap_or_else(|| engine.inspector.sink(subject, None))
            }
            "resources/read" | "resources/subscribe" => engine.inspector.sink_of_uri(subject),
            _ => Sink::Local,
        }
    }

    /// Looks at what goes to the server, with all that this agent has read.
    pub(super) async fn inspect(&self, engine: &Rc<Engine>, content: Content<'_>) -> (CallLabel, Vec<Finding>) {
        let (label, mut findings) = self.inspect_with_memory(engine, content).await;
        if self.agent.forgotten.get() && content.method == "tools/call" && content.sink == Sink::External {
            findings.push(Finding {
                detector: "flow/forgotten".into(),
                severity: Severity::Medium,
                confidence: Confidence::Likely,
                summary: "Firedoor was restarted and does not know what this agent has read; the tool sends data away."
                    .into(),
                evidence: Vec::new(),
            });
        }
        (label, findings)
    }

    async fn inspect_with_memory(
        &self,
        engine: &Rc<Engine>,
        Content { method, subject, said, sink, beside }: Content<'_>,
    ) -> (CallLabel, Vec<Finding>) {
        let now = engine.now();
        let known = (method == "tools/call").then(|| self.tools.borrow().get(subject).and_then(|t| t.schema.clone()));
        let schema = known.flatten();
        let usual = (method == "tools/call").then(|| self.habits.get(subject).cloned()).flatten();
        let mut memory = self.agent.memory.clone().lock_owned().await;
        if said.map_or(0, str::len) < LARGE {
            let (schema, usual) = (schema.as_deref(), usual.as_deref());
            let call = Call { entry: &self.entry, method, subject, arguments: said, sink, schema, usual, now };
            return (engine.inspector.label(&call), look(&engine.inspector, &mut memory, &call, beside));
        }
        let inspector = engine.inspector.clone();
        let (entry, method, subject) = (self.entry.clone(), method.to_owned(), subject.to_owned());
        let said = said.map(str::to_owned);
        let work = move || {
            let call = Call {
                entry: &entry,
                method: &method,
                subject: &subject,
                arguments: said.as_deref(),
                sink,
                schema: schema.as_deref(),
                usual: usual.as_deref(),
                now,
            };
            (inspector.label(&call), look(&inspector, &mut memory, &call, beside))
        };
        tokio::task::spawn_blocking(work).await.unwrap_or_else(|_| (CallLabel::default(), vec![crate::engine::lost()]))
    }
}

fn look(inspector: &Inspector, memory: &mut Memory, call: &Call<'_>, beside: bool) -> Vec<Finding> {
    if beside { inspector.beside(memory, call) } else { inspector.call(memory, call) }
}
