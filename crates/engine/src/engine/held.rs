//! What waits for an answer, and what becomes of it.

use std::rc::Rc;

use firedoor_model::{audit::What, question::Ref};
use firedoor_policy::{Event as DeskEvent, HeldId, Refusal, refusal};

use super::{Engine, now};
use crate::session::{connections::HeldConnection, held::HeldLine};

/// What waits for an answer.
pub enum Held {
    /// A line with a call.
    Line(Rc<HeldLine>),
    /// Connections of a server.
    Connection(Rc<HeldConnection>),
}

impl Engine {
    /// A number for something that is held.
    pub fn next_held(&self) -> HeldId {
        HeldId(self.next_id())
    }

    /// The client gave a held line up, or has gone.
    pub fn withdraw(&self, held: &HeldLine) {
        held.withdraw();
        let ids = held.ids.borrow().clone();
        let events: Vec<_> = ids.iter().filter_map(|(id, _)| self.desk.borrow_mut().cancel(*id, now())).collect();
        self.settled(held);
        self.act(events);
    }

    /// Forgets a line that is no longer held.
    pub fn settled(&self, held: &HeldLine) {
        if !held.settled.get() {
            return;
        }
        for (id, _) in held.ids.borrow().iter() {
            self.held.borrow_mut().remove(id);
            let event = self.desk.borrow_mut().cancel(*id, now());
            self.act(event.into_iter().collect());
        }
        if let Some(session) = held.session.upgrade() {
            session.forget_settled();
        }
    }

    /// Lets what is held go on. `lasting`: what a server connects to later as well.
    pub fn allow_held(&self, ids: &[HeldId], lasting: bool) {
        for id in ids {
            let held = self.held.borrow_mut().remove(id);
            match held {
                Some(Held::Line(held)) => {
                    held.allow();
                    self.settled(&held);
                }
                Some(Held::Connection(held)) => held.rule(true, lasting),
                None => {}
            }
        }
    }

    /// Refuses what is held.
    pub fn refuse_held(&self, ids: &[HeldId], kind: &Refusal, reference: &Ref) {
        for id in ids {
            let held = self.held.borrow_mut().remove(id);
            match held {
                Some(Held::Line(held)) => {
                    let request = held.ids.borrow().iter().find(|(h, _)| h == id).map(|(_, r)| r.clone());
                    held.refuse(request.as_deref().unwrap_or_default(), &refusal(kind, reference));
                    self.settled(&held);
                }
                // A person's refusal holds; that nobody answered does not.
                Some(Held::Connection(held)) => held.rule(false, *kind == Refusal::User),
                None => {}
            }
        }
    }

    /// A connection no longer waits.
    pub fn forget_connection(&self, id: HeldId) {
        self.held.borrow_mut().remove(&id);
        let event = self.desk.borrow_mut().cancel(id, now());
        self.act(event.into_iter().collect());
    }

    /// Does what follows from the desk's events.
    pub(super) fn act(&self, events: Vec<DeskEvent>) {
        if !events.is_empty() {
            self.changed();
        }
        for event in events {
            match event {
                DeskEvent::HoldExpired { reference, held } => {
                    self.refuse_held(&held, &Refusal::Awaiting, &reference);
                    self.recorder.record(self.event(What::Unanswered { reference }));
                }
                DeskEvent::Expired { reference, held } => {
                    self.refuse_held(&held, &Refusal::Awaiting, &reference);
                    self.recorder.record(self.event(What::Expired { reference }));
                }
                DeskEvent::Withdrawn { reference } => {
                    self.recorder.record(self.event(What::Withdrawn { reference }));
                }
                // It shows in the question.
                DeskEvent::LetGo { .. } => {}
                // It shows in the status, in the refusals and in the log.
                DeskEvent::Quieted { .. } => {}
            }
        }
    }
}
