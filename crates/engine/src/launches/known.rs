//! What is known of an entry before it starts: what it offered, how it was used, and whether this start is to be observed.

use std::{collections::HashMap, rc::Rc, sync::Arc};

use firedoor_model::{Ability, EntryId, Habit};

use super::LaunchError;
use crate::{
    engine::Engine,
    session::{
        definitions::{Tool, known_tools},
        known_habits,
    },
};

/// What earlier sessions of an entry and the user have left for its next one.
pub(super) struct Known {
    pub tools: HashMap<String, Tool>,
    pub habits: HashMap<String, Arc<Habit>>,
    pub observe: bool,
}

pub(super) async fn known(engine: &Rc<Engine>, entry: &EntryId) -> Result<Known, LaunchError> {
    let (tools, habits, observe) =
        tokio::join!(tools(engine, entry), known_habits(engine, entry), to_observe(engine, entry));
    Ok(Known { tools: tools?, habits, observe })
}

/// The tools that earlier sessions pinned. Without them a changed tool would look like a new one.
pub(super) async fn tools(engine: &Rc<Engine>, entry: &EntryId) -> Result<HashMap<String, Tool>, LaunchError> {
    let of = entry.clone();
    let pins = engine.recorder.at_once(move |store| store.pins(Some(&of))).await;
    let refused = |e| LaunchError::Refused(format!("what {entry} offered before cannot be read: {e}"));
    Ok(known_tools(engine, &pins.map_err(refused)?))
}

/// Whether the user wants to see what this start of an entry does.
async fn to_observe(engine: &Rc<Engine>, entry: &EntryId) -> bool {
    // A home may come from a system that can.
    if Ability::Observing.here().is_err() {
        return false;
    }
    let now = engine.now();
    match engine.recorder.at_once(move |store| store.to_observe(now)).await {
        Ok(entries) => entries.contains(entry),
        // It runs as it always does.
        Err(e) => {
            engine.problem(format!("what is to be observed cannot be read: {e}"));
            false
        }
    }
}
