//! Protecting servers that appear without a question, where the user has set that.
//!
//! Only servers of the user's own files: those of projects come with what others share, and go to others. And nothing is
//! started unconfined: whoever could write an entry would else get a program run.

use std::{collections::HashMap, rc::Rc, thread};

use firedoor_clients::{
    verify::{Apart, Outcome},
    watch::Change,
};
use firedoor_model::{
    EntryId, Millis,
    audit::{Event, What},
    notice::Noticed,
};
use tokio::sync::{mpsc, oneshot};

use crate::{
    Protect,
    engine::{Engine, now},
};

/// How often one entry is protected in [`SPAN_MS`]: a client that keeps writing the old one wins, and the log says so.
const TRIES: u32 = 3;
const SPAN_MS: u64 = 600_000;
/// Entries that are remembered. More than this in ten minutes is no person's doing.
const MOST: usize = 1000;

/// Protects one after the other.
pub struct Auto {
    wanted: mpsc::UnboundedSender<Vec<EntryId>>,
    tries: Tries,
}

impl Auto {
    /// Starts waiting for entries.
    pub fn start(engine: &Rc<Engine>, protect: Protect) -> Self {
        let (wanted, mut queue) = mpsc::unbounded_channel::<Vec<EntryId>>();
        let engine = engine.clone();
        tokio::task::spawn_local(async move {
            while let Some(entries) = queue.recv().await {
                let told = of_its_own(protect, entries.clone()).await;
                // What was not protected is a question after all. Of the rest the watcher will say that it is protected.
                let left = entries.iter().filter(|e| !done(&told, e)).cloned().collect::<Vec<_>>();
                engine.offers.borrow_mut().under_way(&left, false);
                engine.changed();
                record(&engine, &entries, told);
            }
        });
        Self { wanted, tries: Tries::default() }
    }

    /// Protects what of this can be.
    pub fn take(&mut self, engine: &Rc<Engine>, changes: &[Change]) {
        let mut entries = Vec::new();
        for id in changes.iter().filter(|c| wanted(c)).filter_map(Change::id) {
            match self.tries.more(id, now()) {
                Some(true) => entries.push(id.clone()),
                Some(false) => {}
                None => {
                    let text = format!("it lost its protection {TRIES} times in ten minutes: it is left as it is");
                    engine.recorder.record(about(engine, id, What::Failed { reason: text }));
                }
            }
        }
        if !entries.is_empty() {
            engine.offers.borrow_mut().under_way(&entries, true);
            // The task ends with the engine, and this with it.
            let _ = self.wanted.send(entries);
        }
    }
}

fn wanted(change: &Change) -> bool {
    let news = matches!(change.noticed, Noticed::Appeared | Noticed::Changed | Noticed::Dropped);
    news && change.project.is_none() && change.entry.as_ref().is_some_and(|e| e.state.can_protect())
}

/// On a thread that nobody waits for: an engine that ends does not wait for servers.
async fn of_its_own(protect: Protect, entries: Vec<EntryId>) -> Result<Apart, String> {
    let (say, hear) = oneshot::channel();
    let work = move || drop(say.send(protect(&entries)));
    thread::Builder::new().name("protecting".into()).spawn(work).map_err(|e| e.to_string())?;
    hear.await.unwrap_or_else(|_| Err("it was given up".into()))
}

fn done(told: &Result<Apart, String>, entry: &EntryId) -> bool {
    told.as_ref().is_ok_and(|apart| apart.outcomes.iter().any(|o| o.entry == *entry && !o.rolled_back()))
}

fn record(engine: &Engine, entries: &[EntryId], told: Result<Apart, String>) {
    match told {
        Ok(Apart { outcomes, failed }) => {
            for outcome in outcomes {
                engine.recorder.record(about(engine, &outcome.entry, in_words(&outcome)));
            }
            for reason in failed {
                let reason = format!("not protected without a question: {reason}");
                engine.recorder.record(engine.event(What::Failed { reason }));
            }
        }
        Err(why) => {
            for entry in entries {
                let reason = format!("it could not be protected without a question: {why}");
                engine.recorder.record(about(engine, entry, What::Failed { reason }));
            }
        }
    }
}

/// What became of an entry: whether it is protected comes first.
fn in_words(outcome: &Outcome) -> What {
    if outcome.rolled_back() {
        return What::Failed { reason: format!("not protected without a question: {outcome}") };
    }
    What::Command { text: format!("protected without a question: {outcome}") }
}

fn about(engine: &Engine, entry: &EntryId, what: What) -> Event {
    Event { entry: Some(entry.clone()), ..engine.event(what) }
}

/// How often each entry was protected lately.
#[derive(Debug, Default)]
struct Tries(HashMap<EntryId, (Millis, u32)>);

impl Tries {
    /// Whether an entry is protected once more; `None` when it is not, for the first time.
    fn more(&mut self, id: &EntryId, now: Millis) -> Option<bool> {
        self.0.retain(|_, (since, _)| now.since(*since) < SPAN_MS);
        if self.0.len() >= MOST && !self.0.contains_key(id) {
            return Some(false);
        }
        let (_, count) = self.0.entry(id.clone()).or_insert((now, 0));
        *count = count.saturating_add(1);
        match (*count).cmp(&(TRIES + 1)) {
            std::cmp::Ordering::Less => Some(true),
            std::cmp::Ordering::Equal => None,
            std::cmp::Ordering::Greater => Some(false),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_does_not_call_protected_what_is_not() {
        use firedoor_clients::verify::Verified::{Answers, RolledBack, Unverified};
        for (verified, protected) in [
            (Answers { tools: 1 }, true),
            (Unverified { reason: "it did not answer".into() }, true),
            (RolledBack { reason: "it did not answer".into() }, false),
        ] {
            let row = in_words(&Outcome { entry: "cursor/user/fs".parse().unwrap(), verified });
            assert_eq!(matches!(&row, What::Command { text } if text.starts_with("protected")), protected, "{row:?}");
            assert_eq!(matches!(&row, What::Failed { reason } if reason.starts_with("not ")), !protected, "{row:?}");
        }
    }

    #[test]
    fn a_client_that_insists_wins_for_a_while() {
        let id: EntryId = "cursor/user/fs".parse().unwrap();
        let mut tries = Tries::default();
        let mut at = |ms| tries.more(&id, Millis(ms));
        assert_eq!([at(0), at(1), at(2), at(3), at(4)], [Some(true), Some(true), Some(true), None, Some(false)]);
        assert_eq!(at(SPAN_MS), Some(true));
    }
}
