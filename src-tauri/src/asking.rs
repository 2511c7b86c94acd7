//! Which question is on screen, and which answer counts. Pure: time comes in.
//!
//! Calls that ask the same (server, tool, findings and where their data came from) are one question on screen when they go to
//! one known address, or are the same call. Where it is not known where they go, each is a question of its own.

use std::{
    collections::BTreeSet,
    time::{Duration, Instant},
};

use firedoor_model::{
    Digest, EntryId, Finding, Millis,
    finding::Role,
    question::{Question, Ref},
};

use crate::ticket::Nonce;

/// An answer sooner than this after the question came up, or after its window got the focus, was meant for something
/// else. The window waits 800 ms (design/tokens.css, `--arm`) and hears of the focus a little later than we do.
const ARM: Duration = Duration::from_millis(700);

/// Which question is shown, which were put off, which were announced.
#[derive(Debug, Default)]
pub struct Asking {
    ticket: Option<Ticket>,
    later: BTreeSet<Ref>,
    announced: BTreeSet<Ref>,
}

/// What an answer must match.
#[derive(Clone, Debug)]
struct Ticket {
    nonce: Nonce,
    /// Not empty.
    ids: Vec<Ref>,
    content: Digest,
    since: Instant,
}

/// Why an answer does not count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Stale {
    /// Not the number that was given out with the question on screen.
    #[error("this answer does not belong to the question on screen: look at it again")]
    Unknown,
    /// The question is gone or is another one by now.
    #[error("the question changed or was settled meanwhile: look at it again")]
    Changed,
    /// Too quick.
    #[error("this came too soon after the question: look at it and answer again")]
    Early,
}

/// The place of the shown question among those that wait.
#[derive(Clone, Debug)]
pub struct Shown<'a> {
    /// The calls that it is about, oldest first; not empty.
    pub calls: Vec<&'a Question>,
    /// Counted from 1.
    pub place: usize,
    /// How many wait, put off ones left out.
    pub of: usize,
    /// The number that an answer must bring.
    pub nonce: Nonce,
    /// Whether it was not on screen before.
    pub fresh: bool,
}

impl Asking {
    /// Takes note of the open questions. Returns whether there is one that was never announced.
    pub fn update(&mut self, questions: &[Question]) -> bool {
        let open: BTreeSet<&Ref> = questions.iter().map(|q| &q.id).collect();
        self.later.retain(|id| open.contains(id));
        self.announced.retain(|id| open.contains(id));
        let before = self.announced.len();
        self.announced.extend(questions.iter().map(|q| q.id.clone()));
        self.announced.len() > before
    }

    /// Whether a question waits that was not put off.
    pub fn waits(&self, questions: &[Question]) -> bool {
        questions.iter().any(|q| !self.later.contains(&q.id))
    }

    /// The question to show. The one on screen stays there while it is open and the same. One more call for it makes it
    /// another one: nobody has seen that call yet.
    pub fn show<'a>(&mut self, questions: &'a [Question], now: Instant) -> Result<Option<Shown<'a>>, getrandom::Error> {
        let mut waiting = self.waiting(questions);
        let of = waiting.len();
        let here = self
            .ticket
            .as_ref()
            .and_then(|ticket| waiting.iter().position(|calls| calls.iter().any(|call| ticket.ids.contains(&call.id))));
        let at = here.unwrap_or_default();
        if at >= of {
            self.ticket = None;
            return Ok(None);
        }
        let calls = waiting.swap_remove(at);
        let now_shown = content(&calls);
        let same = self.ticket.as_ref().filter(|ticket| ticket.content == now_shown).map(|ticket| ticket.nonce.clone());
        let (nonce, fresh) = match same {
            Some(nonce) => (nonce, false),
            None => {
                let nonce = Nonce::mint()?;
                let ids = calls.iter().map(|call| call.id.clone()).collect();
                self.ticket = Some(Ticket { nonce: nonce.clone(), ids, content: now_shown, since: now });
                (nonce, true)
            }
        };
        Ok(Some(Shown { calls, place: at + 1, of, nonce, fresh }))
    }

    /// What waits and was not put off, put together, oldest first.
    fn waiting<'a>(&self, questions: &'a [Question]) -> Vec<Vec<&'a Question>> {
        let mut groups: Vec<Vec<&Question>> = Vec::new();
        for question in questions.iter().filter(|q| !self.later.contains(&q.id)) {
            match groups.iter_mut().find(|group| group.first().is_some_and(|first| alike(first, question))) {
                Some(group) => group.push(question),
                None => groups.push(vec![question]),
            }
        }
        groups
    }

    /// The window got the focus: what is pressed right now may have been meant for another one.
    pub fn rearm(&mut self, now: Instant) {
        if let Some(ticket) = &mut self.ticket {
            ticket.since = now;
        }
    }

    /// The calls that the number stands for, if they are still what was shown. For looking, at any time.
    pub fn calls<'a>(&self, nonce: &str, questions: &'a [Question]) -> Result<Vec<&'a Question>, Stale> {
        let ticket = self.ticket.as_ref().filter(|t| t.nonce.is(nonce)).ok_or(Stale::Unknown)?;
        let calls: Vec<_> = questions.iter().filter(|q| ticket.ids.contains(&q.id)).collect();
        if content(&calls) == ticket.content { Ok(calls) } else { Err(Stale::Changed) }
    }

    /// The same for an answer: not before the question was on screen for a moment.
    pub fn redeem<'a>(&self, nonce: &str, questions: &'a [Question], now: Instant) -> Result<Vec<&'a Question>, Stale> {
        let calls = self.calls(nonce, questions)?;
        let since = self.ticket.as_ref().map_or(now, |t| t.since);
        if now.saturating_duration_since(since) < ARM {
            return Err(Stale::Early);
        }
        Ok(calls)
    }

    /// Puts the question on screen off, and says which ones these are. They stay open; the tray and the main window still
    /// show them.
    pub fn put_off(&mut self, nonce: &str) -> Result<Vec<Ref>, Stale> {
        let ticket = self.ticket.take_if(|t| t.nonce.is(nonce)).ok_or(Stale::Unknown)?;
        self.later.extend(ticket.ids.iter().cloned());
        Ok(ticket.ids)
    }

    /// The user closed the window: everything is put off, and no number counts any more. Says which ones were on screen.
    pub fn close(&mut self, questions: &[Question]) -> Vec<Ref> {
        self.later.extend(questions.iter().map(|q| q.id.clone()));
        self.ticket.take().map(|ticket| ticket.ids).unwrap_or_default()
    }

    /// The user wants to see what was put off.
    pub fn recall(&mut self) {
        self.later.clear();
    }
}

