//! What answers leave behind in one session of an agent.

use std::borrow::Cow;

use firedoor_model::{Digest, EntryId, Finding, Millis, Untrusted, finding::Role, question::Ref};

use crate::{
    call::Call,
    decision::{NEW_TOOL, Subject},
    desk::Rounds,
    thresholds::names,
};

/// One agent's session, across all servers it uses. Numbers are the engine's and are never used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionId(pub u64);

/// What a call was about to do, without its arguments: from where, to where, seen by which detector.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Intent {
    /// The server the data came from; absent when the finding is no flow.
    pub source: Option<EntryId>,
    /// The server called.
    pub sink: EntryId,
    /// The tool called.
    pub tool: Option<Untrusted>,
    /// The detector, or [`NEW_TOOL`].
    pub detector: Cow<'static, str>,
}

impl Intent {
    /// The intents that these findings show; for a question without findings, the tool's use as such.
    pub(crate) fn all<'a>(subject: &Subject, findings: impl IntoIterator<Item = &'a Finding>) -> Vec<Self> {
        let intent =
            |source, detector| Self { source, sink: subject.entry.clone(), tool: subject.tool.clone(), detector };
        let mut intents: Vec<_> = findings
            .into_iter()
            .flat_map(|finding| {
                let mut sources: Vec<_> =
                    finding.evidence.iter().filter(|e| e.role == Role::Source).map(|e| e.entry.clone()).collect();
                if sources.is_empty() {
                    sources.push(None);
                }
                let detector = finding.detector.clone();
                sources.into_iter().map(move |source| (source, detector.clone()))
            })
            .map(|(source, detector)| intent(source, detector))
            .collect();
        if intents.is_empty() {
            intents.push(intent(None, Cow::Borrowed(NEW_TOOL)));
        }
        intents.sort();
        intents.dedup();
        intents
    }

    /// Whether a later message does the same.
    fn recurs(&self, subject: &Subject, findings: &[Finding]) -> bool {
        let place = self.sink == subject.entry && self.tool == subject.tool;
        // A tool that was refused as such stays refused, also when it is no longer called new.
        place && (self.detector == NEW_TOOL || Self::all(subject, findings).contains(self))
    }
}

/// An intent that the user allowed for the rest of the session, while the server stays what it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SessionAllow {
    pub reference: Ref,
    pub intents: Vec<Intent>,
    /// Of this call only.
    pub call: Option<Digest>,
    /// To this address only.
    pub address: Option<Untrusted>,
    pub launch: Option<Digest>,
    pub definition: Option<Digest>,
}

impl SessionAllow {
    /// Whether all of what was found now was allowed then.
    pub fn covers(&self, subject: &Subject, intents: &[Intent]) -> bool {
        self.call.is_none_or(|call| call == subject.call.digest())
            && self.address.as_ref().is_none_or(|address| subject.address.as_ref() == Some(address))
            && self.launch == subject.launch
            && self.definition == subject.definition
            && intents.iter().all(|intent| self.intents.contains(intent))
    }
}

/// Leave for one exact call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Permit {
    /// The call.
    pub call: Digest,
    /// The question whose answer this is.
    pub reference: Ref,
    /// When it was given.
    pub from: Millis,
    /// When it ends.
    pub until: Millis,
}

impl Permit {
    fn is_for(&self, call: &Call, now: Millis) -> bool {
        self.from <= now && now < self.until && self.call == call.digest()
    }
}

/// What was allowed and refused for the rest of one session.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SessionRules {
    pub(crate) allows: Vec<SessionAllow>,
    pub(crate) denials: Vec<(Ref, Intent)>,
    pub(crate) permits: Vec<Permit>,
    pub(crate) rounds: Rounds,
}

impl SessionRules {
    /// The refusal that this message repeats.
    pub fn denial(&self, subject: &Subject, findings: &[Finding]) -> Option<&Ref> {
        self.denials.iter().find(|(_, intent)| intent.recurs(subject, findings)).map(|(reference, _)| reference)
    }

    /// The permit that is good for this call now. A clock that went backwards ends a permit.
    pub fn permit(&self, call: &Call, now: Millis) -> Option<&Permit> {
        self.permits.iter().find(|p| p.is_for(call, now))
    }

    pub(crate) fn redeem(&mut self, call: &Call, now: Millis) -> Option<Permit> {
        let place = self.permits.iter().position(|p| p.is_for(call, now))?;
        Some(self.permits.swap_remove(place))
    }

    /// Whether this stands against anything that such a rule allows.
    pub(crate) fn refuses(&self, entry: Option<&EntryId>, tool: Option<&Untrusted>, detector: Option<&str>) -> bool {
        self.denials.iter().any(|(_, intent)| {
            entry.is_none_or(|entry| *entry == intent.sink)
                && tool.is_none_or(|tool| intent.tool.as_ref() == Some(tool))
                && detector.is_none_or(|detector| names(detector, &intent.detector))
        })
    }

    /// Forgets the refusals of one finding in one tool, from wherever the data came. Whether there were any.
    pub(crate) fn lift(&mut self, entry: &EntryId, tool: &Untrusted, detector: &str) -> bool {
        let before = self.denials.len();
        self.denials.retain(|(_, intent)| {
            intent.sink != *entry || intent.tool.as_ref() != Some(tool) || intent.detector != detector
        });
        self.denials.len() < before
    }

    pub(crate) fn deny(&mut self, reference: &Ref, intent: Intent) {
        if self.denials.iter().all(|(_, known)| *known != intent) {
            self.denials.push((reference.clone(), intent));
        }
    }
}
