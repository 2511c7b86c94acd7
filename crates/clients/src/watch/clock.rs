//! When to look after something was touched. Pure: time comes in.

use std::time::{Duration, Instant};

/// Most programs write a file in several steps: look when this long nothing more came.
const QUIET: Duration = Duration::from_millis(200);
/// And at the latest so long after the first touch: some files are written all the time.
const LATEST: Duration = Duration::from_millis(800);
/// Looking takes at most one part in this many of the time.
const SHARE: u32 = 10;
/// The longest rest after a look.
const LONGEST_REST: Duration = Duration::from_secs(1);

/// When it is time to look: `first` and `last` are the touches since the last look, `rested` is when that may be
/// followed by another one.
pub(super) fn due(first: Instant, last: Instant, rested: Instant) -> Instant {
    (last + QUIET).min(first + LATEST).max(rested)
}

/// Until when to rest after a look that took so long.
pub(super) fn rested(end: Instant, took: Duration) -> Instant {
    end + (took * SHARE).min(LONGEST_REST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_is_one_look_and_a_stream_is_no_reason_to_wait() {
        let start = Instant::now();
        let at = |ms: u64| start + Duration::from_millis(ms);
        assert_eq!(due(at(0), at(0), at(0)), at(200));
        assert_eq!(due(at(0), at(150), at(0)), at(350));
        assert_eq!(due(at(0), at(750), at(0)), at(800));
        assert_eq!(due(at(0), at(0), at(900)), at(900));
        assert_eq!(rested(at(0), Duration::from_millis(20)), at(200));
        assert_eq!(rested(at(0), Duration::from_secs(5)), at(1000));
    }

    #[test]
    fn what_is_written_is_looked_at_within_two_seconds() {
        // The worst case: written when a long look had just begun, and again and again.
        let start = Instant::now();
        let long = Duration::from_millis(400);
        let rested = rested(start + long, long);
        let look = due(start, start + LATEST, rested);
        assert!(look + long < start + Duration::from_secs(2));
    }
}
