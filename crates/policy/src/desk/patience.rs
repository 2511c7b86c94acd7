//! How often questions were left unanswered, and when that is enough.

use std::collections::BTreeMap;

use firedoor_model::{EntryId, Millis};

use super::Event;
use crate::session::{Intent, SessionId};

/// Questions of one server left unanswered in one session, after which it is not asked about any more.
const ENOUGH: u32 = 3;

/// What patience is lost with: calls of one server in one session, or its connections.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Kind {
    pub session: SessionId,
    pub entry: EntryId,
    pub connection: bool,
}

/// Of each kind what was left unanswered since the last answer.
#[derive(Default)]
pub(super) struct Patience(BTreeMap<Kind, Unanswered>);

#[derive(Default)]
struct Unanswered {
    times: u32,
    /// The intents of those that expired, and when each did. At most [`ENOUGH`], since nothing is asked afterwards.
    expired: Vec<(Vec<Intent>, Millis)>,
}

impl Patience {
    /// A prompt was waved away.
    pub fn lose(&mut self, kind: Kind) -> Option<Event> {
        let (session, entry) = (kind.session, kind.entry.clone());
        let unanswered = self.0.entry(kind).or_default();
        unanswered.times = unanswered.times.saturating_add(1);
        (unanswered.times == ENOUGH).then_some(Event::Quieted { session, entry })
    }

    /// A question, asked at `asked`, expired at `until`. One that was asked while another that asks the same was open, and
    /// expired as well, was part of the same silence.
    pub fn expire(&mut self, kind: Kind, intents: Vec<Intent>, asked: Millis, until: Millis) -> Option<Event> {
        let expired = &mut self.0.entry(kind.clone()).or_default().expired;
        if expired.iter().any(|(same, end)| *same == intents && asked < *end) {
            return None;
        }
        expired.push((intents, until));
        self.lose(kind)
    }

    /// Somebody answers.
    pub fn regain(&mut self, kind: &Kind) {
        self.0.remove(kind);
    }

    pub fn forget_session(&mut self, session: SessionId) {
        self.0.retain(|kind, _| kind.session != session);
    }

    /// Whether questions of this kind are no longer asked.
    pub fn is_lost_with(&self, kind: &Kind) -> bool {
        self.0.get(kind).is_some_and(|unanswered| unanswered.times >= ENOUGH)
    }

    /// All kinds about which nothing is asked any more.
    pub fn lost_with(&self) -> impl Iterator<Item = &Kind> {
        self.0.iter().filter(|(_, unanswered)| unanswered.times >= ENOUGH).map(|(kind, _)| kind)
    }
}
