//! What weakens protection and waits for the word of whoever sits at the desktop.
//!
//! An injected agent may find a way to a process that is not its own. What it cannot do is press a button on the screen.

use std::collections::BTreeMap;

use firedoor_ipc::{command::Confirmation, process::Process};
use tokio::sync::oneshot;

/// Most commands that wait at once: more than this no person has typed.
const MOST: usize = 8;

/// The desktop that confirms, if there is one, and what waits for it.
#[derive(Default)]
pub struct Confirmations {
    /// With the number of its place: one that connects anew is there twice for a moment.
    desktop: Option<(Process, u64)>,
    /// The last one that left its place.
    left: Option<Process>,
    open: BTreeMap<u64, Open>,
}

struct Open {
    shown: Confirmation,
    say: oneshot::Sender<bool>,
}

/// Why something cannot wait for a confirmation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unasked {
    /// The desktop has gone since.
    #[error("the desktop app that was to confirm it has gone")]
    Gone,
    /// Too much waits.
    #[error("{MOST} commands wait to be confirmed on the desktop already")]
    Full,
}

impl Confirmations {
    /// The desktop that confirms.
    pub fn desktop(&self) -> Option<Process> {
        self.desktop.map(|(process, _)| process)
    }

    /// The desktop that confirmed last, where none does now.
    pub fn left(&self) -> Option<Process> {
        self.left.filter(|_| self.desktop.is_none())
    }

    /// A desktop has come. The first one stays it: whoever comes later, to confirm its own commands perhaps, gets no place.
    /// `place` is a new number.
    pub fn attend(&mut self, desktop: Process, place: u64) -> Option<u64> {
        if self.desktop.is_some_and(|(there, _)| there != desktop) {
            return None;
        }
        self.desktop = Some((desktop, place));
        Some(place)
    }

    /// The desktop has left its place. Whoever waits hears that nobody confirms any more.
    pub fn leave(&mut self, place: u64) {
        if let Some((process, its)) = self.desktop
            && its == place
        {
            self.desktop = None;
            self.left = Some(process);
            self.open.clear();
        }
    }

    /// Begins to wait. The word comes through what is returned; it closes when the desktop goes.
    pub fn ask(&mut self, shown: Confirmation) -> Result<oneshot::Receiver<bool>, Unasked> {
        if self.desktop.is_none() {
            return Err(Unasked::Gone);
        }
        if self.open.len() >= MOST {
            return Err(Unasked::Full);
        }
        let (say, hear) = oneshot::channel();
        self.open.insert(shown.id, Open { shown, say });
        Ok(hear)
    }

    /// The word about one of them. `false` when it does not wait, or the word is not the desktop's.
    pub fn say(&mut self, by: Process, id: u64, allow: bool) -> bool {
        if self.desktop() != Some(by) {
            return false;
        }
        // Whoever asked may have given up at this very moment.
        self.open.remove(&id).is_some_and(|open| open.say.send(allow).is_ok())
    }

    /// It does not wait any more.
    pub fn withdraw(&mut self, id: u64) {
        self.open.remove(&id);
    }

    /// What waits, the oldest first.
    pub fn all(&self) -> Vec<Confirmation> {
        self.open.values().map(|open| open.shown.clone()).collect()
    }
}

#[cfg(test)]
mod tests {
    use firedoor_model::Millis;

    use super::*;

    fn shown(id: u64) -> Confirmation {
        Confirmation {
            id,
            action: "switching to mode watch".into(),
            command: "firedoor mode watch".into(),
            asked_by: Vec::new(),
            asked: Millis(0),
            until: Millis(60_000),
        }
    }

    #[test]
    fn only_the_first_desktop_confirms_and_each_thing_once() {
        let (desktop, other) = (Process { pid: 1, start: 1 }, Process { pid: 2, start: 2 });
        let mut waiting = Confirmations::default();
        assert_eq!(waiting.ask(shown(1)).unwrap_err(), Unasked::Gone);
        assert_eq!((waiting.attend(desktop, 1), waiting.attend(other, 2)), (Some(1), None));
        let (mut first, mut second) = (waiting.ask(shown(1)).unwrap(), waiting.ask(shown(2)).unwrap());
        assert_eq!(waiting.all().iter().map(|c| c.id).collect::<Vec<_>>(), [1, 2]);
        assert!(!waiting.say(other, 1, true) && first.try_recv().is_err());
        assert!(waiting.say(desktop, 1, true) && !waiting.say(desktop, 1, true));
        assert_eq!(first.try_recv(), Ok(true));
        waiting.withdraw(2);
        assert!(!waiting.say(desktop, 2, true) && second.try_recv().is_err());
    }

    #[test]
    fn a_desktop_that_goes_confirms_nothing_and_leaves_room_for_another() {
        let (desktop, other) = (Process { pid: 1, start: 1 }, Process { pid: 2, start: 2 });
        let mut waiting = Confirmations::default();
        waiting.attend(desktop, 1);
        let mut hear = waiting.ask(shown(1)).unwrap();
        // It connects anew, and the old connection ends after that.
        assert_eq!(waiting.attend(desktop, 2), Some(2));
        waiting.leave(1);
        assert!(waiting.desktop() == Some(desktop) && hear.try_recv() == Err(oneshot::error::TryRecvError::Empty));
        waiting.leave(2);
        assert_eq!(hear.try_recv(), Err(oneshot::error::TryRecvError::Closed));
        assert_eq!(waiting.left(), Some(desktop));
        assert!(waiting.attend(other, 3).is_some() && waiting.all().is_empty() && waiting.left().is_none());
    }

    #[test]
    fn what_waits_is_bounded() {
        let mut waiting = Confirmations::default();
        waiting.attend(Process { pid: 1, start: 1 }, 1);
        let _held: Vec<_> = (0..MOST as u64).map(|id| waiting.ask(shown(id)).unwrap()).collect();
        assert_eq!(waiting.ask(shown(99)).unwrap_err(), Unasked::Full);
    }
}
