//! Which question is on screen, and which answer counts. Pure: time comes in.

use std::{
    collections::BTreeSet,
    time::{Duration, Instant},
};

use firedoor_model::{
    Digest,
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
    id: Ref,
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
    /// The question.
    pub question: &'a Question,
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

    /// The question to show. The one on screen stays there while it is open and the same.
    pub fn show<'a>(&mut self, questions: &'a [Question], now: Instant) -> Result<Option<Shown<'a>>, getrandom::Error> {
        let waiting: Vec<&Question> = questions.iter().filter(|q| !self.later.contains(&q.id)).collect();
        let same = self.ticket.as_ref().and_then(|ticket| {
            waiting
                .iter()
                .position(|q| q.id == ticket.id && content(q) == ticket.content)
                .map(|at| (at, ticket.clone()))
        });
        let (at, nonce, fresh) = match (same, waiting.first()) {
            (Some((at, ticket)), _) => (at, ticket.nonce, false),
            (None, Some(first)) => {
                let nonce = Nonce::mint()?;
                let ticket = Ticket { nonce: nonce.clone(), id: first.id.clone(), content: content(first), since: now };
                self.ticket = Some(ticket);
                (0, nonce, true)
            }
            (None, None) => {
                self.ticket = None;
                return Ok(None);
            }
        };
        let of = waiting.len();
        Ok(waiting.get(at).map(|question| Shown { question, place: at + 1, of, nonce, fresh }))
    }

    /// The window got the focus: what is pressed right now may have been meant for another one.
    pub fn rearm(&mut self, now: Instant) {
        if let Some(ticket) = &mut self.ticket {
            ticket.since = now;
        }
    }

    /// The question that the number stands for, if it is still what was shown. For looking, at any time.
    pub fn question<'a>(&self, nonce: &str, questions: &'a [Question]) -> Result<&'a Question, Stale> {
        let ticket = self.ticket.as_ref().filter(|t| t.nonce.is(nonce)).ok_or(Stale::Unknown)?;
        let question = questions.iter().find(|q| q.id == ticket.id).ok_or(Stale::Changed)?;
        if content(question) == ticket.content { Ok(question) } else { Err(Stale::Changed) }
    }

    /// The same for an answer: not before the question was on screen for a moment.
    pub fn redeem(&self, nonce: &str, questions: &[Question], now: Instant) -> Result<Ref, Stale> {
        let question = self.question(nonce, questions)?;
        let since = self.ticket.as_ref().map_or(now, |t| t.since);
        if now.saturating_duration_since(since) < ARM {
            return Err(Stale::Early);
        }
        Ok(question.id.clone())
    }

    /// Puts the question on screen off. It stays open; the tray and the main window still show it.
    pub fn put_off(&mut self, nonce: &str) -> Result<(), Stale> {
        let ticket = self.ticket.take_if(|t| t.nonce.is(nonce)).ok_or(Stale::Unknown)?;
        self.later.insert(ticket.id);
        Ok(())
    }

    /// The user closed the window: everything is put off, and no number counts any more.
    pub fn close(&mut self, questions: &[Question]) {
        self.ticket = None;
        self.later.extend(questions.iter().map(|q| q.id.clone()));
    }

    /// The user wants to see what was put off.
    pub fn recall(&mut self) {
        self.later.clear();
    }
}

/// Everything about a question that is shown. JSON of our own types always encodes; if it did not, no answer would
/// match, which is the safe side.
fn content(question: &Question) -> Digest {
    Digest::of(&serde_json::to_vec(question).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use firedoor_model::{Millis, Untrusted};

    use super::*;

    fn question(id: &str, arguments: &str) -> Question {
        Question {
            id: Ref(id.into()),
            entry: "cursor/user/fs".parse().unwrap(),
            client: "node (7)".into(),
            tool: "post".into(),
            connection: None,
            findings: Vec::new(),
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

    #[test]
    fn an_answer_counts_for_exactly_what_was_shown() {
        let start = Instant::now();
        let late = start + ARM;
        let mut asking = Asking::default();
        let both = [question("A", "1"), question("B", "2")];
        let number = nonce(&mut asking, &both, start);
        assert_eq!(asking.redeem(&number, &both, start), Err(Stale::Early));
        assert_eq!(asking.redeem(&number, &both, late), Ok(Ref("A".into())));
        assert_eq!(asking.redeem("", &both, late), Err(Stale::Unknown));
        assert_eq!(asking.redeem(&number, &both[1..], late), Err(Stale::Changed));
        // The same reference with other arguments is another question, with another number.
        let other = [question("A", "3")];
        assert_eq!(asking.redeem(&number, &other, late), Err(Stale::Changed));
        let next = nonce(&mut asking, &other, late);
        assert_ne!(next, number);
        assert_eq!(asking.redeem(&number, &both, late + ARM), Err(Stale::Unknown));
    }

    #[test]
    fn focus_arms_again() {
        let start = Instant::now();
        let mut asking = Asking::default();
        let all = [question("A", "1")];
        let number = nonce(&mut asking, &all, start);
        asking.rearm(start + ARM);
        assert_eq!(asking.redeem(&number, &all, start + ARM), Err(Stale::Early));
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
        assert_eq!((shown.place, shown.of, shown.question.id.0.as_str()), (2, 2, "B"));
        assert!(shown.nonce.is(&number) && !shown.fresh);
    }

    #[test]
    fn later_is_later() {
        let start = Instant::now();
        let mut asking = Asking::default();
        let both = [question("A", "1"), question("B", "2")];
        assert!(asking.update(&both));
        assert!(!asking.update(&both));
        let number = nonce(&mut asking, &both, start);
        asking.put_off(&number).unwrap();
        assert_eq!(asking.put_off(&number), Err(Stale::Unknown));
        assert_eq!(asking.show(&both, start).unwrap().unwrap().question.id.0, "B");
        asking.close(&both);
        assert!(!asking.waits(&both));
        assert!(asking.show(&both, start).unwrap().is_none());
        // A third one is news, and the only one to be shown.
        let three = [question("A", "1"), question("B", "2"), question("C", "3")];
        assert!(asking.update(&three));
        assert_eq!(asking.show(&three, start).unwrap().unwrap().question.id.0, "C");
        asking.recall();
        assert!(asking.waits(&both));
        // What is over is forgotten.
        assert!(!asking.update(&[]));
        assert!(asking.update(&both));
    }
}
