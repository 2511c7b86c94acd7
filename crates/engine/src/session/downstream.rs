//! From the server to the client.

use std::rc::Rc;

use firedoor_inspect::{CallLabel, DefinitionKind, Source};
use firedoor_model::{
    Finding, Untrusted, Verdict, audit,
    wire::{Body, Frame, Message, Object, WireError},
};
use firedoor_policy::{Input, MessageKind, Refusal, Subject, as_error, call_digest, refusal};

use super::{
    LARGE, Session,
    definitions::Reviewed,
    edit::replace_part,
    held::{REFUSED, Request},
    oversize,
    pending::Asked,
};
use crate::{
    engine::Engine,
    io::{Inlet, Line, Lines},
};

/// Reads lines until the server closes its side.
pub(super) async fn run(session: Rc<Session>, engine: Rc<Engine>, mut inlet: Inlet) {
    let mut lines = Lines::new(engine.config.limits.message_bytes());
    loop {
        match inlet.read(&mut lines).await {
            Ok(0) | Err(_) => break,
            Ok(_) => {}
        }
        while let Some(line) = lines.next() {
            session.from_server(&engine, line).await;
            session.to_client.room().await;
        }
    }
    if let Some(line) = lines.finish() {
        session.from_server(&engine, line).await;
    }
}

impl Session {
    async fn from_server(self: &Rc<Self>, engine: &Rc<Engine>, line: Line<'_>) {
        let line = match line {
            Line::Whole(line) => line,
            Line::TooLong { bytes, head, tail } => return self.answer_too_long(engine, bytes, head, tail),
        };
        let body = line.trim_ascii();
        if body.is_empty() {
            return;
        }
        let frame = match Frame::parse(body) {
            Ok(frame) => frame,
            Err(e) => return self.noise(engine, body, e),
        };
        let mut edited: Option<String> = None;
        for message in frame.messages() {
            if let Some(new) = self.receive(engine, message).await {
                // Parts are replaced from the original's spans; a batch with several edits is rare enough to search.
                let old = edited.take().unwrap_or_else(|| String::from_utf8_lossy(line).into_owned());
                edited = Some(match old.find(message.raw) {
                    Some(at) => replace_part(&old, &old[at..at + message.raw.len()], &new),
                    None => new + "\n",
                });
            }
        }
        match edited {
            None => self.to_client.send(line),
            Some(edited) => self.to_client.send(edited.as_bytes()),
        }
    }

    /// Inspects one message. Gives what to hand on in its place, if not itself.
    async fn receive(self: &Rc<Self>, engine: &Rc<Engine>, message: &Message<'_>) -> Option<String> {
        let (asked, payload, id) = match &message.body {
            Body::Response { id, result } => (self.pending.borrow_mut().take(id), *result, *id),
            Body::Error { id, error } => (id.and_then(|id| self.pending.borrow_mut().take(id)), *error, (*id)?),
            // What the server asks or tells reaches the model as well.
            Body::Request { method, params, id } => {
                let asked = Asked { method: method.to_string(), subject: String::new(), label: CallLabel::default() };
                self.inspect_result(engine, &asked, (*params)?, id).await;
                return None;
            }
            Body::Notification { method, params } => {
                let asked = Asked { method: method.to_string(), subject: String::new(), label: CallLabel::default() };
                self.inspect_result(engine, &asked, (*params)?, "").await;
                return None;
            }
        };
        if matches!(message.body, Body::Response { .. }) {
            for kind in kinds(asked.as_ref(), payload) {
                match self.review(engine, kind, payload).await {
                    Reviewed::Unchanged => {}
                    Reviewed::Edited(result) => return Some(replace_part(message.raw, payload, &result)),
                    Reviewed::Unreadable(why) => {
                        engine.recorder.record(self.failed(engine, &format!("from the server: {why}")));
                        return Some(error_to(id, &format!("Firedoor: {why}; it was not passed on")));
                    }
                }
            }
        }
        let asked = asked.unwrap_or_else(|| Asked {
            method: String::new(),
            subject: String::new(),
            label: CallLabel::default(),
        });
        self.inspect_result(engine, &asked, payload, id).await
    }

