//! Calls that a server answers by asking the client something first, and that the client then makes again with the answer
//! (MCP 2026-07-28, multi round-trip requests). The user who allowed the call is not asked about it once more.

use std::collections::VecDeque;

use firedoor_model::{Digest, Finding, Millis, finding::Role};

use super::{Desk, OPEN_MS, over};
use crate::{call::Call, decision::Subject, session::SessionId};

/// Most calls of one session that are expected again; the oldest is forgotten first.
const MAX_ROUNDS: usize = 64;

/// A call that the user has allowed, on its way to the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Allowed {
    /// Its server, method, tool and arguments, whatever else stands beside these.
    call: Digest,
    /// What was found when the user allowed it.
    findings: Vec<Finding>,
    launch: Option<Digest>,
    definition: Option<Digest>,
    /// When its server first answered with a question. How often that may go on is bounded by the time since.
    since: Option<Millis>,
}

impl Allowed {
    /// The call that was judged as `subject`, with these findings.
    pub fn new(call: &Call, subject: &Subject, findings: &[Finding]) -> Self {
        Self {
            call: call.digest(),
            findings: findings.iter().map(Finding::ageless).collect(),
            launch: subject.launch,
            definition: subject.definition,
            since: None,
        }
    }

    /// Whether this was there when the user allowed the call. Only what was found in one of the arguments can have been, which are
    /// the same: a finding says where it was seen, and not all that stood there. So the client's answers, which are others each
    /// time, are never covered, nor is what was found about the call as a whole.
    pub(crate) fn covers(&self, finding: &Finding) -> bool {
        let mut places = finding.evidence.iter().filter(|e| e.role != Role::Source).peekable();
        places.peek().is_some()
            && places.all(|e| e.pointer.raw().starts_with("/arguments/"))
            && self.findings.contains(&finding.ageless())
    }
}

/// What a call says about itself when it is made again.
#[derive(Clone, Copy, Debug)]
pub struct Round<'a> {
    /// Its server, method, tool and arguments.
    pub call: &'a Call,
    /// The server's own word that came with its question (`requestState`), as the client gives it back.
    pub state: &'a str,
}

/// The calls of one session that are expected once more, each with the state that it has to name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Rounds(VecDeque<(Digest, Allowed)>);

impl Rounds {
    /// A server has answered an allowed call with a question.
    pub fn expect(&mut self, allowed: &Allowed, state: &str, now: Millis) {
        let since = allowed.since.or(Some(now));
        self.0.push_back((Digest::of(state.as_bytes()), Allowed { since, ..allowed.clone() }));
        if self.0.len() > MAX_ROUNDS {
            self.0.pop_front();
        }
    }

    /// Where a call with this state is expected, whatever the server and its tool are by now.
    fn known(&self, round: &Round<'_>, now: Millis) -> Option<usize> {
        if self.0.is_empty() {
            return None;
        }
        let state = Digest::of(round.state.as_bytes());
        self.0
            .iter()
            .position(|(known, allowed)| *known == state && allowed.call == round.call.digest() && !ended(allowed, now))
    }

    fn place(&self, round: &Round<'_>, subject: &Subject, now: Millis) -> Option<usize> {
        let unchanged = |at: &usize| {
            self.0.get(*at).is_some_and(|(_, allowed)| {
                (allowed.launch, allowed.definition) == (subject.launch, subject.definition)
            })
        };
        self.known(round, now).filter(unchanged)
    }

    /// The allowed call that this one goes on with.
    pub fn find(&self, round: &Round<'_>, subject: &Subject, now: Millis) -> Option<&Allowed> {
        self.0.get(self.place(round, subject, now)?).map(|(_, allowed)| allowed)
    }

    /// The same, which is then not expected any more.
    pub fn take(&mut self, round: &Round<'_>, subject: &Subject, now: Millis) -> Option<Allowed> {
        self.0.remove(self.place(round, subject, now)?).map(|(_, allowed)| allowed)
    }

    /// Forgets what is too old.
    pub fn expire(&mut self, now: Millis) {
        self.0.retain(|(_, allowed)| !ended(allowed, now));
    }
}

fn ended(allowed: &Allowed, now: Millis) -> bool {
    allowed.since.is_none_or(|since| over(now, since, since.plus(OPEN_MS)))
}

