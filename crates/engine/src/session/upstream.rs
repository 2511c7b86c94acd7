//! From the client to the server.

use std::{
    cell::{Cell, RefCell},
    rc::Rc,
    sync::Arc,
};

use firedoor_inspect::{MAX_NAME, Sink};
use firedoor_model::{
    Finding, Untrusted, Verdict, audit,
    wire::{Body, CallView, Frame, Message, Object, WireError, unescape},
};
use firedoor_policy::{Ask, Call, Opening, Refusal, Round, refusal};

use super::{
    Session,
    held::{HeldLine, Request},
    inspected::Content,
    ledger::{Record, Way},
    logs::shorten,
    pending::{Asked, canonical},
    rounds,
    ruling::{Judged, Ruling},
};
use crate::{
    engine::{Engine, held::Held},
    io::{Inlet, Line, Lines},
};

/// Longest id of a request, in bytes. Real ones are numbers and UUIDs.
const MAX_ID: usize = 1024;

/// Longest method that is passed on, in bytes. It is kept while the request is in flight, and in the audit log.
const MAX_METHOD: usize = 256;

/// In the audit log: the client's answer to a request of the server (sampling, elicitation, roots).
const ANSWER: &str = "answer";

/// The member of `params` that names what is called, for the methods that reach something.
pub(super) fn subject_member(method: &str) -> Option<&'static str> {
    match method {
        "tools/call" | "prompts/get" => Some("name"),
        "resources/read" | "resources/subscribe" => Some("uri"),
        _ => None,
    }
}

/// Reads lines until the client closes its side.
pub(super) async fn run(session: Rc<Session>, engine: Rc<Engine>, mut inlet: Inlet) {
    let mut lines = Lines::new(engine.config.limits.message_bytes());
    loop {
        match inlet.read(&mut lines).await {
            Ok(0) | Err(_) => break,
            Ok(_) => {}
        }
        while let Some((line, held)) = lines.next() {
            session.from_client(&engine, line, inlet.done(held)).await;
            session.to_server.room().await;
            // Refusals and errors are answers of ours: a client that writes and never reads must wait as it would for a server.
            session.to_client.room().await;
        }
        shorten(Way::Up, (&mut inlet, &lines), &session.to_server, &session.ledger).await;
    }
    let end = inlet.done(0);
    if let Some(line) = lines.finish() {
        session.from_client(&engine, line, end).await;
    }
}

impl Session {
    /// Deals with one line. `up` is the offset of its end in the client's log.
    async fn from_client(self: &Rc<Self>, engine: &Rc<Engine>, line: Line<'_>, up: u64) {
        let through = Record::Through(Way::Up, up);
        let line = match line {
            Line::Whole(line) => line,
            Line::TooLong { bytes, head, tail } => {
                self.too_long(engine, bytes, head, tail);
                return self.ledger.write(through);
            }
        };
        let body = line.trim_ascii();
        if body.is_empty() {
            return self.send_up(line, vec![through]);
        }
        let frame = match Frame::parse(body) {
            Ok(frame) => frame,
            Err(e) => {
                self.malformed(engine, body, e);
                return self.ledger.write(through);
            }
        };
        let requests = requests(&frame);
        if requests.iter().any(|r| r.id.len() > MAX_ID) {
            self.malformed(engine, body, WireError::NotRpc);
            return self.ledger.write(through);
        }
        // Claimed before they are judged: an engine that takes over has forgotten what this one would judge by.
        for request in &requests {
            self.ledger.write(Record::claim(request, up));
        }
        let mut asked = Vec::new();
        let mut rulings = Vec::new();
        let batch = matches!(frame, Frame::Batch(_));
        for message in frame.messages() {
            match self.rule(engine, message, &mut asked).await {
                Ruling::Drop if !batch => return self.ledger.write(through),
                // In a batch it goes along: servers ignore the cancellation of what they do not know.
                Ruling::Pass | Ruling::Drop => {}
                ruling => rulings.push(ruling),
            }
        }
        if rulings.is_empty() {
            return self.forward(line, asked, through);
        }
        if requests.is_empty() {
            // What stops here is not read again by an engine that takes over.
            self.ledger.write(through);
        }
        self.stop_line(engine, line, &frame, requests, asked, rulings).await;
    }

    /// Lets a line go to the server.
    pub(super) fn forward(self: &Rc<Self>, line: &[u8], asked: Vec<(String, Asked)>, through: Record) {
        let records = if asked.is_empty() { vec![through] } else { vec![Record::sent(&asked)] };
        self.remember(asked);
        self.send_up(line, records);
    }

