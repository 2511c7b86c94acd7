//! Connections of a server to hosts that nobody granted. The guardian holds them; the user is asked as about a call.

use std::{
    cell::Cell,
    rc::{Rc, Weak},
};

use firedoor_ipc::shim::ToShim;
use firedoor_model::{
    Confidence, Evidence, Finding, Severity, Untrusted, Verdict,
    audit::What,
    finding::Role,
    network::{Host, HostQuestion, HostRuling, Port},
    question::{Connection, Ref},
};
use firedoor_policy::{Ask, Call, Decision, HOST, HeldId, Input, MessageKind, Opening, Reason, Subject};

use super::{Session, attempts};
use crate::engine::{Engine, held::Held};

/// In the audit log and in what a permit is good for.
const METHOD: &str = "connect";
/// Longest program that is shown, in characters.
const PROGRAM: usize = 160;

/// Connections to one host and port that wait for the user.
pub struct HeldConnection {
    session: Weak<Session>,
    /// The guardian's number of the question, and the desk's of what is held.
    question: u64,
    held: HeldId,
    settled: Cell<bool>,
}

impl HeldConnection {
    /// Tells the guardian. Only the first time.
    pub fn rule(&self, allow: bool, lasting: bool) {
        if !self.settled.replace(true)
            && let Some(session) = self.session.upgrade()
        {
            session.connections.borrow_mut().retain(|c| !c.settled.get());
            session.send_ruling(HostRuling { id: self.question, allow, lasting });
        }
    }
}

impl Session {
    /// Sends a ruling. A shim that has gone has no connection left.
    fn send_ruling(&self, ruling: HostRuling) {
        let shim = self.shim.clone();
        tokio::task::spawn_local(async move {
            let _ = shim.send(&ToShim::Rule(ruling)).await;
        });
    }

    /// The guardian asks about a connection.
    pub(super) async fn asked(self: &Rc<Self>, engine: &Rc<Engine>, question: HostQuestion) {
        let HostQuestion { id, to, pid, program } = question;
        let refuse = |lasting| self.send_ruling(HostRuling { id, allow: false, lasting });
        if !matches!((&to.host, to.port), (Host::Name(_) | Host::Address(_), Some(Port::Tcp(_)))) {
            return refuse(true);
        }
        let target = Untrusted::new(to.to_string());
        let program = Untrusted::new(format!("{} ({pid})", program.visible(PROGRAM)));
        let subject = Subject {
            entry: self.entry.clone(),
            client: Some(self.agent.client.clone()),
            tool: Some(target.clone()),
            call: Call::of(&self.entry, METHOD, target.raw(), None),
            address: None,
            mentions: Vec::new(),
            launch: Some(self.launch),
            definition: None,
        };
        let carried = self.carried(engine, target.raw()).await;
        let on_record = if carried.is_empty() { target.clone() } else { attempts::without_data(target.raw()) };
        let findings: Vec<Finding> = std::iter::once(self.finding(&on_record, &program)).chain(carried).collect();
        let Decision { verdict, reason, .. } = {
            let rules = engine.rules.borrow();
            let input = Input {
                mode: engine.mode.get(),
                findings: &findings,
                kind: MessageKind::Call,
                subject: &subject,
                rules: &rules,
                now: engine.now(),
                quarantined: false,
                new_tool: false,
                paused: engine.paused().is_some(),
                round: None,
            };
            engine.desk.borrow_mut().judge(self.agent.id, &input)
        };
        engine.settled_by(&reason);
        let rule = reason.rule();
        let judged = |verdict, reference: Ref, findings| {
            let (method, subject, reference) = (Untrusted::new(METHOD), Some(on_record.clone()), Some(reference));
            self.event(engine.now(), What::Judged { method, subject, verdict, reference, rule, findings })
        };
        match (verdict, reason) {
            // Somebody's leave, and nothing else: that nothing was found is none.
            (Verdict::Allow, Reason::Permit { reference }) => {
                self.allow(engine, id, false, judged(verdict, reference, findings)).await;
            }
            (Verdict::Allow, Reason::SessionRule { reference }) => {
                self.allow(engine, id, true, judged(verdict, reference, findings)).await;
            }
            (Verdict::Allow, Reason::Rule { .. }) => {
                let reference = engine.reference();
                self.allow(engine, id, true, judged(verdict, reference, findings)).await;
            }
            (Verdict::Ask, _) => {
                let ask = Ask {
                    held: engine.next_held(),
                    session: self.agent.id,
                    client: self.agent.client.name(),
                    subject,
                    findings: findings.clone(),
                    arguments: Untrusted::new(""),
                    connection: Some(Connection { to, program }),
                };
                let held = Rc::new(HeldConnection {
                    session: Rc::downgrade(self),
                    question: id,
                    held: ask.held,
                    settled: Cell::new(false),
                });
                let opening = engine.desk.borrow_mut().open(ask, engine.now());
                let (verdict, reference) = match opening {
                    Opening::Opened { reference, .. } | Opening::Joined { reference, .. } => {
                        self.connections.borrow_mut().push(held.clone());
                        engine.held.borrow_mut().insert(held.held, Held::Connection(held.clone()));
                        (Verdict::Ask, reference)
                    }
                    Opening::Overflow { reference } | Opening::Quiet { reference } => (Verdict::Block, reference),
                };
                engine.wake.notify_one();
                engine.changed();
                engine.commit(judged(verdict, reference, findings)).await;
                if verdict == Verdict::Block {
                    refuse(false);
                }
            }
            (_, reason) => {
                let reference = match &reason {
                    Reason::Denied { reference } => reference.clone(),
                    _ => engine.reference(),
                };
                engine.commit(judged(Verdict::Block, reference, findings)).await;
                refuse(matches!(reason, Reason::Denied { .. } | Reason::Rule { .. }));
            }
        }
    }

