//! How much of what is allowed is too much. Pure: a clock's readings in, a verdict out.
//!
//! Honest servers stay far below: these end floods, and the slow leak of data in the names that a wildcard allows.

use std::{
    collections::HashMap,
    time::{Duration, Instant},
};

use super::policy::Refusal;

const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3600);
/// Look-ups that leave this machine, per minute. A crawler makes some dozens.
pub(crate) const LOOK_UPS: usize = 600;
/// Connections to one host and port, per minute. An installation of npm packages makes some dozens.
pub(crate) const CONNECTIONS_TO_ONE: usize = 1200;
/// All connections, per minute. A browser makes a hundred for one page.
pub(crate) const CONNECTIONS: usize = 6000;
/// Bytes of names below one wildcard that were never looked up before, per hour. What names carry is bounded by their bytes,
/// however it is encoded, so nothing has to be guessed about how random they look. Honest services use some dozen names.
pub(crate) const NEW_NAMES: usize = 2048;
/// Hosts and wildcards that are counted at once. With more, the oldest counts are dropped when they are over.
const MAX_COUNTED: usize = 8192;

/// What was used since some time.
#[derive(Clone, Copy)]
struct Count {
    since: Instant,
    used: usize,
}

impl Count {
    fn new(now: Instant) -> Self {
        Self { since: now, used: 0 }
    }

    /// Uses this much, or nothing when it is too much.
    fn take(&mut self, now: Instant, (limit, time): (usize, Duration), amount: usize) -> bool {
        if now.duration_since(self.since) >= time {
            *self = Self::new(now);
        }
        let enough = self.used + amount <= limit;
        if enough {
            self.used += amount;
        }
        enough
    }
}

/// What one server has used.
pub(crate) struct Caps {
    look_ups: Count,
    connections: Count,
    hosts: HashMap<String, Count>,
    wildcards: HashMap<String, Count>,
}

impl Caps {
    pub fn new(now: Instant) -> Self {
        let (look_ups, connections) = (Count::new(now), Count::new(now));
        Self { look_ups, connections, hosts: HashMap::new(), wildcards: HashMap::new() }
    }

    /// One more look-up.
    pub fn look_up(&mut self, now: Instant) -> Result<(), Refusal> {
        if self.look_ups.take(now, (LOOK_UPS, MINUTE), 1) { Ok(()) } else { Err(Refusal::LookUps) }
    }

    /// A name below a wildcard that was not looked up before.
    pub fn new_name(&mut self, now: Instant, parent: &str, name: &str) -> Result<(), Refusal> {
        let bytes = name.len().saturating_sub(parent.len());
        let count = counted(&mut self.wildcards, parent, now, HOUR);
        if count.is_some_and(|c| c.take(now, (NEW_NAMES, HOUR), bytes)) { Ok(()) } else { Err(Refusal::Names) }
    }

    /// One more connection to a host and port.
    pub fn connect(&mut self, now: Instant, target: &str) -> Result<(), Refusal> {
        let count = counted(&mut self.hosts, target, now, MINUTE);
        let one = count.is_some_and(|c| c.take(now, (CONNECTIONS_TO_ONE, MINUTE), 1));
        if one && self.connections.take(now, (CONNECTIONS, MINUTE), 1) { Ok(()) } else { Err(Refusal::Connections) }
    }
}

/// The count for a name; `None` when there are too many.
fn counted<'a>(all: &'a mut HashMap<String, Count>, name: &str, now: Instant, time: Duration) -> Option<&'a mut Count> {
    if !all.contains_key(name) {
        if all.len() >= MAX_COUNTED {
            all.retain(|_, c| now.duration_since(c.since) < time);
        }
        if all.len() >= MAX_COUNTED {
            return None;
        }
        all.insert(name.to_owned(), Count::new(now));
    }
    all.get_mut(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How often in a row it is allowed.
    fn allowed(mut one: impl FnMut(usize) -> Result<(), Refusal>) -> usize {
        (0..100_000).position(|n| one(n).is_err()).unwrap_or(100_000)
    }

    #[test]
    fn each_is_bounded_and_comes_back() {
        let start = Instant::now();
        let mut caps = Caps::new(start);
        for now in [start, start + HOUR] {
            assert_eq!(allowed(|_| caps.look_up(now)), LOOK_UPS);
            assert_eq!(allowed(|_| caps.connect(now, "a.example:443")), CONNECTIONS_TO_ONE);
            assert_eq!(allowed(|n| caps.connect(now, &format!("n{n}.example:443"))), CONNECTIONS - CONNECTIONS_TO_ONE);
            let name = |n: usize| format!("{n:031}.example.com");
            assert_eq!(allowed(|n| caps.new_name(now, "example.com", &name(n))), NEW_NAMES / 32);
            assert!(caps.new_name(now, "example.org", "a.example.org").is_ok(), "each wildcard by itself");
        }
        let soon = start + HOUR + MINUTE;
        assert!(caps.look_up(soon).is_ok() && caps.connect(soon, "a.example:443").is_ok());
        assert_eq!(caps.new_name(soon, "example.com", &"a".repeat(60)), Err(Refusal::Names));
    }

    #[test]
    fn what_is_counted_is_bounded() {
        let now = Instant::now();
        let mut counts = HashMap::new();
        let mut count = |n: usize, now| counted(&mut counts, &n.to_string(), now, MINUTE).is_some();
        assert_eq!((0..MAX_COUNTED * 2).filter(|n| count(*n, now)).count(), MAX_COUNTED);
        assert!(count(0, now) && !count(MAX_COUNTED, now) && count(MAX_COUNTED, now + MINUTE));
    }
}
