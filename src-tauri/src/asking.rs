//! Which question is on screen, and which answer counts. Pure: time comes in.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::{Duration, Instant},
};

use firedoor_model::Digest;

use crate::{
    ticket::Nonce,
    waiting::{Id, Matter, Waiting},
};

/// An answer sooner than this after the question came up, or after its window got the focus, was meant for something
/// else. The window waits 800 ms (design/tokens.css, `--arm`) and hears of the focus a little later than we do.
const ARM: Duration = Duration::from_millis(700);

/// Which question is shown, which were put off, which were announced.
#[derive(Debug, Default)]
pub struct Asking {
    ticket: Option<Ticket>,
    later: BTreeSet<Id>,
    announced: BTreeSet<Id>,
    /// What could not be shown, by the first of what it was about.
    given_up: BTreeMap<Id, String>,
}

/// What an answer must match.
#[derive(Clone, Debug)]
struct Ticket {
    nonce: Nonce,
    /// Not empty.
    ids: Vec<Id>,
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
    /// What it is about.
    pub matter: Matter<'a>,
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
    /// Takes note of what waits. Returns what of it was never announced.
    pub fn update(&mut self, waiting: &Waiting) -> BTreeSet<Id> {
        let open = waiting.ids();
        self.later.retain(|id| open.contains(id));
        self.announced.retain(|id| open.contains(id));
        self.given_up.retain(|id, _| open.contains(id));
        let fresh = open.difference(&self.announced).cloned().collect();
        self.announced = open;
        fresh
    }

    /// Whether something waits that was not put off.
    pub fn waits(&self, waiting: &Waiting) -> bool {
        waiting.ids().iter().any(|id| !self.later.contains(id))
    }

    /// The question to show. The one on screen stays there while it is open and the same. One more call for it makes it
    /// another one: nobody has seen that call yet.
    pub fn show<'a>(&mut self, waiting: &'a Waiting, now: Instant) -> Result<Option<Shown<'a>>, getrandom::Error> {
        let mut matters = waiting.matters(|id| !self.later.contains(id));
        let of = matters.len();
        let here = self
            .ticket
            .as_ref()
            .and_then(|ticket| matters.iter().position(|matter| matter.ids().iter().any(|id| ticket.ids.contains(id))));
        let at = here.unwrap_or_default();
        if at >= of {
            self.ticket = None;
            return Ok(None);
        }
        let matter = matters.swap_remove(at);
        let now_shown = matter.content();
        let same = self.ticket.as_ref().filter(|ticket| ticket.content == now_shown).map(|ticket| ticket.nonce.clone());
        let (nonce, fresh) = match same {
            Some(nonce) => (nonce, false),
            None => {
                let nonce = Nonce::mint()?;
                let ids = matter.ids();
                self.ticket = Some(Ticket { nonce: nonce.clone(), ids, content: now_shown, since: now });
                (nonce, true)
            }
        };
        Ok(Some(Shown { matter, place: at + 1, of, nonce, fresh }))
    }

    /// The window got the focus: what is pressed right now may have been meant for another one.
    pub fn rearm(&mut self, now: Instant) {
        if let Some(ticket) = &mut self.ticket {
            ticket.since = now;
        }
    }

    /// What the number stands for, if it is still what was shown. For looking, at any time.
    pub fn matter<'a>(&self, nonce: &str, waiting: &'a Waiting) -> Result<Matter<'a>, Stale> {
        let ticket = self.ticket.as_ref().filter(|t| t.nonce.is(nonce)).ok_or(Stale::Unknown)?;
        waiting.of(&ticket.ids).filter(|matter| matter.content() == ticket.content).ok_or(Stale::Changed)
    }

    /// The same for an answer: not before the question was on screen for a moment.
    pub fn redeem<'a>(&self, nonce: &str, waiting: &'a Waiting, now: Instant) -> Result<Matter<'a>, Stale> {
        let matter = self.matter(nonce, waiting)?;
        let since = self.ticket.as_ref().map_or(now, |t| t.since);
        if now.saturating_duration_since(since) < ARM {
            return Err(Stale::Early);
        }
        Ok(matter)
    }

    /// Puts the question on screen off, and says what it was about. It stays open; the tray and the main window still show it.
    pub fn put_off(&mut self, nonce: &str) -> Result<Vec<Id>, Stale> {
        let ticket = self.ticket.take_if(|t| t.nonce.is(nonce)).ok_or(Stale::Unknown)?;
        self.later.extend(ticket.ids.iter().cloned());
        Ok(ticket.ids)
    }

    /// Puts the question off because it cannot be shown, and keeps why for as long as it is open and not recalled.
    pub fn give_up(&mut self, nonce: &str, why: &str) -> Result<(), Stale> {
        let ids = self.put_off(nonce)?;
        self.given_up.extend(ids.into_iter().next().map(|id| (id, why.to_owned())));
        Ok(())
    }

    /// What could not be shown, and why.
    pub fn given_up(&self) -> impl Iterator<Item = &str> {
        self.given_up.values().map(String::as_str)
    }

    /// The user closed the window: everything is put off, and no number counts any more. Says what was on screen.
    pub fn close(&mut self, waiting: &Waiting) -> Vec<Id> {
        self.later.extend(waiting.ids());
        self.ticket.take().map(|ticket| ticket.ids).unwrap_or_default()
    }

    /// The user wants to see what was put off.
    pub fn recall(&mut self) {
        self.later.clear();
        self.given_up.clear();
    }
}

