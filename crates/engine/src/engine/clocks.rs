//! What happens because time has passed.

use std::{rc::Rc, time::Duration};

use firedoor_model::Millis;

use super::{Engine, now};

/// Questions of agents that have died are looked for this often.
const ROUND: Duration = Duration::from_secs(30);

impl Engine {
    /// Lets the desk's clocks run.
    pub async fn run_clocks(self: Rc<Self>) {
        loop {
            let asked = self.desk.borrow().next_deadline();
            let deadline = asked.into_iter().chain(self.pause_ends()).min();
            let wait = deadline.map_or(ROUND, |at| Duration::from_millis(at.since(now()) + 1).min(ROUND));
            tokio::select! {
                () = tokio::time::sleep(wait) => {}
                () = self.wake.notified() => {}
            }
            let events = self.desk.borrow_mut().tick(now());
            self.act(events);
            self.let_pause_end();
            self.forget_dead_agents();
        }
    }

    /// Agents whose client has died take their questions with them.
    fn forget_dead_agents(&self) {
        let in_use: Vec<_> = self.sessions.borrow().values().map(|s| s.agent.id).collect();
        let dead: Vec<_> = {
            let agents = self.agents.borrow();
            agents.values().filter(|a| !in_use.contains(&a.id) && !a.lives()).cloned().collect()
        };
        for agent in dead {
            self.agents.borrow_mut().remove(&agent.process);
            let events = self.desk.borrow_mut().session_ended(agent.id);
            self.act(events);
        }
    }

    /// Shortens the log to what the settings keep, now and once a day.
    pub async fn run_retention(self: Rc<Self>) {
        loop {
            let keep = u64::from(self.log_days.get()) * 86_400_000;
            let before = Millis(now().0.saturating_sub(keep));
            if let Err(e) = self.recorder.with(move |store| store.prune(before, None)).await {
                self.problem(format!("the audit log cannot be shortened: {e}"));
            }
            tokio::select! {
                () = tokio::time::sleep(Duration::from_secs(86_400)) => {}
                () = self.retain.notified() => {}
            }
        }
    }
}