/// Whether one answer is for both: the same agent, server, tool and address, for the same reasons. Without an address only the
/// arguments say where a call goes (`channel`, `to`), so they must be equal.
fn alike(a: &Question, b: &Question) -> bool {
    let reasons = |q: &Question| -> BTreeSet<(String, Option<EntryId>)> {
        let of = |f: &Finding| {
            let sources: Vec<_> =
                f.evidence.iter().filter(|e| e.role == Role::Source).map(|e| e.entry.clone()).collect();
            let sources = if sources.is_empty() { vec![None] } else { sources };
            sources.into_iter().map(|source| (f.detector.to_string(), source)).collect::<Vec<_>>()
        };
        q.findings.iter().flat_map(of).collect()
    };
    a.connection.is_none()
        && b.connection.is_none()
        && (&a.entry, &a.client, &a.tool, &a.address, a.exact) == (&b.entry, &b.client, &b.tool, &b.address, b.exact)
        && (a.address.is_some() || a.call == b.call)
        && reasons(a) == reasons(b)
}

/// Everything about a question that is shown, but for how long it is held: an agent that repeats a call holds it for longer,
/// and must not be able to keep the buttons from being pressed. JSON of our own types always encodes; if it did not, no answer
/// would match, which is the safe side.
fn content(calls: &[&Question]) -> Digest {
    let lasting: Vec<_> = calls.iter().map(|call| Question { held_until: Millis(0), ..(*call).clone() }).collect();
    Digest::of(&serde_json::to_vec(&lasting).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use firedoor_model::Untrusted;

    use super::*;

    fn question(id: &str, arguments: &str) -> Question {
        Question {
            id: Ref(id.into()),
            entry: "cursor/user/fs".parse().unwrap(),
            client: "node (7)".into(),
            tool: "post".into(),
            connection: None,
            address: None,
            exact: false,
            findings: vec![Finding {
                // Each alone, unless a test says otherwise.
                detector: format!("call/{id}").into(),
                severity: firedoor_model::Severity::Medium,
                confidence: firedoor_model::Confidence::Likely,
                summary: String::new(),
                evidence: Vec::new(),
            }],
            arguments: Untrusted::new(arguments),
            call: Digest::of(arguments.as_bytes()),
            asked: Millis(1),
            held_until: Millis(2),
            open_until: Millis(3),
        }
    }

    fn nonce(asking: &mut Asking, questions: &[Question], now: Instant) -> String {
        asking.show(questions, now).unwrap().unwrap().nonce.to_text()
    }

    fn ids(calls: &[&Question]) -> Vec<String> {
        calls.iter().map(|call| call.id.0.clone()).collect()
    }

    #[test]
    fn an_answer_counts_for_exactly_what_was_shown() {
        let start = Instant::now();
        let late = start + ARM;
        let mut asking = Asking::default();
        let both = [question("A", "1"), question("B", "2")];
        let number = nonce(&mut asking, &both, start);
        let redeem = |asking: &Asking, number: &str, questions: &[Question], at| {
            asking.redeem(number, questions, at).map(|calls| ids(&calls))
        };
        assert_eq!(redeem(&asking, &number, &both, start), Err(Stale::Early));
        assert_eq!(redeem(&asking, &number, &both, late), Ok(vec!["A".into()]));
        assert_eq!(redeem(&asking, "", &both, late), Err(Stale::Unknown));
        assert_eq!(redeem(&asking, &number, &both[1..], late), Err(Stale::Changed));
        // The same reference with other arguments is another question, with another number.
        let other = [question("A", "3")];
        assert_eq!(redeem(&asking, &number, &other, late), Err(Stale::Changed));
        let next = nonce(&mut asking, &other, late);
        assert_ne!(next, number);
        assert_eq!(redeem(&asking, &number, &both, late + ARM), Err(Stale::Unknown));
    }

    #[test]
    fn focus_arms_again() {
        let start = Instant::now();
        let mut asking = Asking::default();
        let all = [question("A", "1")];
        let number = nonce(&mut asking, &all, start);
        asking.rearm(start + ARM);
        assert_eq!(asking.redeem(&number, &all, start + ARM).err(), Some(Stale::Early));
        assert!(asking.redeem(&number, &all, start + ARM + ARM).is_ok());
    }

    #[test]
    fn what_is_on_screen_stays_there() {
        let start = Instant::now();
        let mut asking = Asking::default();
        let b = [question("B", "2")];
        let number = nonce(&mut asking, &b, start);
        let both = [question("A", "1"), question("B", "2")];
        let shown = asking.show(&both, start).unwrap().unwrap();
        assert_eq!((shown.place, shown.of, ids(&shown.calls)), (2, 2, vec!["B".to_owned()]));
        assert!(shown.nonce.is(&number) && !shown.fresh);
    }

    #[test]
    fn calls_that_ask_the_same_are_one_question_and_another_call_makes_it_anew() {
        let start = Instant::now();
        let mut asking = Asking::default();
        let of = |id: &str| Question { id: Ref(id.into()), address: Some("a.example".into()), ..question("A", id) };
        let elsewhere = Question { address: Some("b.example".into()), ..of("C") };
        let all = [of("A"), of("B"), elsewhere, question("D", "4")];
        let number = nonce(&mut asking, &all, start);
        let shown = asking.show(&all, start).unwrap().unwrap();
        assert_eq!((ids(&shown.calls), shown.place, shown.of), (vec!["A".to_owned(), "B".to_owned()], 1, 3));
        let late = start + ARM;
        assert_eq!(asking.redeem(&number, &all, late).map(|calls| ids(&calls)), Ok(vec!["A".into(), "B".into()]));
        // One less: look again. One more: an answer that comes before it is shown is not for it.
        assert_eq!(asking.redeem(&number, &[of("B")], late).err(), Some(Stale::Changed));
        let joined = [of("A"), of("B"), of("E")];
        assert_eq!(asking.redeem(&number, &joined, late).map(|calls| ids(&calls)), Ok(vec!["A".into(), "B".into()]));
        let more = [of("A"), of("B"), of("E")];
        let shown = asking.show(&more, late).unwrap().unwrap();
        assert!(shown.fresh && shown.calls.len() == 3);
        let again = shown.nonce.to_text();
        assert_eq!(asking.redeem(&again, &more, late).err(), Some(Stale::Early));
    }

    #[test]
    fn calls_that_go_who_knows_where_are_answered_one_by_one() {
        let mut asking = Asking::default();
        let of = |id: &str, arguments| Question { id: Ref(id.into()), ..question("A", arguments) };
        let all = [of("A", "#mine"), of("B", "#attacker"), of("C", "#mine")];
        let shown = asking.show(&all, Instant::now()).unwrap().unwrap();
        assert_eq!((ids(&shown.calls), shown.of), (vec!["A".to_owned(), "C".to_owned()], 2));
    }

    #[test]
    fn repeating_a_call_keeps_no_button_from_being_pressed() {
        let start = Instant::now();
        let mut asking = Asking::default();
        let number = nonce(&mut asking, &[question("A", "1")], start);
        let longer = [Question { held_until: Millis(9), ..question("A", "1") }];
        assert!(!asking.show(&longer, start + ARM).unwrap().unwrap().fresh);
        assert!(asking.redeem(&number, &longer, start + ARM).is_ok());
    }

    #[test]
    fn later_is_later() {
        let start = Instant::now();
        let mut asking = Asking::default();
        let both = [question("A", "1"), question("B", "2")];
        assert!(asking.update(&both));
        assert!(!asking.update(&both));
        let number = nonce(&mut asking, &both, start);
        assert_eq!(asking.put_off(&number), Ok(vec![Ref("A".into())]));
        assert_eq!(asking.put_off(&number), Err(Stale::Unknown));
        assert_eq!(ids(&asking.show(&both, start).unwrap().unwrap().calls), ["B"]);
        asking.close(&both);
        assert!(!asking.waits(&both));
        assert!(asking.show(&both, start).unwrap().is_none());
        // A third one is news, and the only one to be shown.
        let three = [question("A", "1"), question("B", "2"), question("C", "3")];
        assert!(asking.update(&three));
        assert_eq!(ids(&asking.show(&three, start).unwrap().unwrap().calls), ["C"]);
        asking.recall();
        assert!(asking.waits(&both));
        // What is over is forgotten.
        assert!(!asking.update(&[]));
        assert!(asking.update(&both));
    }
}
