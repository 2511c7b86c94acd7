//! From the server to the client.

use std::{borrow::Cow, rc::Rc};

use firedoor_inspect::{DefinitionKind, Source};
use firedoor_model::{
    Finding, Untrusted, Verdict, audit,
    wire::{Body, Frame, Message, Object, WireError},
};
use firedoor_policy::{Call, Input, MessageKind, Refusal, Subject, as_error, refusal};

use super::{
    LARGE, Session,
    definitions::Reviewed,
    edit::replace_part,
    held::{REFUSED, Request},
    ledger::{Record, Way},
    logs::shorten,
    oversize::{self, Remains},
    pending::{Asked, answered, canonical},
    rounds,
    ruling::recordable,
};
use crate::{
    engine::Engine,
    io::{Inlet, Line, Lines},
};

/// What the client gets of a message.
enum HandOn {
    /// Its bytes.
    Unchanged,
    /// This in its place.
    Instead(String),
    /// Nothing.
    Nothing,
}

/// A message that the client does not get.
struct Withheld {
    text: String,
    tool_call: bool,
}

impl Withheld {
    fn instead_of(&self, id: &str, modern: bool) -> HandOn {
        let request = Request { id: id.to_owned(), tool_call: self.tool_call, modern };
        HandOn::Instead(request.refusal(&self.text))
    }
}

/// Reads lines until the server closes its side.
pub(super) async fn run(session: Rc<Session>, engine: Rc<Engine>, mut inlet: Inlet) {
    let mut lines = Lines::new(engine.config.limits.message_bytes());
    loop {
        match inlet.read(&mut lines).await {
            Ok(0) | Err(_) => break,
            Ok(_) => {}
        }
        while let Some((line, held)) = lines.next() {
            session.from_server(&engine, line, inlet.done(held)).await;
            if session.owed.is_news() {
                let why = "the server reads too little: answers of Firedoor's to its requests are dropped";
                engine.recorder.record(session.failed(&engine, why));
            }
            session.to_client.room().await;
        }
        shorten(Way::Down, (&mut inlet, &lines), &session.to_client, &session.ledger).await;
    }
    let end = inlet.done(0);
    if let Some(line) = lines.finish() {
        session.from_server(&engine, line, end).await;
    }
}

impl Session {
    /// Deals with one line. `down` is the offset of its end in the server's log.
    async fn from_server(self: &Rc<Self>, engine: &Rc<Engine>, line: Line<'_>, down: u64) {
        let through = Record::Through(Way::Down, down);
        let line = match line {
            Line::Whole(line) => line,
            Line::TooLong { bytes, head, tail } => {
                self.answer_too_long(engine, bytes, head, tail);
                return self.note_down(vec![through]).await;
            }
        };
        let body = line.trim_ascii();
        if body.is_empty() {
            return self.note_down(vec![through]).await;
        }
        let frame = match Frame::parse(body) {
            Ok(frame) => frame,
            Err(e) => {
                self.noise(engine, body, e);
                return self.note_down(vec![through]).await;
            }
        };
        let mut changed = false;
        let mut parts = Vec::new();
        for message in frame.messages() {
            match self.receive(engine, message).await {
                HandOn::Unchanged => parts.push(Cow::Borrowed(message.raw)),
                HandOn::Instead(new) => {
                    changed = true;
                    parts.push(Cow::Owned(new));
                }
                HandOn::Nothing => changed = true,
            }
        }
        let records = vec![Record::Answered(answers(&frame)), through];
        if !changed {
            return self.send_down(line, records);
        }
        // What is left stands byte for byte as it came; only the brackets and commas of a batch are ours.
        let edited = match (&frame, parts.as_slice()) {
            (_, []) => return self.note_down(records).await,
            (Frame::Single(_), [one]) => format!("{one}\n"),
            _ => format!("[{}]\n", parts.join(",")),
        };
        self.send_down(edited.as_bytes(), records);
    }

    /// Inspects one message.
    async fn receive(self: &Rc<Self>, engine: &Rc<Engine>, message: &Message<'_>) -> HandOn {
        let of_server = |method: &str| Asked { method: method.to_owned(), ..Asked::default() };
        match &message.body {
            Body::Response { id, result } => {
                if self.abandoned.borrow_mut().take(id).is_some() {
                    return HandOn::Nothing;
                }
                let asked = self.pending.borrow_mut().take(id);
                if asked.is_none() && !self.may_be_asked(engine) {
                    return HandOn::Nothing;
                }
                self.receive_result(engine, message.raw, asked, id, result).await
            }
            Body::Error { id, error } => {
                let known = id.and_then(|id| self.pending.borrow_mut().take(id));
                if id.is_some_and(|id| self.abandoned.borrow_mut().take(id).is_some()) {
                    return HandOn::Nothing;
                }
                if id.is_some() && known.is_none() && !self.may_be_asked(engine) {
                    return HandOn::Nothing;
                }
                let asked = known.unwrap_or_default();
                self.explain_refusals(engine, &asked, error, true);
                match self.inspect_result(engine, &asked, error).await {
                    None => HandOn::Unchanged,
                    Some(withheld) => id.map_or(HandOn::Nothing, |id| withheld.instead_of(id, !self.legacy.get())),
                }
            }
            // What the server asks or tells reaches the model as well.
            Body::Request { id, method, params } => {
                match self.inspect_result(engine, &of_server(method), params.unwrap_or_default()).await {
                    None => HandOn::Unchanged,
                    Some(withheld) => {
                        self.tell_server(format!("{}\n", error_to(id, &withheld.text)).as_bytes());
                        HandOn::Nothing
                    }
                }
            }
            Body::Notification { method, params } => {
                match self.inspect_result(engine, &of_server(method), params.unwrap_or_default()).await {
                    None => HandOn::Unchanged,
                    Some(_) => HandOn::Nothing,
                }
            }
        }
    }

