//! Requests of the client on their way.

use std::{
    cell::RefCell,
    collections::{HashMap, HashSet},
    rc::Rc,
};

use tokio::sync::Notify;

/// Most requests at once. What comes on top is refused.
const MAX: usize = 4096;

/// What a message of the client asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `initialize`: opens a session (revisions up to 2025-11-25).
    Initialize,
    /// Any other request of those revisions.
    Legacy,
    /// A request of revision 2026-07-28 or later, which stands for itself.
    Modern,
    /// `subscriptions/listen`: stays open until somebody closes it.
    Subscription,
}

/// The requests of one message; more than one only in a batch.
pub struct Flight {
    /// What is asked for.
    pub kind: Kind,
    /// The method, of a single request.
    pub method: String,
    /// Raw ids of what is not answered.
    open: RefCell<Vec<String>>,
    /// Raw ids of those that the client does not wait for any more.
    given_up: RefCell<HashSet<String>>,
    /// Closes the connection.
    pub closed: Notify,
}

impl Flight {
    /// Whether everything is answered.
    pub fn is_answered(&self) -> bool {
        self.open.borrow().is_empty()
    }

    /// Whether the client does not wait for anything any more.
    pub fn is_given_up(&self) -> bool {
        let given_up = self.given_up.borrow();
        self.open.borrow().iter().all(|id| given_up.contains(id))
    }

    /// One of the ids that wait.
    pub fn any(&self) -> Option<String> {
        self.open.borrow().first().cloned()
    }

    /// The only id that waits.
    pub fn single(&self) -> Option<String> {
        match self.open.borrow().as_slice() {
            [id] => Some(id.clone()),
            _ => None,
        }
    }
}

/// What a cancellation meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cancelled {
    /// A request whose connection is closed for it, which is how its server learns of it.
    Closed,
    /// A request whose server is told with a message, or none that is known.
    Told,
}

/// All of them, by raw id.
#[derive(Default)]
pub struct Flights {
    by_id: RefCell<HashMap<String, Rc<Flight>>>,
    changed: Notify,
}

impl Flights {
    /// Adds the requests of one message; `None` when there are too many.
    pub fn add(&self, ids: Vec<String>, kind: Kind, method: &str) -> Option<Rc<Flight>> {
        let mut by_id = self.by_id.borrow_mut();
        if by_id.len() + ids.len() > MAX {
            return None;
        }
        let flight = Rc::new(Flight {
            kind,
            method: method.to_owned(),
            open: RefCell::new(ids.clone()),
            given_up: RefCell::default(),
            closed: Notify::new(),
        });
        by_id.extend(ids.into_iter().map(|id| (id, flight.clone())));
        Some(flight)
    }

    /// An answer has come. Gives the request that it belongs to.
    pub fn answered(&self, id: &str) -> Option<Rc<Flight>> {
        let flight = self.by_id.borrow_mut().remove(id)?;
        flight.open.borrow_mut().retain(|open| open != id);
        self.changed.notify_waiters();
        Some(flight)
    }

    /// No answer will come any more. Gives the ids of those who wait for one.
    pub fn lost(&self, flight: &Flight) -> Vec<String> {
        let mut ids = flight.open.take();
        let mut by_id = self.by_id.borrow_mut();
        for id in &ids {
            by_id.remove(id);
        }
        self.changed.notify_waiters();
        let given_up = flight.given_up.borrow();
        ids.retain(|id| !given_up.contains(id));
        ids
    }

    /// Everything that waits.
    pub fn all(&self) -> Vec<Rc<Flight>> {
        self.by_id.borrow().values().cloned().collect()
    }

    /// The client gives a request up.
    pub fn cancel(&self, id: &str) -> Cancelled {
        let Some(flight) = self.by_id.borrow().get(id).cloned() else { return Cancelled::Told };
        flight.given_up.borrow_mut().insert(id.to_owned());
        self.changed.notify_waiters();
        match flight.kind {
            Kind::Initialize | Kind::Legacy => Cancelled::Told,
            Kind::Modern | Kind::Subscription => {
                flight.closed.notify_one();
                Cancelled::Closed
            }
        }
    }

    /// Waits until the client does not wait for anything of this flight any more.
    pub async fn given_up(&self, flight: &Flight) {
        self.until(|_| flight.is_given_up()).await;
    }

    /// Waits until nothing is on its way that will be answered by itself.
    pub async fn idle(&self) {
        let waits = |f: &Rc<Flight>| f.kind != Kind::Subscription && !f.is_given_up();
        self.until(|by_id| !by_id.values().any(waits)).await;
    }

    async fn until(&self, reached: impl Fn(&HashMap<String, Rc<Flight>>) -> bool) {
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            if reached(&self.by_id.borrow()) {
                return;
            }
            changed.await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(all: &[&str]) -> Vec<String> {
        all.iter().map(|id| (*id).to_owned()).collect()
    }

    #[test]
    fn what_is_answered_given_up_or_lost() {
        let flights = Flights::default();
        let batch = flights.add(ids(&["1", "\"a\""]), Kind::Legacy, "").unwrap();
        assert!(flights.answered("1").is_some() && flights.answered("1").is_none());
        assert!(!batch.is_answered());
        assert_eq!(flights.lost(&batch), ids(&["\"a\""]));
        assert!(batch.is_answered() && flights.all().is_empty());
        let modern = flights.add(ids(&["2"]), Kind::Modern, "x").unwrap();
        assert_eq!((flights.cancel("2"), flights.cancel("3")), (Cancelled::Closed, Cancelled::Told));
        assert!(flights.lost(&modern).is_empty());
        let legacy = flights.add(ids(&["4"]), Kind::Legacy, "x").unwrap();
        assert_eq!((flights.cancel("4"), legacy.is_answered()), (Cancelled::Told, false));
        // Whoever gives up one of a batch still waits for the others.
        let batch = flights.add(ids(&["5", "6"]), Kind::Legacy, "").unwrap();
        assert_eq!((flights.cancel("5"), batch.is_given_up()), (Cancelled::Told, false));
        assert_eq!((flights.cancel("5"), flights.lost(&batch)), (Cancelled::Told, ids(&["6"])));
    }

    #[test]
    fn they_are_bounded() {
        let flights = Flights::default();
        for i in 0..MAX {
            assert!(flights.add(vec![i.to_string()], Kind::Legacy, "x").is_some());
        }
        assert!(flights.add(ids(&["x"]), Kind::Legacy, "x").is_none());
    }
}
