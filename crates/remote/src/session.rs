//! What is known about the server's session.

use std::cell::{Cell, RefCell};

use bytes::Bytes;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use tokio::{sync::Mutex, task::AbortHandle};

/// Names a session, of a server or of an endpoint.
pub(crate) const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
/// Names the revision that was agreed on.
pub(crate) const VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
/// Says where to go on from in a stream of events that broke off.
pub(crate) const LAST_EVENT: HeaderName = HeaderName::from_static("last-event-id");

/// Sessions exist up to revision 2025-11-25; what comes after says everything in each request.
#[derive(Default)]
pub struct Session {
    /// The server's name for it, if it gave one.
    id: RefCell<Option<HeaderValue>>,
    /// The revision that was agreed on.
    version: RefCell<Option<HeaderValue>>,
    /// The client's `initialize`, as it was sent.
    opening: RefCell<Option<Bytes>>,
    /// The server's answer to it.
    result: RefCell<Option<String>>,
    /// Counts sessions, of which a server may end any.
    generation: Cell<u64>,
    modern: Cell<bool>,
    pub(crate) renewing: Mutex<()>,
    pub(crate) listener: RefCell<Option<AbortHandle>>,
}

impl Session {
    /// The client opens one.
    pub fn begin(&self, body: &Bytes) {
        self.opening.replace(Some(body.clone()));
        self.result.take();
        self.id.take();
        self.version.take();
        self.modern.set(false);
    }

    /// The server has answered, with this name for the session.
    pub fn named(&self, headers: &HeaderMap) {
        self.id.replace(headers.get(&SESSION).cloned());
        self.generation.set(self.generation.get() + 1);
    }

    /// The server's answer.
    pub fn agreed(&self, result: &str) {
        let version = firedoor_model::wire::Object::parse(result)
            .and_then(|r| r.get("protocolVersion"))
            .and_then(firedoor_model::wire::unescape)
            .and_then(|v| HeaderValue::from_str(&v).ok());
        self.version.replace(version);
        self.result.replace(Some(result.to_owned()));
    }

    /// A request without a session names this revision.
    pub fn speaks(&self, version: &str) {
        if self.opening.borrow().is_none() {
            self.modern.set(true);
            self.version.replace(HeaderValue::from_str(version).ok());
        }
    }

    /// Whether the client uses no sessions.
    pub fn is_modern(&self) -> bool {
        self.modern.get()
    }

    /// Whether the server has one open for us that it knows by a name.
    pub fn is_open(&self) -> bool {
        self.id.borrow().is_some()
    }

    /// Counts sessions.
    pub fn generation(&self) -> u64 {
        self.generation.get()
    }

    /// What opened it, and what the server said to that.
    pub fn opening(&self) -> Option<(Bytes, String)> {
        self.opening.borrow().clone().zip(self.result.borrow().clone())
    }

    /// The headers that belong to it.
    pub fn headers(&self) -> HeaderMap {
        self.headers_as(self.id.borrow().as_ref())
    }

    /// The headers that will belong to one with this name.
    pub fn headers_as(&self, id: Option<&HeaderValue>) -> HeaderMap {
        let id = id.map(|id| (SESSION, id.clone()));
        let version = self.version.borrow().clone().map(|version| (VERSION, version));
        id.into_iter().chain(version).collect()
    }
}
