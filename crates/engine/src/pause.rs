//! A while in which nobody is asked. It is kept in memory only, so that it ends with the engine at the latest.

use firedoor_ipc::command::{MAX_PAUSE, Reply};
use firedoor_model::{Millis, audit::What};

use crate::engine::Engine;

/// From when until when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pause {
    from: Millis,
    until: Millis,
}

impl Pause {
    /// Beginning now.
    fn new(now: Millis, minutes: u32) -> Option<Self> {
        (1..=MAX_PAUSE).contains(&minutes).then(|| Self { from: now, until: now.plus(u64::from(minutes) * 60_000) })
    }

    /// Whether it has ended. A clock that was set back ends it, too.
    fn over(self, now: Millis) -> bool {
        now < self.from || now >= self.until
    }
}

impl Engine {
    /// Until when nothing is asked, if there is a pause.
    pub fn paused(&self) -> Option<Millis> {
        self.pause.get().filter(|pause| !pause.over(self.now())).map(|pause| pause.until)
    }

    /// Begins a pause, or another one in its place. On record before it takes effect.
    pub async fn begin_pause(&self, minutes: u32) -> Result<Reply, String> {
        if let Some(floor) = self.managed.mode {
            return Err(format!("an administrator asks for mode {floor} at least, so questions cannot be paused"));
        }
        let text = format!("questions paused for {minutes} min");
        let pause = Pause::new(self.now(), minutes)
            .ok_or_else(|| format!("a pause lasts 1 to {MAX_PAUSE} minutes; for longer, use `firedoor mode watch`"))?;
        let written = self.recorder.commit(self.event(What::Command { text })).await;
        written.map_err(|e| format!("questions are not paused, because that cannot be recorded: {e}"))?;
        self.pause.set(Some(pause));
        self.wake.notify_one();
        self.changed();
        Ok(Reply::Done {
            text: format!(
                "nothing is asked for {minutes} min; what would be asked about is let through and recorded, and what is \
                 certain and critical is blocked as ever"
            ),
        })
    }

    /// Ends a pause before its time.
    pub async fn end_pause(&self) -> Result<Reply, String> {
        let was = self.paused().is_some();
        self.pause.set(None);
        if !was {
            return Err("there is no pause".into());
        }
        self.commit(self.event(What::Command { text: "questions are asked again".into() })).await;
        self.changed();
        Ok(Reply::Done { text: "questions are asked again".into() })
    }

    /// Forgets a pause whose time has come.
    pub fn let_pause_end(&self) {
        if self.pause.get().is_some_and(|pause| pause.over(self.now())) {
            self.pause.set(None);
            self.recorder
                .record(self.event(What::Command { text: "the pause is over: questions are asked again".into() }));
            self.changed();
        }
    }

    /// When the pause ends, for whoever keeps time.
    pub fn pause_ends(&self) -> Option<Millis> {
        self.pause.get().map(|pause| pause.until)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_is_bounded_and_ends_by_itself() {
        let begun = Millis(1_000_000);
        for minutes in [0, MAX_PAUSE + 1, u32::MAX] {
            assert_eq!(Pause::new(begun, minutes), None, "{minutes}");
        }
        let pause = Pause::new(begun, 15).unwrap();
        for (at, over) in [(999_999, true), (1_000_000, false), (1_899_999, false), (1_900_000, true)] {
            assert_eq!(pause.over(Millis(at)), over, "{at}");
        }
    }
}