impl Desk {
    /// A server has answered an allowed call with a question: the call that comes back with this state is the same one.
    pub fn expect_round(&mut self, session: SessionId, allowed: &Allowed, state: &str, now: Millis) {
        self.sessions.entry(session).or_default().rounds.expect(allowed, state, now);
    }

    /// Whether the state that a call brings back is what its server gave for it.
    pub fn expects(&self, session: SessionId, round: &Round<'_>, now: Millis) -> bool {
        self.rules_of(session).rounds.known(round, now).is_some()
    }
}

#[cfg(test)]
mod tests {
    use firedoor_model::{Mode, Severity, Verdict};

    use super::*;
    use crate::{
        Desk, Input, MessageKind, Reason, SessionId,
        fixtures::{flow, input, subject},
    };

    const SESSION: SessionId = SessionId(1);
    const T0: Millis = Millis(1_000_000);
    const STATE: &str = "state \"é\"";

    /// What happens to a call after another one was allowed and answered with a question.
    struct Again<'a> {
        session: SessionId,
        call: &'a [u8],
        state: Option<&'a str>,
        findings: Vec<Finding>,
        wait: u64,
        subject: Subject,
        kind: MessageKind,
        mode: Mode,
    }

    impl Again<'_> {
        /// As it is meant to be.
        fn due() -> Self {
            Self {
                session: SESSION,
                call: b"a",
                state: Some(STATE),
                findings: vec![older(5)],
                wait: OPEN_MS - 1,
                subject: subject(),
                kind: MessageKind::Call,
                mode: Mode::Balanced,
            }
        }

        fn judge(&self, desk: &mut Desk) -> (Verdict, Reason, Option<Allowed>) {
            let call = Call::from(Digest::of(self.call));
            let round = self.state.map(|state| Round { call: &call, state });
            let given = input(&self.subject, &self.findings, &[]);
            let (now, mode, kind) = (T0.plus(self.wait), self.mode, self.kind);
            let decision = desk.judge(self.session, &Input { now, mode, kind, round, ..given });
            (decision.verdict, decision.reason, decision.round)
        }
    }

    /// A finding with an age.
    fn older(age: u64) -> Finding {
        at("/arguments/x", age)
    }

    fn at(pointer: &str, age: u64) -> Finding {
        let mut finding = flow("cursor/user/fs");
        finding.evidence.iter_mut().for_each(|e| (e.age_ms, e.pointer) = (Some(age), pointer.into()));
        finding
    }

    const WHOLE: &str = "/arguments";
    const ANSWER: &str = "/inputResponses/x";

    fn asked() -> Desk {
        let mut desk = Desk::new([7; 32]);
        let findings = [older(1), at(WHOLE, 1), at(ANSWER, 1)];
        let allowed = Allowed::new(&Digest::of(b"a").into(), &subject(), &findings);
        desk.expect_round(SESSION, &allowed, STATE, T0);
        desk
    }

    #[test]
    fn the_same_call_passes_once_more_and_no_other() {
        let check = |again: Again<'_>, want: Verdict, why: &str| {
            let mut desk = asked();
            let (verdict, reason, _) = again.judge(&mut desk);
            assert_eq!(verdict, want, "{why}");
            assert_eq!(reason == Reason::Round, want == Verdict::Allow && !again.findings.is_empty(), "{why}");
        };
        let due = Again::due;
        check(due(), Verdict::Allow, "it is expected");
        check(Again { findings: Vec::new(), ..due() }, Verdict::Allow, "nothing was found");
        check(Again { mode: Mode::Strict, ..due() }, Verdict::Allow, "in every mode");
        check(Again { call: b"b", ..due() }, Verdict::Ask, "other arguments");
        check(Again { state: Some("state"), ..due() }, Verdict::Ask, "another state");
        check(Again { state: Some(""), ..due() }, Verdict::Ask, "an empty state");
        check(Again { state: None, ..due() }, Verdict::Ask, "no state");
        check(Again { session: SessionId(2), ..due() }, Verdict::Ask, "another agent");
        check(Again { wait: OPEN_MS, ..due() }, Verdict::Ask, "too late");
        check(Again { subject: Subject { launch: None, ..subject() }, ..due() }, Verdict::Ask, "another program");
        check(
            Again { subject: Subject { definition: None, ..subject() }, ..due() },
            Verdict::Ask,
            "another definition",
        );
        check(Again { findings: vec![flow("cursor/user/mail")], ..due() }, Verdict::Ask, "data from elsewhere");
        check(Again { findings: vec![older(1), flow("cursor/user/mail")], ..due() }, Verdict::Ask, "more data");
        check(
            Again { findings: vec![older(1), at(ANSWER, 1)], ..due() },
            Verdict::Ask,
            "an answer, like one before it",
        );
        check(Again { findings: vec![at(WHOLE, 1)], ..due() }, Verdict::Ask, "the call as a whole, which has grown");
        check(
            Again { findings: vec![Finding { evidence: Vec::new(), ..older(1) }], ..due() },
            Verdict::Ask,
            "no place",
        );
        let graver = Finding { severity: Severity::Critical, ..older(1) };
        check(Again { findings: vec![graver], ..due() }, Verdict::Ask, "a graver finding");
    }

    #[test]
    fn a_new_tool_that_was_allowed_is_not_asked_about_again() {
        let (subject, call) = (subject(), Call::from(Digest::of(b"a")));
        for (state, want) in [(STATE, Verdict::Allow), ("other", Verdict::Ask)] {
            let round = Some(Round { call: &call, state });
            let given = Input { mode: Mode::Strict, new_tool: true, now: T0, round, ..input(&subject, &[], &[]) };
            assert_eq!(asked().judge(SESSION, &given).verdict, want);
        }
    }

    #[test]
    fn what_stands_against_a_call_stands_against_its_next_round() {
        let (subject, call, findings) = (subject(), Call::from(Digest::of(b"a")), [older(2)]);
        let given = input(&subject, &findings, &[]);
        let given = Input { now: T0, round: Some(Round { call: &call, state: STATE }), ..given };
        assert_eq!(asked().judge(SESSION, &Input { quarantined: true, ..given }).verdict, Verdict::Block);
        let blocks = crate::fixtures::rule(
            1,
            firedoor_model::question::Choice::Block,
            firedoor_model::rule::Origin::User,
            firedoor_model::rule::Match::default(),
        );
        assert_eq!(asked().judge(SESSION, &Input { rules: &[blocks], ..given }).verdict, Verdict::Block);
        let other = Input { kind: MessageKind::Other, ..given };
        assert_eq!(asked().judge(SESSION, &other).verdict, Verdict::Ask, "what comes back");
    }

    #[test]
    fn each_round_is_good_once_and_all_of_them_for_ten_minutes() {
        let mut desk = asked();
        let other = Again { findings: vec![flow("cursor/user/mail")], ..Again::due() };
        assert_eq!(other.judge(&mut desk).0, Verdict::Ask);
        assert_eq!(Again::due().judge(&mut desk).0, Verdict::Ask, "it was used");

        let mut desk = asked();
        for wait in [0, 1000, OPEN_MS - 1] {
            let again = Again { wait, ..Again::due() };
            let (verdict, _, allowed) = again.judge(&mut desk);
            assert_eq!(verdict, Verdict::Allow);
            assert_eq!(again.judge(&mut desk).0, Verdict::Ask, "it was used");
            desk.expect_round(SESSION, &allowed.unwrap(), STATE, T0.plus(wait));
        }
        assert_eq!(Again { wait: OPEN_MS, ..Again::due() }.judge(&mut desk).0, Verdict::Ask, "too late");
    }

    #[test]
    fn rounds_are_bounded_and_end_with_the_session() {
        let mut desk = asked();
        let allowed = Allowed::new(&Digest::of(b"b").into(), &subject(), &[]);
        for n in 0..MAX_ROUNDS {
            desk.expect_round(SESSION, &allowed, &n.to_string(), T0);
        }
        assert_eq!(desk.rules_of(SESSION).rounds.0.len(), MAX_ROUNDS);
        assert_eq!(Again::due().judge(&mut desk).0, Verdict::Ask, "the oldest is forgotten first");
        desk.tick(T0.plus(OPEN_MS));
        assert!(desk.rules_of(SESSION).rounds.0.is_empty());

        let mut desk = asked();
        desk.session_ended(SESSION);
        assert_eq!(Again::due().judge(&mut desk).0, Verdict::Ask);
    }
}
