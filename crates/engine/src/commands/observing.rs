//! Observe mode: switching it on and off, and what was seen.

use std::rc::Rc;

use firedoor_ipc::command::{self, Reply};
use firedoor_model::{Ability, EntryId};
use firedoor_store::Observation;

use super::settings::{Outcome, note, text};
use crate::engine::Engine;

/// Observing that was switched on ends by itself when the server is not started for so long.
const PATIENCE_MS: u64 = 24 * 60 * 60 * 1000;

/// Entries whose next start is observed.
pub async fn next(engine: &Rc<Engine>) -> Vec<EntryId> {
    let now = engine.now();
    match engine.recorder.with(move |store| store.to_observe(now)).await {
        Ok(entries) => entries,
        Err(e) => {
            engine.problem(format!("what is to be observed cannot be read: {e}"));
            Vec::new()
        }
    }
}

pub async fn switch(engine: &Rc<Engine>, entry: EntryId, on: bool) -> Outcome {
    if on {
        Ability::Observing.here().map_err(text)?;
    }
    let until = on.then(|| engine.now().plus(PATIENCE_MS));
    note(engine, Some(&entry), format!("observing {entry} switched {}", if on { "on" } else { "off" })).await?;
    let of = entry.clone();
    engine.recorder.with(move |store| store.observe_next(&of, until)).await.map_err(text)?;
    let said = if on {
        format!(
            "the next run of {entry} is observed, if its client starts it within 24 hours; each open takes the server a few \
             microseconds longer then. See `firedoor observe {} show`",
            entry.quoted()
        )
    } else {
        format!("the next run of {entry} is not observed; a run that is observed now is so to its end")
    };
    Ok(Reply::Done { text: said })
}

pub async fn show(engine: &Rc<Engine>, entry: EntryId) -> Outcome {
    let running = {
        let sessions = engine.sessions.borrow();
        sessions.values().rev().filter(|s| s.entry == entry).find_map(|s| s.observation())
    };
    let reply = |seen: Observation, running| {
        Reply::Observation(Box::new(command::Observation {
            at: seen.at,
            running,
            record: seen.record,
            basis: seen.basis,
        }))
    };
    if let Some(seen) = running {
        return Ok(reply(seen, true));
    }
    let of = entry.clone();
    match engine.recorder.with(move |store| store.observed(&of)).await.map_err(text)? {
        Some(seen) => Ok(reply(seen, false)),
        None => Err(format!(
            "{entry} has not been observed: switch it on with `firedoor observe {} on`, then restart its client",
            entry.quoted()
        )),
    }
}