    /// Looks at a result, remembers it, and withholds it when a rule or a certain critical finding says so.
    async fn inspect_result(
        self: &Rc<Self>,
        engine: &Rc<Engine>,
        asked: &Asked,
        payload: &str,
        id: &str,
    ) -> Option<String> {
        let findings = self.findings(engine, asked, payload).await;
        if findings.is_empty() {
            return None;
        }
        let about = Subject {
            entry: self.entry.clone(),
            tool: (!asked.subject.is_empty()).then(|| Untrusted::new(asked.subject.as_str())),
            // No permit is ever given for a result.
            call: call_digest(&self.entry, "result", &asked.subject, None),
            launch: Some(self.launch),
            definition: None,
        };
        let decision = {
            let rules = engine.rules.borrow();
            let input = Input {
                mode: engine.mode.get(),
                findings: &findings,
                kind: MessageKind::Other,
                subject: &about,
                rules: &rules,
                now: engine.now(),
                quarantined: false,
                new_tool: false,
            };
            engine.desk.borrow_mut().judge(self.agent.id, &input)
        };
        // A result is never held: what asks about a call only records a result.
        let withheld = decision.verdict == Verdict::Block && !id.is_empty();
        let reference = withheld.then(|| engine.reference());
        let what = audit::What::Judged {
            method: Untrusted::new(asked.method.as_str()),
            subject: about.tool.clone(),
            verdict: if withheld { Verdict::Block } else { Verdict::Allow },
            reference: reference.clone(),
            findings,
        };
        let event = self.event(engine.now(), what);
        match reference {
            None => {
                engine.recorder.record(event);
                engine.recorder.room().await;
                None
            }
            Some(reference) => {
                engine.commit(event).await;
                let request =
                    Request { id: id.to_owned(), tool_call: asked.method == "tools/call", modern: !self.legacy.get() };
                Some(request.refusal(&refusal(&Refusal::Withheld(decision.reason), &reference)))
            }
        }
    }

    async fn findings(&self, engine: &Rc<Engine>, asked: &Asked, payload: &str) -> Vec<Finding> {
        let mut memory = self.agent.memory.clone().lock_owned().await;
        let now = engine.now();
        if payload.len() < LARGE {
            let source =
                Source { entry: &self.entry, method: &asked.method, subject: &asked.subject, label: asked.label, now };
            return engine.inspector.result(&mut memory, &source, payload);
        }
        let (inspector, entry, asked) = (engine.inspector.clone(), self.entry.clone(), asked.clone());
        let payload = payload.to_owned();
        let work = move || {
            let source =
                Source { entry: &entry, method: &asked.method, subject: &asked.subject, label: asked.label, now };
            inspector.result(&mut memory, &source, &payload)
        };
        tokio::task::spawn_blocking(work).await.unwrap_or_else(|_| vec![crate::engine::lost()])
    }

    /// A line that is no message: it is dropped, and the session goes on.
    fn noise(&self, engine: &Engine, body: &[u8], error: WireError) {
        let what = match error {
            WireError::NotJson | WireError::NotRpc => audit::What::Noise { bytes: body.len() as u64, lines: 1 },
            WireError::Ambiguous | WireError::Batch => {
                audit::What::Failed { reason: format!("from the server: {error}; it was not passed on") }
            }
        };
        engine.recorder.record(self.event(engine.now(), what));
        if matches!(error, WireError::Ambiguous)
            && let Some(id) = oversize::remains(body, body).id
        {
            let text = format!("Firedoor: {error}; it was not passed on");
            self.to_client.send((error_to(&id, &text) + "\n").as_bytes());
        }
    }

    fn answer_too_long(&self, engine: &Engine, bytes: u64, head: &[u8], tail: &[u8]) {
        let limit = engine.config.limits.message_mib;
        let text = format!(
            "Firedoor: the server's message has {bytes} bytes, more than the limit of {limit} MiB, and was not passed \
             on; limits.message_mib in Firedoor's config.toml raises it"
        );
        engine.recorder.record(self.failed(engine, &format!("from the server: a message of {bytes} bytes")));
        let remains = oversize::remains(head, tail);
        let Some(id) = remains.id else { return };
        let answer = error_to(&id, &text) + "\n";
        if remains.request {
            self.to_server.send(answer.as_bytes());
        } else {
            self.pending.borrow_mut().take(&id);
            self.to_client.send(answer.as_bytes());
        }
    }
}

fn error_to(id: &str, text: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{}}}"#, as_error(REFUSED, text))
}

/// What a result defines: by the method that it answers or, when that is not known, by what stands in it.
fn kinds(asked: Option<&Asked>, result: &str) -> Vec<DefinitionKind> {
    if let Some(asked) = asked {
        return DefinitionKind::of_method(&asked.method).into_iter().collect();
    }
    let Some(object) = Object::parse(result) else { return Vec::new() };
    let members = [
        ("tools", DefinitionKind::Tool),
        ("prompts", DefinitionKind::Prompt),
        ("resourceTemplates", DefinitionKind::ResourceTemplate),
        ("instructions", DefinitionKind::Server),
    ];
    members.into_iter().filter(|(name, _)| object.get(name).is_some()).map(|(_, kind)| kind).collect()
}
