//! When a server is asked again for a stream that ended or broke off.

use std::time::Duration;

/// How often a stream that broke off is asked for again in vain, or without anything new where the server does not say when to.
const RESUMPTIONS: u32 = 5;

/// Milliseconds between two times, whatever the server says.
const SHORTEST: u64 = 10;
/// And the most of them that come of its failures.
const LONGEST: u64 = 30_000;
/// The most that come of its having no message. A result that is there is not late by more than that.
const LONGEST_IDLE: u64 = 250;
/// A server has to be left alone as long as it wants (2025-11-25, "Sending Messages to the Server"). Nobody waits for longer.
const LONGEST_SAID: u64 = 3_600_000;

/// What a stream brought.
#[derive(Clone, Copy, Default)]
pub(crate) struct Brought {
    /// Anything, if only where to go on from.
    pub(crate) events: bool,
    /// Messages.
    pub(crate) messages: bool,
}

/// How often a server was asked for a stream and had nothing to say, or did not give it.
#[derive(Clone, Copy, Default)]
pub(crate) struct Patience {
    failures: u32,
    idle: u32,
}

impl Patience {
    /// A stream has ended. True when all is well: it brought something, or the server has said when to come back (`retry`), as it may as
    /// often as it likes (2025-11-25, polling).
    pub(crate) fn ended(&mut self, brought: Brought, retry: Option<u64>) -> bool {
        self.idle = if brought.messages { 0 } else { self.idle.saturating_add(1) };
        let well = brought.events || retry.is_some();
        if well {
            self.failures = 0;
        }
        well
    }

    /// It is asked for again, and that counts until it is well.
    pub(crate) fn asks(&mut self) {
        self.failures = self.failures.saturating_add(1);
    }

    /// Asking has come to nothing too often.
    pub(crate) fn is_over(self) -> bool {
        self.failures >= RESUMPTIONS
    }

    /// How long to wait before it is asked for again: at least as long as the server said, longer each time that it failed, and a little
    /// longer each time that it had no message.
    pub(crate) fn pause(self, retry: Option<u64>) -> Duration {
        let grown = |first: u64, times: u32, most: u64| first.saturating_mul(1 << times.min(10)).min(most);
        let failed = grown(1000, self.failures, LONGEST);
        Duration::from_millis(match retry.map(|said| said.clamp(SHORTEST, LONGEST_SAID)) {
            Some(said) if self.failures == 0 => said.max(grown(SHORTEST, self.idle, LONGEST_IDLE)),
            Some(said) => said.max(failed),
            None => failed,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pause(retry: Option<u64>, failures: u32, idle: u32) -> Duration {
        Patience { failures, idle }.pause(retry)
    }

    #[test]
    fn waiting_is_bounded() {
        let (seconds, millis) = (Duration::from_secs, Duration::from_millis);
        for (retry, failures, idle, want) in [
            (Some(20), 0, 0, millis(20)),
            (None, 0, 0, seconds(1)),
            (Some(20), 3, 0, seconds(8)),
            (Some(60_000), 1, 9, seconds(60)),
            (Some(0), 0, 0, millis(10)),
            (Some(0), 1, 0, seconds(2)),
            (Some(u64::MAX), 0, 0, seconds(3600)),
            (None, u32::MAX, u32::MAX, seconds(30)),
            // One that wants to be asked at once is not, as long as it has nothing to say.
            (Some(0), 0, 3, millis(80)),
            (Some(0), 0, u32::MAX, millis(250)),
            // What it says is kept to.
            (Some(500), 0, u32::MAX, millis(500)),
        ] {
            assert_eq!(pause(retry, failures, idle), want, "{retry:?} {failures} {idle}");
        }
    }

    #[test]
    fn patience_ends_where_a_server_neither_answers_nor_says_when_to_come_back() {
        let (nothing, event) = (Brought::default(), Brought { events: true, messages: false });
        let mut patience = Patience::default();
        (0..4).for_each(|_| patience.asks());
        assert!(!patience.is_over() && patience.ended(event, None));
        for _ in 0..5 {
            assert!(!patience.is_over() && !patience.ended(nothing, None));
            patience.asks();
        }
        assert!(patience.is_over() && patience.ended(nothing, Some(0)) && !patience.is_over());
        assert_eq!(patience.idle, 7);
        patience.ended(Brought { events: true, messages: true }, None);
        assert_eq!(patience.idle, 0);
    }
}
