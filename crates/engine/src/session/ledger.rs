//! What a session's next engine must know if this one dies: a file in memory that the shim owns and the engine writes.
//!
//! The bytes that were read lie in the streams' logs ([`crate::io::Log`]); here stands what has become of them. A request
//! is *claimed* before it is judged and *sent* when the server has all of it, so that the next engine neither judges it
//! again without this one's memory nor makes a call twice: what was claimed and not sent is answered with an error.
//!
//! How it is written: [`kept`].

use std::{cell::RefCell, collections::BTreeMap};

use firedoor_inspect::{CallLabel, Privacy, Sink};
use serde::{Deserialize, Serialize};

use super::{
    held::Request,
    pending::{Asked, canonical},
};

/// Longest method or name that is kept.
const MAX_NAME: usize = 512;

#[cfg(unix)]
mod ages;
#[cfg_attr(unix, path = "ledger/kept.rs")]
#[cfg_attr(windows, path = "ledger/absent.rs")]
mod kept;

use kept::Kept;

/// Which way a message goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Way {
    /// To the server.
    Up,
    /// To the client.
    Down,
}

/// What is known when an engine takes a session over.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct State {
    /// Bytes of the client's log that are dealt with.
    pub up: u64,
    /// Bytes of the server's log that are dealt with.
    pub down: u64,
    /// Where the last long message to the server ends in its [`crate::io::Remainder`].
    pub up_end: u64,
    /// Likewise to the client.
    pub down_end: u64,
    /// A message to the client may have been cut off: only where it is read from no pipe.
    pub torn: bool,
    /// The client opened with `initialize`.
    pub legacy: bool,
    /// Unanswered requests of the client, by [`canonical`] id.
    pub requests: BTreeMap<String, Claimed>,
}

/// What has become of a claimed request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Claimed {
    /// It is being judged or held, or its way to the server was cut short.
    Open {
        /// It is a tool call, which is refused with a result.
        tool_call: bool,
        /// It belongs to the stateless era.
        modern: bool,
    },
    /// The server has all of it.
    Sent {
        /// The method.
        method: String,
        /// Tool, prompt or resource.
        subject: String,
        /// How private its result is.
        #[serde(default)]
        privacy: Privacy,
        /// Where its arguments went: away from this machine or not, if known.
        external: Option<bool>,
    },
}

impl Claimed {
    fn sent(asked: &Asked) -> Self {
        let cut = |text: &str| text.chars().take(MAX_NAME).collect();
        let external = match asked.label.sink {
            Sink::Local => Some(false),
            Sink::External => Some(true),
            Sink::Unknown => None,
        };
        let (method, subject) = (cut(&asked.method), cut(&asked.subject));
        Self::Sent { method, subject, privacy: asked.label.privacy, external }
    }

    /// What the server's answer must be looked at with; `None` when the server may not have the request.
    pub fn asked(&self) -> Option<Asked> {
        let Self::Sent { method, subject, privacy, external } = self else { return None };
        let sink = match external {
            Some(false) => Sink::Local,
            Some(true) => Sink::External,
            None => Sink::Unknown,
        };
        let label = CallLabel { privacy: *privacy, sink };
        Some(Asked { method: method.clone(), subject: subject.clone(), label, allowed: None })
    }
}

/// One change.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Record {
    /// A request was read, up to this offset of the client's log, and is about to be judged.
    Claim(String, u64, Claimed),
    /// The server has all of these requests.
    Sent(Vec<(String, Claimed)>),
    /// These requests are answered, or given up.
    Answered(Vec<String>),
    /// A log is dealt with up to this offset, or was started anew (zero). What goes another way may be noted later than what
    /// came after it, so a smaller one says nothing.
    Through(Way, u64),
    /// A long message was begun, which ends there in its remainder.
    Begun(Way, u64),
    /// A message to the client is being written that may be cut off, or is no longer.
    Torn(bool),
    /// The client opened with `initialize`.
    Legacy,
    /// Everything.
    Snapshot(State),
}

/// The ledger of one session; none for streams whose bytes cannot be logged.
pub struct Ledger(Option<RefCell<Kept>>);

impl Ledger {
    /// No ledger: the session ends with its engine.
    pub fn none() -> Self {
        Self(None)
    }

    /// Writes one change. A ledger that cannot be written is given up, which a later engine sees as a session that it
    /// cannot take over.
    pub fn write(&self, record: Record) {
        self.write_all(vec![record]);
    }

    /// The offset up to which a log is dealt with; `None` where nobody will go on from it.
    pub fn through(&self, way: Way) -> Option<u64> {
        self.0.as_ref().map(|kept| kept.borrow().through(way))
    }

    /// Writes several changes at once.
    pub fn write_all(&self, records: Vec<Record>) {
        if let Some(kept) = &self.0 {
            kept.borrow_mut().take(records);
        }
    }
}

impl Record {
    /// A request was read, up to this offset of the client's log.
    pub fn claim(request: &Request, up: u64) -> Self {
        let Request { id, tool_call, modern } = request;
        Self::Claim(canonical(id), up, Claimed::Open { tool_call: *tool_call, modern: *modern })
    }

    /// The server has all of these requests.
    pub fn sent(asked: &[(String, Asked)]) -> Self {
        Self::Sent(asked.iter().map(|(id, asked)| (canonical(id), Claimed::sent(asked))).collect())
    }
}