    /// Whether an answer that belongs to no request in flight may belong to one all the same. What a client makes of it depends on the
    /// client, and nobody knows what it was asked for: it is not passed on.
    fn may_be_asked(&self, engine: &Engine) -> bool {
        let forgot = self.pending.borrow().forgot();
        if !forgot {
            let reason = "from the server: an answer to no request that is open; it was not passed on";
            engine.recorder.record(self.failed(engine, reason));
        }
        forgot
    }

    async fn receive_result(
        self: &Rc<Self>,
        engine: &Rc<Engine>,
        raw: &str,
        asked: Option<Asked>,
        id: &str,
        result: &str,
    ) -> HandOn {
        let mut new: Option<String> = None;
        for kind in kinds(asked.as_ref(), result) {
            // Of a result that defines several things each review takes out its own.
            match self.review(engine, kind, new.as_deref().unwrap_or(result)).await {
                Reviewed::Unchanged => {}
                Reviewed::Edited(edited) => new = Some(edited),
                Reviewed::Unreadable(why) => {
                    engine.recorder.record(self.failed(engine, &format!("from the server: {why}")));
                    return HandOn::Instead(error_to(id, &format!("Firedoor: {why}; it was not passed on")));
                }
            }
        }
        let handed = new.as_deref().unwrap_or(result);
        if let Some(asked) = &asked {
            self.tasks.answered(asked, handed);
            self.explain_refusals(engine, asked, handed, false);
        }
        let asked = asked.unwrap_or_default();
        if let Some(withheld) = self.inspect_result(engine, &asked, handed).await {
            return withheld.instead_of(id, !self.legacy.get());
        }
        if let Some(allowed) = &asked.allowed
            && let Some(state) = rounds::awaited(handed)
        {
            engine.desk.borrow_mut().expect_round(self.agent.id, allowed, &state, engine.now());
        }
        match new {
            None => HandOn::Unchanged,
            Some(new) => HandOn::Instead(replace_part(raw, result, &new)),
        }
    }

    /// Looks at a result, remembers it, and withholds it when a rule or a certain critical finding says so.
    async fn inspect_result(self: &Rc<Self>, engine: &Rc<Engine>, asked: &Asked, payload: &str) -> Option<Withheld> {
        let findings = self.findings(engine, asked, payload).await;
        let withheld = if findings.is_empty() { None } else { self.judge_result(engine, asked, findings).await };
        if withheld.is_none()
            && let Some(classifier) = &engine.classifier
        {
            classifier.read(self, asked, payload);
        }
        withheld
    }

    async fn judge_result(&self, engine: &Rc<Engine>, asked: &Asked, findings: Vec<Finding>) -> Option<Withheld> {
        let about = Subject {
            entry: self.entry.clone(),
            client: Some(self.agent.client.clone()),
            tool: (!asked.subject.is_empty()).then(|| Untrusted::new(asked.subject.as_str())),
            // No permit is ever given for a result.
            call: Call::of(&self.entry, "result", &asked.subject, None),
            address: None,
            mentions: Vec::new(),
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
                paused: engine.paused().is_some(),
                round: None,
            };
            engine.desk.borrow_mut().judge(self.agent.id, &input)
        };
        // A result is never held: what asks about a call only records a result.
        engine.settled_by(&decision.reason);
        let withheld = decision.verdict == Verdict::Block;
        let reference = withheld.then(|| engine.reference());
        let subject = match asked.subject.as_str() {
            "" => None,
            subject => Some(recordable(engine, &self.agent, subject).await),
        };
        let what = audit::What::Judged {
            method: Untrusted::new(asked.method.as_str()),
            subject,
            verdict: if withheld { Verdict::Block } else { Verdict::Allow },
            reference: reference.clone(),
            rule: decision.reason.rule(),
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
                let text = refusal(&Refusal::Withheld(decision.reason), &reference);
                Some(Withheld { text, tool_call: asked.method == "tools/call" })
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
        // What was meant as a request or an answer: who waits is told. Servers also print JSON that is no message.
        let remains = oversize::remains(body, body);
        let meant = memchr::memmem::find(body, b"\"jsonrpc\"").is_some();
        if meant && remains.id.as_ref().is_some_and(|id| remains.request || self.pending.borrow().has(id)) {
            self.answer_instead(remains, &format!("Firedoor: {error}; it was not passed on"));
        }
    }

    fn answer_too_long(&self, engine: &Engine, bytes: u64, head: &[u8], tail: &[u8]) {
        let limit = engine.config.limits.message_mib;
        let text = format!(
            "Firedoor: the server's message has {bytes} bytes, more than the limit of {limit} MiB, and was not passed \
             on; limits.message_mib in Firedoor's config.toml raises it"
        );
        engine.recorder.record(self.failed(engine, &format!("from the server: a message of {bytes} bytes")));
        self.answer_instead(oversize::remains(head, tail), &text);
    }

    /// Answers a request of the server, or one of the client's in the server's place, with an error.
    fn answer_instead(&self, remains: Remains, text: &str) {
        let Remains { id: Some(id), request } = remains else { return };
        let answer = error_to(&id, text) + "\n";
        if request {
            return self.tell_server(answer.as_bytes());
        }
        self.pending.borrow_mut().take(&id);
        self.send_down(answer.as_bytes(), vec![Record::Answered(vec![canonical(&id)])]);
    }
}

/// Ids that a line answers.
fn answers(frame: &Frame<'_>) -> Vec<String> {
    let mut all = Vec::new();
    for message in frame.messages() {
        if let Body::Response { id, .. } | Body::Error { id: Some(id), .. } = &message.body {
            all.extend(answered(id));
        }
    }
    all
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
