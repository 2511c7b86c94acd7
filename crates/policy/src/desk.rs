//! The question state machine: what is held, what was asked, and what an answer leaves behind.
//!
//! A held call has 45 s; then it is refused as "awaiting an answer". Its question lives 10 min: a late Allow gives a
//! permit for exactly that call, once. The caller passes the time in and acts on what comes out; it must feed `tick`
//! when [`Desk::next_deadline`] has come. A clock that goes backwards ends holds, questions and permits early.

mod answer;
mod patience;
mod rounds;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use firedoor_model::{
    EntryId, Finding, Millis, Severity, Untrusted,
    question::{Connection, Question, Ref},
};

use crate::{
    decision::{Decision, Input, Reason, Subject},
    judge::judge,
    refs::Refs,
    session::{Intent, SessionId, SessionRules},
};

use patience::{Kind, Patience};

pub use answer::{AnswerError, Answered, Settled, Standing};
pub(crate) use rounds::Rounds;
pub use rounds::{Allowed, Round};

/// Longest time a call is held, in milliseconds: clients give up at 60 s.
pub const HOLD_MS: u64 = 45_000;
/// How long a question can be answered, and how long a permit is good for, in milliseconds.
pub const OPEN_MS: u64 = 600_000;
/// Most open questions. A further one is refused and recorded.
pub const MAX_OPEN: usize = 64;
/// Most open questions of one agent: a flood of one must not leave another without an answer. Questions about calls and
/// about connections are counted apart, so that a server's connections cannot keep its client's calls from being asked about.
pub const MAX_OPEN_OF_ONE: usize = 16;
/// Most open questions about connections of one server.
pub const MAX_HOSTS_OF_ONE: usize = 8;
/// Most calls held on one question.
pub const MAX_HELD: usize = 64;
/// Closed questions remembered, to tell a late answer what became of them.
const MAX_CLOSED: usize = 1024;

/// A held message. Numbers are the engine's and are never used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HeldId(pub u64);

/// A call that needs an answer.
#[derive(Clone, Debug)]
pub struct Ask {
    /// The held message.
    pub held: HeldId,
    /// The agent's session.
    pub session: SessionId,
    /// The agent, for showing.
    pub client: Untrusted,
    /// What the call is about.
    pub subject: Subject,
    /// The findings that are asked about ([`Decision::asks`]).
    pub findings: Vec<Finding>,
    /// The arguments with secrets masked, for showing.
    pub arguments: Untrusted,
    /// What waits, when it is a connection of the server.
    pub connection: Option<Connection>,
}

/// What became of a call that needs an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Opening {
    /// A new question: show it.
    Opened {
        /// How to refer to it.
        reference: Ref,
        /// Until when the call is held.
        held_until: Millis,
    },
    /// The same call is asked about already; it is held with the others and the answer counts for all.
    Joined {
        /// The open question.
        reference: Ref,
        /// Until when this call is held.
        held_until: Millis,
    },
    /// Too many are open: refuse ([`crate::Refusal::Overflow`]) and record.
    Overflow {
        /// For the refusal and the record.
        reference: Ref,
    },
    /// This server's questions went unanswered: refuse ([`crate::Refusal::Quiet`]) and record.
    Quiet {
        /// For the refusal and the record.
        reference: Ref,
    },
}

