//! Requests on their way to the server, by id.

use std::{
    collections::{HashMap, VecDeque},
    sync::Arc,
};

use firedoor_inspect::CallLabel;
use firedoor_model::wire::{RawId, unescape};
use firedoor_policy::Allowed;

/// Most requests in flight in one session. The oldest is forgotten first: from then on answers to unknown requests are passed on,
/// inspected like every other.
pub const MAX_PENDING: usize = 4096;

/// What was asked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Asked {
    /// The method.
    pub method: String,
    /// Tool, prompt or resource; empty for other methods.
    pub subject: String,
    /// How sensitive the answer is, judged by what was asked.
    pub label: CallLabel,
    /// The call, when the user allowed it and its server may ask something first.
    pub allowed: Option<Arc<Allowed>>,
}

/// Requests in flight.
#[derive(Default)]
pub struct Pending {
    by_id: HashMap<Key, Asked>,
    order: VecDeque<Key>,
    forgot: bool,
}

/// An id in the form in which implementations compare it: `1`, `1.0` and `1e0` are one number, `"a"` and `"\u0061"` one
/// string. A server that spells an id differently must not lose its answer's context.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Key {
    Text(String),
    Integer(i64),
    /// Any other number, as written.
    Number(String),
}

impl Key {
    fn of(raw: RawId<'_>) -> Self {
        if raw.starts_with('"') {
            return Self::Text(unescape(raw).map_or_else(|| raw.to_owned(), std::borrow::Cow::into_owned));
        }
        if let Ok(integer) = raw.parse() {
            return Self::Integer(integer);
        }
        match raw.parse::<f64>() {
            // Whole and exactly representable, so the conversion is exact (2^53).
            Ok(number) if number.fract() == 0.0 && number.abs() <= 9_007_199_254_740_992.0 => {
                Self::Integer(number as i64)
            }
            _ => Self::Number(raw.to_owned()),
        }
    }

    /// The same number as a string, or the other way round: clients take `"3"` for the answer to 3 (the official libraries for
    /// TypeScript and Python do).
    fn otherwise(&self) -> Option<Self> {
        match self {
            Self::Text(text) => text.trim().parse().ok().map(Self::Integer),
            Self::Integer(integer) => Some(Self::Text(integer.to_string())),
            Self::Number(_) => None,
        }
    }

    fn spelled(self) -> String {
        match self {
            Self::Text(text) => serde_json::Value::String(text).to_string(),
            Self::Integer(integer) => integer.to_string(),
            Self::Number(number) => number,
        }
    }
}

/// The id in the one spelling under which the ledger knows it. It is JSON and means the same to every peer.
pub fn canonical(raw: RawId<'_>) -> String {
    Key::of(raw).spelled()
}

/// Every id that an answer's may stand for, spelled so.
pub fn answered(raw: RawId<'_>) -> impl Iterator<Item = String> {
    let key = Key::of(raw);
    let otherwise = key.otherwise();
    std::iter::once(key).chain(otherwise).map(Key::spelled)
}

impl Pending {
    /// Remembers a request. A reused id replaces the older request.
    pub fn insert(&mut self, id: RawId<'_>, asked: Asked) {
        let key = Key::of(id);
        if self.by_id.insert(key.clone(), asked).is_none() {
            self.order.push_back(key);
        }
        while self.by_id.len() > MAX_PENDING {
            let Some(oldest) = self.order.pop_front() else { break };
            self.forgot |= self.by_id.remove(&oldest).is_some();
        }
    }

    /// Whether a request waits for an answer.
    pub fn has(&self, id: RawId<'_>) -> bool {
        let key = Key::of(id);
        self.by_id.contains_key(&key) || key.otherwise().is_some_and(|key| self.by_id.contains_key(&key))
    }

    /// Notes that some may have been forgotten by whoever had the session before.
    pub fn may_be_more(&mut self) {
        self.forgot = true;
    }

    /// Whether one was forgotten, so that an answer to none that is known may be its.
    pub fn forgot(&self) -> bool {
        self.forgot
    }

    /// Takes the request that an answer belongs to.
    pub fn take(&mut self, id: RawId<'_>) -> Option<Asked> {
        let key = Key::of(id);
        let asked = self.by_id.remove(&key).or_else(|| self.by_id.remove(&key.otherwise()?));
        // Answers usually come in order, so this is short; leftovers go when they reach the front.
        while self.order.front().is_some_and(|key| !self.by_id.contains_key(key)) {
            self.order.pop_front();
        }
        if self.order.len() > 2 * MAX_PENDING {
            self.order.retain(|key| self.by_id.contains_key(key));
        }
        asked
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(method: &str) -> Asked {
        Asked { method: method.into(), ..Asked::default() }
    }

    #[test]
    fn ids_are_compared_as_peers_do() {
        for (sent, answered, same) in [
            ("1", "1", true),
            ("1", "1.0", true),
            ("10", "1e1", true),
            (r#""a""#, r#""\u0061""#, true),
            ("1", r#""1""#, true),
            (r#""1""#, "1", true),
            ("3", r#"" 3 ""#, true),
            ("1", r#""1.0""#, false),
            ("1", r#""x""#, false),
            ("1.5", "1.5", true),
            ("9007199254740993", "9007199254740993", true),
            ("9007199254740993", "9007199254740992", false),
            ("-0", "0", true),
        ] {
            let mut pending = Pending::default();
            pending.insert(sent, asked("m"));
            assert_eq!(pending.take(answered).is_some(), same, "{sent} {answered}");
        }
    }

    #[test]
    fn the_exact_spelling_comes_first() {
        let mut pending = Pending::default();
        pending.insert("1", asked("number"));
        pending.insert(r#""1""#, asked("text"));
        assert_eq!(pending.take(r#""1""#), Some(asked("text")));
        assert_eq!(pending.take(r#""1""#), Some(asked("number")));
        assert_eq!(pending.take("1"), None);
        assert!(!pending.forgot());
        assert_eq!(answered("1").collect::<Vec<_>>(), ["1", r#""1""#]);
    }

    #[test]
    fn requests_in_flight_are_bounded() {
        let mut pending = Pending::default();
        for i in 0..3 * MAX_PENDING {
            pending.insert(&i.to_string(), asked("m"));
        }
        assert_eq!(pending.by_id.len(), MAX_PENDING);
        assert!(pending.take("0").is_none());
        assert!(pending.forgot());
        assert!(pending.take(&(3 * MAX_PENDING - 1).to_string()).is_some());
        for i in 0..3 * MAX_PENDING {
            pending.take(&i.to_string());
        }
        assert!(pending.by_id.is_empty() && pending.order.len() <= 2 * MAX_PENDING);
    }
}