    /// Credentials of the agent's session that the host's name holds: whoever asks for a name tells it to its owner.
    async fn carried(&self, engine: &Engine, target: &str) -> Vec<Finding> {
        let mut memory = self.agent.memory.lock().await;
        let mut found = engine.inspector.destination(&mut memory, &self.entry, target, engine.now());
        found.retain(|f| matches!(f.detector.as_ref(), "flow/secret" | "broker/placeholder"));
        found
    }

    /// Lets a connection go on that was allowed before. What cannot be put on record does not happen.
    async fn allow(&self, engine: &Rc<Engine>, id: u64, lasting: bool, event: firedoor_model::audit::Event) {
        let written = engine.recorder.commit(event).await;
        if let Err(e) = &written {
            engine.problem(e.to_string());
        }
        self.send_ruling(HostRuling { id, allow: written.is_ok(), lasting: lasting && written.is_ok() });
    }

    fn finding(&self, target: &Untrusted, program: &Untrusted) -> Finding {
        let evidence = |pointer: &str, excerpt: &Untrusted| Evidence {
            role: Role::Place,
            entry: Some(self.entry.clone()),
            tool: None,
            pointer: Untrusted::new(pointer),
            span: None,
            excerpt: excerpt.clone(),
            transform: None,
            age_ms: None,
        };
        Finding {
            detector: HOST.into(),
            severity: Severity::Medium,
            confidence: Confidence::Certain,
            summary: "The server wants to connect to a host that nobody granted to it.".into(),
            evidence: vec![evidence("/target", target), evidence("/process", program)],
        }
    }

    /// Nothing waits for the answer to the guardian's question any more.
    pub(super) fn question_withdrawn(&self, engine: &Engine, id: u64) {
        let held = self.connections.borrow().iter().find(|c| c.question == id).cloned();
        if let Some(held) = held {
            held.settled.set(true);
            self.connections.borrow_mut().retain(|c| !c.settled.get());
            engine.forget_connection(held.held);
        }
    }

    /// The server has ended, and its connections with it.
    pub(super) fn withdraw_connections(&self, engine: &Engine) {
        for held in self.connections.take() {
            held.settled.set(true);
            engine.forget_connection(held.held);
        }
    }
}