#[cfg(test)]
mod tests {
    use firedoor_model::{
        Millis,
        question::{Question, Ref},
    };
    use proptest::prelude::*;

    use super::*;
    use crate::waiting::samples::{appeared, call, calls, changed, command};

    fn nonce(asking: &mut Asking, waiting: &Waiting, now: Instant) -> String {
        asking.show(waiting, now).unwrap().unwrap().nonce.to_text()
    }

    fn ids(matter: &Matter<'_>) -> Vec<Id> {
        matter.ids()
    }

    fn of(names: &[&str]) -> Vec<Id> {
        names.iter().map(|name| Id::Question(Ref((*name).to_owned()))).collect()
    }

    #[test]
    fn an_answer_counts_for_exactly_what_was_shown() {
        let start = Instant::now();
        let late = start + ARM;
        let mut asking = Asking::default();
        let both = calls(&[call("A", "1"), call("B", "2")]);
        let number = nonce(&mut asking, &both, start);
        let redeem = |asking: &Asking, number: &str, waiting: &Waiting, at| {
            asking.redeem(number, waiting, at).map(|matter| ids(&matter))
        };
        assert_eq!(redeem(&asking, &number, &both, start), Err(Stale::Early));
        assert_eq!(redeem(&asking, &number, &both, late), Ok(of(&["A"])));
        assert_eq!(redeem(&asking, "", &both, late), Err(Stale::Unknown));
        assert_eq!(redeem(&asking, &number, &calls(&[call("B", "2")]), late), Err(Stale::Changed));
        // The same reference with other arguments is another question, with another number.
        let other = calls(&[call("A", "3")]);
        assert_eq!(redeem(&asking, &number, &other, late), Err(Stale::Changed));
        let next = nonce(&mut asking, &other, late);
        assert_ne!(next, number);
        assert_eq!(redeem(&asking, &number, &both, late + ARM), Err(Stale::Unknown));
    }

    #[test]
    fn the_same_holds_for_commands_definitions_and_servers() {
        let start = Instant::now();
        let (late, mut asking) = (start + ARM, Asking::default());
        let mut waiting = Waiting { confirmations: vec![command(1)], ..Waiting::default() };
        let number = nonce(&mut asking, &waiting, start);
        assert_eq!(asking.redeem(&number, &waiting, start).err(), Some(Stale::Early));
        assert_eq!(asking.redeem(&number, &waiting, late).map(|m| ids(&m)), Ok(vec![Id::Confirmation(1)]));
        waiting.confirmations = vec![command(2)];
        assert_eq!(asking.redeem(&number, &waiting, late).err(), Some(Stale::Changed));

        let mut waiting = Waiting { withheld: vec![changed("fs", "a")], ..Waiting::default() };
        let number = nonce(&mut asking, &waiting, start);
        assert!(asking.redeem(&number, &waiting, late).is_ok());
        // It has changed once more.
        waiting.withheld[0].seen = Digest::of(b"again");
        assert_eq!(asking.redeem(&number, &waiting, late).err(), Some(Stale::Changed));

        let mut waiting = Waiting { offers: vec![appeared("x", "/h/a")], ..Waiting::default() };
        let number = nonce(&mut asking, &waiting, start);
        assert!(asking.redeem(&number, &waiting, late).is_ok());
        waiting.offers[0].command = "other".into();
        assert_eq!(asking.redeem(&number, &waiting, late).err(), Some(Stale::Changed));
    }

    proptest! {
        #[test]
        fn only_the_minted_number_counts(guess in any::<String>()) {
            let all = calls(&[call("A", "{}")]);
            let mut asking = Asking::default();
            let start = Instant::now();
            let minted = nonce(&mut asking, &all, start);
            prop_assume!(guess != minted);
            prop_assert!(asking.redeem(&guess, &all, start + ARM).is_err());
        }
    }

