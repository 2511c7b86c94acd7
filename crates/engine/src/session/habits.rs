//! What the server's tools were called with: known from earlier sessions at the start, kept at the end.

use std::{collections::HashMap, rc::Rc, sync::Arc};

use firedoor_model::{EntryId, Habit};

use super::Session;
use crate::engine::Engine;

/// What is known of a server's tools. When it cannot be read, calls are measured by their budgets alone.
pub async fn known_habits(engine: &Engine, entry: &EntryId) -> HashMap<String, Arc<Habit>> {
    let of = entry.clone();
    match engine.recorder.at_once(move |store| store.habits(&of)).await {
        Ok(habits) => habits.into_iter().map(|(tool, habit)| (tool, Arc::new(habit))).collect(),
        Err(e) => {
            engine.problem(format!("what the tools of {entry} were called with before cannot be read: {e}"));
            HashMap::new()
        }
    }
}

impl Session {
    /// Keeps what the tools were called with in this session.
    pub(super) async fn keep_habits(&self, engine: &Rc<Engine>) {
        let seen = self.agent.memory.lock().await.take_habits(&self.entry);
        if seen.is_empty() {
            return;
        }
        let (entry, now) = (self.entry.clone(), engine.now());
        let kept = engine.recorder.with(move |store| store.learn_habits(&entry, &seen, now)).await;
        if let Err(e) = kept {
            engine.problem(format!("what the tools of {} were called with cannot be kept: {e}", self.entry));
        }
    }
}