    /// Refuses or holds a line of which at least one message may not simply pass.
    async fn stop_line(
        self: &Rc<Self>,
        engine: &Rc<Engine>,
        line: &[u8],
        frame: &Frame<'_>,
        requests: Vec<Request>,
        asked: Vec<(String, Asked)>,
        rulings: Vec<Ruling>,
    ) {
        let held = Rc::new(HeldLine {
            session: Rc::downgrade(self),
            line: line.to_vec(),
            batch: matches!(frame, Frame::Batch(_)),
            requests,
            answers: answers(frame),
            asked: RefCell::new(asked),
            waits: Cell::new(0),
            settled: Cell::new(false),
            ids: RefCell::default(),
        });
        for ruling in &rulings {
            if let Ruling::Refuse { request, text } = ruling {
                held.refuse(request.as_ref().map_or("", |r| &r.id), text);
            }
        }
        if held.settled.get() {
            return;
        }
        held.waits.set(rulings.len());
        self.held.borrow_mut().push(held.clone());
        for ruling in rulings {
            let Ruling::Ask { ask, request, progress, method, subject, found } = ruling else { continue };
            held.ids.borrow_mut().push((ask.held, request.id.clone()));
            if let Some(token) = progress {
                held.keep_alive(token);
            }
            engine.ask(&held, *ask, &request.id, (&method, subject), found).await;
        }
    }

    /// Judges one message.
    async fn rule(
        self: &Rc<Self>,
        engine: &Rc<Engine>,
        message: &Message<'_>,
        asked: &mut Vec<(String, Asked)>,
    ) -> Ruling {
        let (id, method, params) = match &message.body {
            Body::Request { id, method, params } => (*id, method.as_ref(), *params),
            Body::Notification { method, params } => {
                return if method == "notifications/cancelled" && self.cancelled(engine, *params) {
                    Ruling::Drop
                } else if subject_member(method).is_some() {
                    // Some servers act on it all the same, and nobody could be told of a refusal.
                    engine.recorder.record(self.failed(engine, &format!("from the client: {method} without an id")));
                    Ruling::Refuse { request: None, text: String::new() }
                } else {
                    self.rule_on_content(engine, cut(method), *params).await
                };
            }
            Body::Response { result: said, .. } | Body::Error { error: said, .. } => {
                return self.rule_on_content(engine, ANSWER, Some(said)).await;
            }
        };
        // One that names its revision opens no session, and its server says that there is no such method.
        if method == "initialize" && !params.is_some_and(is_modern) && !self.legacy.replace(true) {
            self.ledger.write(Record::Legacy);
        }
        let request =
            || Request { id: id.to_owned(), tool_call: method == "tools/call", modern: params.is_some_and(is_modern) };
        let too_long = |what: &str| {
            engine.recorder.record(self.failed(engine, &format!("from the client: {what} is too long")));
            Ruling::Refuse { request: Some(request()), text: refusal(&Refusal::TooLarge, &engine.reference()) }
        };
        if method.len() > MAX_METHOD {
            return too_long("a method");
        }
        let (subject, arguments, progress) = match subject_member(method).filter(|_| !names_nothing(method, params)) {
            // What reaches no tool may still carry data away: its params are looked at as a whole.
            None => (String::new(), params, None),
            Some(member) => match CallView::parse(params, member) {
                Ok(view) if view.subject.len() > MAX_NAME => return too_long(&format!("the {member} of a {method}")),
                Ok(view) => (view.subject.into_owned(), view.arguments, view.progress_token),
                Err(e) => {
                    let text = refusal(&Refusal::EngineError, &engine.reference());
                    engine.recorder.record(self.failed(engine, &format!("{method}: {e}")));
                    return Ruling::Refuse { request: Some(request()), text };
                }
            },
        };
        let sink = self.sink(engine, method, &subject);
        let content = Content { method, subject: &subject, said: arguments, sink, beside: false };
        let (label, mut findings) = self.inspect(engine, content).await;
        let state = rounds::state(params, method);
        let state_is_known = state.as_deref().is_some_and(|state| {
            let call = Call::of(&self.entry, method, &subject, arguments);
            engine.desk.borrow().expects(self.agent.id, &Round { call: &call, state }, engine.now())
        });
        let mut said = arguments;
        let beside = rounds::beside(params, method, state_is_known);
        if beside.is_some() {
            let content = Content { said: beside.as_deref(), beside: true, ..content };
            let more = rounds::news(self.inspect(engine, content).await.1, &findings);
            if !more.is_empty() {
                // What is decided about is then more than the arguments.
                said = params;
                findings.extend(more);
            }
        }
        let own = || Asked { method: method.to_owned(), subject: subject.clone(), label, allowed: None };
        asked.push((id.to_owned(), self.tasks.behind(method, params).unwrap_or_else(own)));
        let reaches = subject_member(method).is_some();
        if method == "tools/call" {
            self.calls.set(self.calls.get() + 1);
        }
        if !reaches && findings.is_empty() {
            return Ruling::Pass;
        }
        let judged = Judged {
            method,
            subject: &subject,
            said,
            arguments,
            beside: beside.as_deref(),
            state: state.as_deref(),
            request: request(),
            progress,
        };
        let (ruling, allowed) = self.decide(engine, judged, findings).await;
        if let Some((_, asked)) = asked.last_mut() {
            asked.allowed = allowed.map(Arc::new);
        }
        ruling
    }

