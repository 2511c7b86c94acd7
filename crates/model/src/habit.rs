//! What a tool is used to: how often and with how much it was called in earlier sessions.

use serde::{Deserialize, Serialize};

use crate::Digest;

/// Most hosts, and most names of arguments, that are kept for one tool. A tool that has named so many is one of which a
/// further one says nothing.
pub const MAX_KNOWN: usize = 64;
/// Most tools of one server of which something is kept.
pub const MAX_TOOLS: usize = 256;
/// How many times what was known one session can raise it to: who wants a tool to be used to more has to wait.
const GROWTH: u64 = 4;

/// What one tool was called with, in one session or in all before. Holds numbers and hashes, no text of a call.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Habit {
    /// Sessions in which it was called.
    pub sessions: u32,
    /// Calls.
    pub calls: u64,
    /// Most calls in one minute.
    pub per_minute: u64,
    /// Longest arguments of one call, in bytes of JSON.
    pub longest: u64,
    /// Most bytes of arguments in ten minutes.
    pub volume: u64,
    /// Hosts that the arguments named, as [`mark`]; at most [`MAX_KNOWN`].
    pub hosts: Vec<u64>,
    /// Names of its arguments, as [`mark`]; at most [`MAX_KNOWN`].
    pub arguments: Vec<u64>,
}

/// What stands for a name: the first eight bytes of its SHA-256, of which SQLite and JSON can hold 63 bits.
pub fn mark(name: &str) -> u64 {
    let digest = Digest::of(name.as_bytes()).0;
    digest.iter().take(8).fold(0, |mark, byte| mark << 8 | u64::from(*byte)) >> 1
}

/// Adds a mark that is not there and for which there is room. Whether it was new.
pub fn note(marks: &mut Vec<u64>, mark: u64) -> bool {
    let new = marks.len() < MAX_KNOWN && !marks.contains(&mark);
    if new {
        marks.push(mark);
    }
    new
}

impl Habit {
    /// Adds a session to what was known before it.
    pub fn learn(&mut self, session: &Self) {
        let known = self.sessions > 0;
        let raise = |was: &mut u64, seen: u64| {
            let most = if known { was.saturating_mul(GROWTH).max(1) } else { u64::MAX };
            *was = (*was).max(seen.min(most));
        };
        raise(&mut self.per_minute, session.per_minute);
        raise(&mut self.longest, session.longest);
        raise(&mut self.volume, session.volume);
        self.sessions = self.sessions.saturating_add(1);
        self.calls = self.calls.saturating_add(session.calls);
        for (known, seen) in [(&mut self.hosts, &session.hosts), (&mut self.arguments, &session.arguments)] {
            seen.iter().for_each(|mark| {
                note(known, *mark);
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn session(per_minute: u64, longest: u64, hosts: &[&str]) -> Habit {
        let hosts = hosts.iter().map(|h| mark(h)).collect();
        Habit { calls: 10, per_minute, longest, volume: longest * 10, hosts, ..Habit::default() }
    }

    #[test]
    fn one_session_raises_a_habit_only_so_far() {
        let mut habit = Habit::default();
        habit.learn(&session(5, 100, &["a.example"]));
        assert_eq!((habit.sessions, habit.calls, habit.per_minute, habit.longest), (1, 10, 5, 100));
        habit.learn(&session(4000, 50, &["a.example", "b.example"]));
        assert_eq!((habit.sessions, habit.per_minute, habit.longest, habit.hosts.len()), (2, 20, 100, 2));
        let text = serde_json::to_string(&habit).unwrap();
        assert_eq!(serde_json::from_str::<Habit>(&text).unwrap(), habit);
        assert!(!text.contains("example"));
    }

    #[test]
    fn marks_are_bounded() {
        let mut marks = Vec::new();
        assert!(note(&mut marks, mark("a")) && !note(&mut marks, mark("a")));
        (0..1000).for_each(|n| {
            note(&mut marks, n);
        });
        assert_eq!(marks.len(), MAX_KNOWN);
        assert!(i64::try_from(mark("anything")).is_ok());
    }
}
