//! What happens to a message of the client's.

use std::rc::Rc;

use firedoor_model::{Finding, Mode, Untrusted, Verdict, audit, question::Choice};
use firedoor_policy::{Allowed, Ask, Call, Decision, Input, MessageKind, Reason, Refusal, Round, Subject, refusal};

use super::{Session, address, held::Request};
use crate::{agent::Agent, engine::Engine, withheld};

/// Longest arguments shown with a question, in characters.
const SHOWN_ARGUMENTS: usize = 16 << 10;
/// Bytes of arguments that are masked for it: a character has four at most.
const MASKED_ARGUMENTS: usize = 4 * SHOWN_ARGUMENTS;

/// What is to happen with one message of a line.
pub(super) enum Ruling {
    Pass,
    Ask {
        ask: Box<Ask>,
        request: Request,
        progress: Option<String>,
        /// For the record: the method, what it reaches, and all that was found.
        method: String,
        subject: Option<Untrusted>,
        found: Vec<Finding>,
    },
    Refuse {
        request: Option<Request>,
        text: String,
    },
    /// It cancels what the server never saw.
    Drop,
}

/// A message that is decided about.
pub(super) struct Judged<'a> {
    pub method: &'a str,
    pub subject: &'a str,
    /// Raw JSON: all of it that counts.
    pub said: Option<&'a str>,
    /// The arguments alone.
    pub arguments: Option<&'a str>,
    /// What stands beside them, as one object.
    pub beside: Option<&'a str>,
    /// What it brings back of an earlier answer.
    pub state: Option<&'a str>,
    pub request: Request,
    pub progress: Option<&'a str>,
}

impl Session {
    /// What is said once is said when somebody is asked about it, or when it goes on record where nobody would be asked; a
    /// pause, and a rule that lets it pass for now, leave it unsaid.
    async fn note_told(&self, engine: &Engine, tool: &str, findings: &[Finding], verdict: Verdict) {
        let recorded = engine.mode.get() != Mode::Strict && engine.paused().is_none();
        if (recorded || verdict == Verdict::Ask) && findings.iter().any(|f| f.detector == "flow/trifecta") {
            self.agent.memory.lock().await.told_of_trifecta(&self.entry, tool);
        }
    }

    /// Where a call goes, for rules and answers: the one address that it names, and what it names of those that are blocked.
    fn addressed(
        &self,
        engine: &Engine,
        said: Option<&str>,
        beside: Option<&str>,
        findings: &[Finding],
    ) -> (Option<Untrusted>, Vec<Untrusted>) {
        let rules = engine.rules.borrow();
        let known = || rules.iter().filter_map(|rule| Some((rule.effect, rule.matches.address.as_ref()?.raw())));
        // Nobody asks for it otherwise, and arguments may be long.
        let matters = !findings.is_empty() || engine.mode.get() == Mode::Strict || known().next().is_some();
        if !matters {
            return (None, Vec::new());
        }
        let blocked = known().filter(|(effect, _)| *effect == Choice::Block).map(|(_, address)| address).collect();
        let all = said.into_iter().chain(beside).flat_map(|text| address::mentioned(text, &blocked));
        let mentions = all.map(Untrusted::new).collect();
        (said.and_then(|said| address::named(said, findings)).map(Untrusted::new), mentions)
    }

    /// What happens to a message; and, where the user allows it, the call that may come back.
    pub(super) async fn decide(
        self: &Rc<Self>,
        engine: &Rc<Engine>,
        Judged { method, subject, said, arguments, beside, state, request, progress }: Judged<'_>,
        findings: Vec<Finding>,
    ) -> (Ruling, Option<Allowed>) {
        let tool = self.tools.borrow().get(subject).filter(|_| method == "tools/call").cloned();
        let (address, mentions) = self.addressed(engine, said, beside, &findings);
        let call = Call::of(&self.entry, method, subject, arguments);
        let about = Subject {
            entry: self.entry.clone(),
            client: Some(self.agent.client.clone()),
            tool: (!subject.is_empty()).then(|| Untrusted::new(subject)),
            call: if said == arguments { call.clone() } else { Call::of(&self.entry, method, subject, said) },
            address,
            mentions,
            launch: Some(self.launch),
            definition: tool.as_ref().map(|t| t.digest),
        };
        let Decision { verdict, reason, asks, round } = {
            let rules = engine.rules.borrow();
            let input = Input {
                mode: engine.mode.get(),
                findings: &findings,
                kind: MessageKind::Call,
                subject: &about,
                rules: &rules,
                now: engine.now(),
                quarantined: tool.as_ref().is_some_and(|t| t.quarantined),
                new_tool: method == "tools/call" && tool.is_none(),
                paused: engine.paused().is_some(),
                round: state.map(|state| Round { call: &call, state }),
            };
            engine.desk.borrow_mut().judge(self.agent.id, &input)
        };
        engine.settled_by(&reason);
        self.note_told(engine, subject, &findings, verdict).await;
        let rule = reason.rule();
        let shown_subject = match subject {
            "" => None,
            subject => Some(recordable(engine, &self.agent, subject).await),
        };
        let judged = |verdict, reference, findings| {
            let (method, subject) = (Untrusted::new(method), shown_subject.clone());
            self.event(engine.now(), audit::What::Judged { method, subject, verdict, reference, rule, findings })
        };
        match verdict {
            Verdict::Allow => {
                let permitted = matches!(reason, Reason::Permit { .. });
                let allowed = round.or_else(|| permitted.then(|| Allowed::new(&call, &about, &findings)));
                engine.recorder.record(judged(verdict, None, findings));
                (Ruling::Pass, allowed)
            }
            Verdict::Block => {
                let reference = engine.reference();
                let mut findings = findings;
                // The call itself is as good as any other: without this its row would say nothing of why.
                if tool.as_ref().is_some_and(|t| t.quarantined) && reason == Reason::Quarantined {
                    findings.push(withheld::waits());
                }
                let kind = match reason {
                    Reason::Quarantined => Refusal::Quarantined,
                    reason => Refusal::Policy(reason),
                };
                let text = refusal(&kind, &reference);
                engine.commit(judged(verdict, Some(reference), findings)).await;
                (Ruling::Refuse { request: Some(request), text }, None)
            }
            Verdict::Ask => {
                let said = said.unwrap_or_default();
                let arguments = engine.inspector.masked(&*self.agent.memory.lock().await, said, MASKED_ARGUMENTS);
                let chosen: Vec<Finding> = asks.iter().filter_map(|i| findings.get(*i).cloned()).collect();
                let allowed = Allowed::new(&call, &about, &chosen);
                let ask = Box::new(Ask {
                    held: engine.next_held(),
                    session: self.agent.id,
                    client: self.agent.client.name(),
                    subject: about,
                    findings: chosen,
                    arguments: Untrusted::new(shown(&arguments, said.len() > MASKED_ARGUMENTS)),
                    connection: None,
                });
                let progress = progress.map(str::to_owned);
                let (method, subject) = (method.to_owned(), shown_subject);
                (Ruling::Ask { ask, request, progress, method, subject, found: findings }, Some(allowed))
            }
        }
    }
}

/// A name for the audit log, with credentials and known secrets masked: a resource's URI may hold one.
pub async fn recordable(engine: &Engine, agent: &Agent, subject: &str) -> Untrusted {
    Untrusted::new(engine.inspector.masked_text(&*agent.memory.lock().await, subject))
}

fn shown(arguments: &str, more: bool) -> String {
    let cut: String = arguments.chars().take(SHOWN_ARGUMENTS).collect();
    if more || cut.len() < arguments.len() { format!("{cut}…") } else { cut }
}