/// What time, or the agent, did to a question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// These calls were held long enough: refuse them ([`crate::Refusal::Awaiting`]). The question stays open.
    HoldExpired {
        /// The question.
        reference: Ref,
        /// The calls.
        held: Vec<HeldId>,
    },
    /// Nobody answered. Any calls still held are refused.
    Expired {
        /// The question.
        reference: Ref,
        /// The calls still held, if any.
        held: Vec<HeldId>,
    },
    /// The agent gave up or went away: the question is gone, and nothing waits for it.
    Withdrawn {
        /// The question.
        reference: Ref,
    },
    /// Nothing waits for the answer any more; a late Allow is a permit. The question stays open.
    LetGo {
        /// The question.
        reference: Ref,
    },
    /// From now on this server is not asked about any more in this session: what would be asked is refused.
    Quieted {
        /// The agent's session.
        session: SessionId,
        /// The server.
        entry: EntryId,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Closed {
    Answered,
    Expired,
    Withdrawn,
}

struct Held {
    id: HeldId,
    from: Millis,
    until: Millis,
}

struct Open {
    question: Question,
    session: SessionId,
    subject: Subject,
    intents: Vec<Intent>,
    held: Vec<Held>,
    shown: bool,
    postponed: bool,
}

impl Open {
    fn is_connection(&self) -> bool {
        self.question.connection.is_some()
    }

    fn kind(&self) -> Kind {
        Kind { session: self.session, entry: self.subject.entry.clone(), connection: self.is_connection() }
    }
}

/// Whether `deadline` has come. A clock before `from` was set back: the deadline counts as come.
fn over(now: Millis, from: Millis, deadline: Millis) -> bool {
    now >= deadline || now < from
}

/// The open questions of one engine and what answers left behind.
pub struct Desk {
    refs: Refs,
    open: BTreeMap<Ref, Open>,
    closed: VecDeque<(Ref, Closed)>,
    sessions: BTreeMap<SessionId, SessionRules>,
    patience: Patience,
    nothing: SessionRules,
}

impl Desk {
    /// A desk without questions. `seed` comes from the system's random source, afresh for every run of the engine.
    pub fn new(seed: [u8; 32]) -> Self {
        Self {
            refs: Refs::new(seed),
            open: BTreeMap::new(),
            closed: VecDeque::new(),
            sessions: BTreeMap::new(),
            patience: Patience::default(),
            nothing: SessionRules::default(),
        }
    }

    /// A reference for a decision that is no question, such as a block.
    pub fn reference(&mut self) -> Ref {
        let (open, closed) = (&self.open, &self.closed);
        self.refs.next(|r| open.contains_key(r) || closed.iter().any(|(known, _)| known == r))
    }

    /// Judges a message in its session, and spends the permit if that is what lets it through. A round that it goes on with
    /// under the same program and definition is spent whatever comes of it.
    pub fn judge(&mut self, session: SessionId, input: &Input<'_>) -> Decision {
        let decision = judge(input, self.rules_of(session));
        let Some(rules) = self.sessions.get_mut(&session) else { return decision };
        if matches!(decision.reason, Reason::Permit { .. }) {
            rules.redeem(&input.subject.call, input.now);
        }
        let round = input.round.and_then(|round| rules.rounds.take(&round, input.subject, input.now));
        Decision { round, ..decision }
    }

    /// What was allowed and refused for the rest of a session.
    pub fn rules_of(&self, session: SessionId) -> &SessionRules {
        self.sessions.get(&session).unwrap_or(&self.nothing)
    }

    /// Asks about a call, or joins it to the question that asks the same already. Calls are the same when session,
    /// call, identities, detectors and both ends of every flow are: an answer never covers evidence that it was not
    /// given on.
    pub fn open(&mut self, ask: Ask, now: Millis) -> Opening {
        let Ask { held, session, client, subject, findings, arguments, connection } = ask;
        let intents = Intent::all(&subject, &findings);
        let hold = |until: Millis| Held { id: held, from: now, until: until.min(now.plus(HOLD_MS)) };

        let same = self.open.values_mut().find(|open| {
            open.session == session
                && open.subject == subject
                && open.intents == intents
                && gravest(&open.question.findings) >= gravest(&findings)
                && !over(now, open.question.asked, open.question.open_until)
        });
        if let Some(open) = same {
            let reference = open.question.id.clone();
            if open.held.len() >= MAX_HELD {
                return Opening::Overflow { reference };
            }
            let held = hold(open.question.open_until);
            let held_until = held.until;
            open.question.held_until = open.question.held_until.max(held_until);
            open.held.push(held);
            return Opening::Joined { reference, held_until };
        }
        let reference = self.reference();
        if self.patience.is_lost_with(&Kind { session, entry: subject.entry.clone(), connection: connection.is_some() })
        {
            return Opening::Quiet { reference };
        }
        let alike = |open: &&Open| open.session == session && open.is_connection() == connection.is_some();
        let of_agent = self.open.values().filter(alike).count();
        let of_server = self.open.values().filter(|o| alike(o) && o.subject.entry == subject.entry).count();
        let full = connection.is_some() && of_server >= MAX_HOSTS_OF_ONE;
        if full || self.open.len() >= MAX_OPEN || of_agent >= MAX_OPEN_OF_ONE {
            return Opening::Overflow { reference };
        }
        let open_until = now.plus(OPEN_MS);
        let held = hold(open_until);
        let held_until = held.until;
        let question = Question {
            id: reference.clone(),
            entry: subject.entry.clone(),
            client,
            tool: subject.tool.clone().unwrap_or_else(|| Untrusted::new("")),
            exact: connection.is_none() && subject.address.is_none() && findings.iter().any(is_grave_flow),
            address: subject.address.clone(),
            connection,
            findings,
            arguments,
            call: subject.call.digest(),
            asked: now,
            held_until,
            open_until,
        };
        let open = Open { question, session, subject, intents, held: vec![held], shown: false, postponed: false };
        self.open.insert(reference.clone(), open);
        Opening::Opened { reference, held_until }
    }

    /// The open questions, oldest first.
    pub fn questions(&self) -> Vec<&Question> {
        let mut questions: Vec<_> = self.open.values().map(|open| &open.question).collect();
        questions.sort_by_key(|q| (q.asked, &q.id));
        questions
    }

    /// One open question, and what it is about.
    pub fn question(&self, reference: &Ref) -> Option<(&Question, &Subject)> {
        self.open.get(reference).map(|open| (&open.question, &open.subject))
    }

    /// Notes that a person has been shown a question. From now on it outlives its calls.
    pub fn shown(&mut self, reference: &Ref) {
        if let Some(open) = self.open.get_mut(reference) {
            open.shown = true;
        }
    }

    /// Notes that the user closed one prompt, on which these were, without an answer. They stay open until their end. However
    /// many they are, each server was waved away once.
    pub fn later(&mut self, references: &[Ref]) -> Vec<Event> {
        let mut kinds = BTreeSet::new();
        for reference in references {
            let Some(open) = self.open.get_mut(reference) else { continue };
            open.shown = true;
            if !std::mem::replace(&mut open.postponed, true) {
                kinds.insert(open.kind());
            }
        }
        kinds.into_iter().filter_map(|kind| self.patience.lose(kind)).collect()
    }

    /// The calls that are held, with their questions.
    pub fn held(&self) -> Vec<(Ref, Vec<HeldId>)> {
        let held = |open: &Open| open.held.iter().map(|h| h.id).collect();
        self.open.iter().map(|(reference, open)| (reference.clone(), held(open))).collect()
    }

    /// The agent cancelled a held call, or its connection closed.
    ///
    /// A question on which nothing is held any more is withdrawn if nobody was shown it. One that was shown stays
    /// answerable, because clients cancel by themselves when their own time is up, and a late Allow is still of use; but it
    /// says that nothing waits for it.
    pub fn cancel(&mut self, held: HeldId, now: Millis) -> Option<Event> {
        let open = self.open.values_mut().find(|open| open.held.iter().any(|h| h.id == held))?;
        open.held.retain(|h| h.id != held);
        if !open.held.is_empty() {
            return None;
        }
        let reference = open.question.id.clone();
        if open.shown {
            open.question.held_until = open.question.held_until.min(now);
            return Some(Event::LetGo { reference });
        }
        self.close(&reference, Closed::Withdrawn);
        Some(Event::Withdrawn { reference })
    }

    /// When `tick` has something to do next.
    pub fn next_deadline(&self) -> Option<Millis> {
        self.open.values().flat_map(|open| open.held.iter().map(|h| h.until).chain([open.question.open_until])).min()
    }

    /// Lets time pass.
    pub fn tick(&mut self, now: Millis) -> Vec<Event> {
        let mut events = Vec::new();
        let mut expired = Vec::new();
        for (reference, open) in &mut self.open {
            if over(now, open.question.asked, open.question.open_until) {
                expired.push(reference.clone());
                continue;
            }
            let (done, held) = std::mem::take(&mut open.held).into_iter().partition(|h| over(now, h.from, h.until));
            open.held = held;
            let done: Vec<Held> = done;
            if !done.is_empty() {
                let held = done.into_iter().map(|h| h.id).collect();
                events.push(Event::HoldExpired { reference: reference.clone(), held });
            }
        }
        for reference in expired {
            let Some(open) = self.close(&reference, Closed::Expired) else { continue };
            events.push(Event::Expired { reference, held: open.held.iter().map(|h| h.id).collect() });
            if !open.postponed {
                let Question { asked, open_until, .. } = open.question;
                events.extend(self.patience.expire(open.kind(), open.intents, asked, open_until));
            }
        }
        for rules in self.sessions.values_mut() {
            rules.permits.retain(|p| !over(now, p.from, p.until));
            rules.rounds.expire(now);
        }
        events
    }

    /// Forgets a session: its questions, permits, and what was allowed or refused in it.
    pub fn session_ended(&mut self, session: SessionId) -> Vec<Event> {
        self.sessions.remove(&session);
        self.patience.forget_session(session);
        let gone: BTreeSet<Ref> =
            self.open.iter().filter(|(_, open)| open.session == session).map(|(r, _)| r.clone()).collect();
        gone.into_iter()
            .map(|reference| {
                self.close(&reference, Closed::Withdrawn);
                Event::Withdrawn { reference }
            })
            .collect()
    }

    /// Servers whose questions were left unanswered so often that nothing is asked about them any more in some session.
    pub fn quiet(&self) -> BTreeSet<EntryId> {
        self.patience.lost_with().map(|kind| kind.entry.clone()).collect()
    }

    fn close(&mut self, reference: &Ref, how: Closed) -> Option<Open> {
        let open = self.open.remove(reference)?;
        self.closed.push_back((reference.clone(), how));
        if self.closed.len() > MAX_CLOSED {
            self.closed.pop_front();
        }
        Some(open)
    }
}

/// What must not be allowed for longer without knowing where to.
fn is_grave_flow(finding: &Finding) -> bool {
    finding.detector.starts_with("flow/") && finding.severity >= Severity::High
}

fn gravest(findings: &[Finding]) -> Option<(Severity, firedoor_model::Confidence)> {
    findings.iter().map(|f| (f.severity, f.confidence)).max()
}

#[cfg(test)]
mod tests;