    #[test]
    fn focus_arms_again() {
        let start = Instant::now();
        let mut asking = Asking::default();
        let all = calls(&[call("A", "1")]);
        let number = nonce(&mut asking, &all, start);
        asking.rearm(start + ARM);
        assert_eq!(asking.redeem(&number, &all, start + ARM).err(), Some(Stale::Early));
        assert!(asking.redeem(&number, &all, start + ARM + ARM).is_ok());
    }

    #[test]
    fn what_is_on_screen_stays_there() {
        let start = Instant::now();
        let mut asking = Asking::default();
        let number = nonce(&mut asking, &calls(&[call("B", "2")]), start);
        let mut both = calls(&[call("A", "1"), call("B", "2")]);
        both.confirmations.push(command(1));
        let shown = asking.show(&both, start).unwrap().unwrap();
        assert_eq!((shown.place, shown.of, ids(&shown.matter)), (3, 3, of(&["B"])));
        assert!(shown.nonce.is(&number) && !shown.fresh);
    }

    #[test]
    fn calls_that_ask_the_same_are_one_question_and_another_call_makes_it_anew() {
        let start = Instant::now();
        let mut asking = Asking::default();
        let same = |id: &str| Question { id: Ref(id.into()), address: Some("a.example".into()), ..call("A", id) };
        let elsewhere = Question { address: Some("b.example".into()), ..same("C") };
        let all = calls(&[same("A"), same("B"), elsewhere, call("D", "4")]);
        let number = nonce(&mut asking, &all, start);
        let shown = asking.show(&all, start).unwrap().unwrap();
        assert_eq!((ids(&shown.matter), shown.place, shown.of), (of(&["A", "B"]), 1, 3));
        let late = start + ARM;
        assert_eq!(asking.redeem(&number, &all, late).map(|m| ids(&m)), Ok(of(&["A", "B"])));
        // One less: look again. One more: an answer that comes before it is shown is not for it.
        assert_eq!(asking.redeem(&number, &calls(&[same("B")]), late).err(), Some(Stale::Changed));
        let more = calls(&[same("A"), same("B"), same("E")]);
        assert_eq!(asking.redeem(&number, &more, late).map(|m| ids(&m)), Ok(of(&["A", "B"])));
        let shown = asking.show(&more, late).unwrap().unwrap();
        assert!(shown.fresh && ids(&shown.matter).len() == 3);
        let again = shown.nonce.to_text();
        assert_eq!(asking.redeem(&again, &more, late).err(), Some(Stale::Early));
    }

    #[test]
    fn calls_that_go_who_knows_where_are_answered_one_by_one() {
        let mut asking = Asking::default();
        let to = |id: &str, arguments| Question { id: Ref(id.into()), ..call("A", arguments) };
        let all = calls(&[to("A", "#mine"), to("B", "#attacker"), to("C", "#mine")]);
        let shown = asking.show(&all, Instant::now()).unwrap().unwrap();
        assert_eq!((ids(&shown.matter), shown.of), (of(&["A", "C"]), 2));
    }

    #[test]
    fn repeating_a_call_keeps_no_button_from_being_pressed() {
        let start = Instant::now();
        let mut asking = Asking::default();
        let number = nonce(&mut asking, &calls(&[call("A", "1")]), start);
        let longer = calls(&[Question { held_until: Millis(9), ..call("A", "1") }]);
        assert!(!asking.show(&longer, start + ARM).unwrap().unwrap().fresh);
        assert!(asking.redeem(&number, &longer, start + ARM).is_ok());
    }

    #[test]
    fn later_is_later() {
        let start = Instant::now();
        let mut asking = Asking::default();
        let both = calls(&[call("A", "1"), call("B", "2")]);
        assert_eq!(asking.update(&both).len(), 2);
        assert!(asking.update(&both).is_empty());
        let number = nonce(&mut asking, &both, start);
        assert_eq!(asking.put_off(&number), Ok(of(&["A"])));
        assert_eq!(asking.put_off(&number), Err(Stale::Unknown));
        assert_eq!(ids(&asking.show(&both, start).unwrap().unwrap().matter), of(&["B"]));
        asking.close(&both);
        assert!(!asking.waits(&both));
        assert!(asking.show(&both, start).unwrap().is_none());
        // A third one is news, and the only one to be shown.
        let three = calls(&[call("A", "1"), call("B", "2"), call("C", "3")]);
        assert_eq!(asking.update(&three), of(&["C"]).into_iter().collect());
        assert_eq!(ids(&asking.show(&three, start).unwrap().unwrap().matter), of(&["C"]));
        asking.recall();
        assert!(asking.waits(&both));
        // What is over is forgotten.
        assert!(asking.update(&Waiting::default()).is_empty());
        assert_eq!(asking.update(&both).len(), 2);
    }
}
