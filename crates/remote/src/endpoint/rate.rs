//! How often something may happen.

use std::{
    cell::Cell,
    time::{Duration, Instant},
};

/// A store of permits that fills itself up.
pub struct Rate {
    most: f64,
    per_second: f64,
    now: Cell<(f64, Instant)>,
}

impl Rate {
    /// At most `most` at once, and so many in `span` in the long run.
    pub fn new(most: u32, count: u32, span: Duration) -> Self {
        let now = Cell::new((f64::from(most), Instant::now()));
        Self { most: f64::from(most), per_second: f64::from(count) / span.as_secs_f64(), now }
    }

    /// Takes a permit, if there is one at this time.
    pub fn take(&self, at: Instant) -> bool {
        let (left, then) = self.now.get();
        let grown = (left + at.saturating_duration_since(then).as_secs_f64() * self.per_second).min(self.most);
        let granted = grown >= 1.0;
        self.now.set((if granted { grown - 1.0 } else { grown }, at.max(then)));
        granted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_and_then_as_it_comes() {
        let rate = Rate::new(3, 10, Duration::from_secs(10));
        let start = Instant::now() + Duration::from_secs(1);
        assert_eq!((0..5).filter(|_| rate.take(start)).count(), 3);
        assert!(rate.take(start + Duration::from_millis(1001)));
        assert!(!rate.take(start + Duration::from_millis(1002)));
        // Time that runs backwards gives nothing.
        assert!(!rate.take(start));
        assert_eq!((0..5).filter(|_| rate.take(start + Duration::from_secs(3600))).count(), 3);
    }
}
