//! Uses of rules: counted as they happen, written down now and then.

use std::{rc::Rc, time::Duration};

use firedoor_model::rule::Use;
use firedoor_policy::Reason;

use super::{Engine, now};

/// Uses of rules are written down this often.
const USES: Duration = Duration::from_secs(60);

impl Engine {
    /// Counts the use of the rule that settled a decision, if one did.
    pub fn settled_by(&self, reason: &Reason) {
        let Some(id) = reason.rule() else { return };
        let mut uses = self.uses.borrow_mut();
        let seen = uses.entry(id).or_insert(Use { hits: 0, last: now() });
        *seen = Use { hits: seen.hits.saturating_add(1), last: now() };
    }

    /// Writes down the uses of rules since the last time.
    pub async fn write_uses(&self) {
        let uses = self.uses.take();
        if uses.is_empty() {
            return;
        }
        if let Err(e) = self.recorder.with(move |store| store.count_uses(&uses)).await {
            self.problem(format!("the uses of rules cannot be counted: {e}"));
        }
    }

    /// Writes the uses of rules down now and then: not with every call.
    pub async fn run_uses(self: Rc<Self>) {
        loop {
            tokio::time::sleep(USES).await;
            self.write_uses().await;
        }
    }
}