    /// Judges what goes to the server without being a request: notifications, and answers to what the server asked,
    /// which carry what the model or the user said.
    async fn rule_on_content(self: &Rc<Self>, engine: &Rc<Engine>, method: &str, said: Option<&str>) -> Ruling {
        let Some(said) = said else { return Ruling::Pass };
        let content = Content { method, subject: "", said: Some(said), sink: Sink::Unknown, beside: false };
        let (_, findings) = self.inspect(engine, content).await;
        if findings.is_empty() {
            return Ruling::Pass;
        }
        let request = Request { id: String::new(), tool_call: false, modern: false };
        let (said, arguments) = (Some(said), Some(said));
        let judged =
            Judged { method, subject: "", said, arguments, beside: None, state: None, request, progress: None };
        self.decide(engine, judged, findings).await.0
    }

    /// The client gives up a request. True when it was held here.
    fn cancelled(&self, engine: &Rc<Engine>, params: Option<&str>) -> bool {
        let id = params.and_then(Object::parse).and_then(|o| o.get("requestId"));
        let Some(id) = id else { return false };
        let key = canonical(id);
        let is_held = |h: &&Rc<HeldLine>| !h.settled.get() && h.requests.iter().any(|r| canonical(&r.id) == key);
        let held = self.held.borrow().iter().find(is_held).cloned();
        let Some(held) = held.filter(|h| !h.batch) else {
            // The server has it and need not answer any more.
            self.ledger.write(Record::Answered(vec![key]));
            return false;
        };
        engine.withdraw(&held);
        true
    }

    pub(super) fn failed(&self, engine: &Engine, reason: &str) -> audit::Event {
        self.event(engine.now(), audit::What::Failed { reason: reason.to_owned() })
    }
}

impl Engine {
    /// Puts a question about a held line on the desk, and on record. `found` are all findings, also those that nobody is
    /// asked about.
    async fn ask(
        self: &Rc<Self>,
        held: &Rc<HeldLine>,
        ask: Ask,
        id: &str,
        (method, subject): (&str, Option<Untrusted>),
        found: Vec<Finding>,
    ) {
        let number = ask.held;
        let opening = self.desk.borrow_mut().open(ask, self.now());
        self.wake.notify_one();
        self.changed();
        let (reference, refused) = match opening {
            Opening::Opened { reference, .. } | Opening::Joined { reference, .. } => {
                self.held.borrow_mut().insert(number, Held::Line(held.clone()));
                (reference, None)
            }
            Opening::Overflow { reference } => (reference, Some(Refusal::Overflow)),
            Opening::Quiet { reference } => (reference, Some(Refusal::Quiet)),
        };
        if let Some(session) = held.session.upgrade() {
            let what = audit::What::Judged {
                method: Untrusted::new(method),
                subject,
                verdict: if refused.is_some() { Verdict::Block } else { Verdict::Ask },
                reference: Some(reference.clone()),
                rule: None,
                findings: found,
            };
            self.commit(session.event(self.now(), what)).await;
        }
        if let Some(kind) = refused {
            held.refuse(id, &refusal(&kind, &reference));
            self.settled(held);
        }
    }
}

/// All requests of a line.
fn requests(frame: &Frame<'_>) -> Vec<Request> {
    let one = |m: &Message<'_>| match &m.body {
        Body::Request { id, method, params } => Some(Request {
            id: (*id).to_owned(),
            tool_call: method == "tools/call",
            modern: params.is_some_and(is_modern),
        }),
        _ => None,
    };
    frame.messages().iter().filter_map(one).collect()
}

/// The raw ids of all answers of a line: the server waits for them.
fn answers(frame: &Frame<'_>) -> Vec<String> {
    let one = |m: &Message<'_>| match &m.body {
        Body::Response { id, .. } | Body::Error { id: Some(id), .. } => Some((*id).to_owned()),
        _ => None,
    };
    frame.messages().iter().filter_map(one).collect()
}

/// As much of a method as is kept.
fn cut(method: &str) -> &str {
    method.get(..method.len().min(MAX_METHOD)).unwrap_or_default()
}

/// Whether a request that would reach something says nothing at all of what: its server refuses it in its own words. Another
/// member might be what a lenient server reads, and a tool is never called without its name.
fn names_nothing(method: &str, params: Option<&str>) -> bool {
    let only_meta =
        |params: &str| Object::parse(params).is_some_and(|all| all.0.iter().all(|(name, _)| name == "_meta"));
    method != "tools/call" && params.is_none_or(only_meta)
}

/// Whether a request belongs to the stateless era (revision 2026-07-28 and later), which says so in every request.
fn is_modern(params: &str) -> bool {
    let meta = Object::parse(params).and_then(|p| p.get("_meta")).and_then(Object::parse);
    meta.and_then(|m| m.get("io.modelcontextprotocol/protocolVersion")).and_then(unescape).is_some()
}
