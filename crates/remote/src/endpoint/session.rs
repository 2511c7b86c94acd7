//! One server process behind an endpoint, and who waits for what of it: messages of the client become lines, lines of the
//! server become events on the stream of the request that they belong to.

use std::{
    cell::{Cell, RefCell},
    collections::HashMap,
    future::poll_fn,
    rc::Rc,
    task::{Poll, Waker},
    time::Instant,
};

use firedoor_ipc::process::Process;
use firedoor_model::{
    remote::PAUSED,
    wire::{Body, Frame, Message, Object},
};
use tokio::sync::Notify;

use super::stream::{Next, OWN, Streams};
use crate::{bridge, mirror::Mirror, output::Output};

const ENDED: &str = "the server has ended, and did not answer";

/// Most requests at once.
const MAX_OPEN: usize = 4096;

/// Which rules the client follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Era {
    /// Revisions up to 2025-11-25: a session, which the client opens with `initialize`.
    Session,
    /// 2026-07-28: each request stands for itself.
    Stateless,
}

/// A request that waits for its answer.
struct Open {
    stream: u64,
    method: String,
    /// Raw.
    progress: Option<String>,
}

/// One server.
pub struct Session {
    /// Its name, which the client sends with each message.
    pub id: String,
    /// The client's process.
    pub client: Process,
    pub era: Era,
    /// What the client's own headers were when it was started.
    pub headers: Vec<(String, String)>,
    input: RefCell<Option<Output>>,
    streams: RefCell<Streams>,
    /// Requests of the client, by raw id.
    open: RefCell<HashMap<String, Open>>,
    /// Requests of the server, by raw id, and the stream that each went out on.
    asked: RefCell<HashMap<String, u64>>,
    pub mirror: RefCell<Mirror>,
    used: Cell<Instant>,
    /// Something was sent, or somebody has gone.
    progress: Notify,
}

/// A message cannot be passed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AskError {
    /// The server has gone.
    #[error("{ENDED}")]
    Ended,
    /// Two answers could not be told apart.
    #[error("a request with this id is not answered yet")]
    Repeated,
    /// There are [`MAX_OPEN`].
    #[error("more requests at once than Firedoor keeps")]
    Many,
}

impl Session {
    pub fn new(id: String, client: Process, era: Era, headers: Vec<(String, String)>, input: Output) -> Rc<Self> {
        Rc::new(Self {
            id,
            client,
            era,
            headers,
            input: RefCell::new(Some(input)),
            streams: RefCell::new(Streams::new(era == Era::Session)),
            open: RefCell::default(),
            asked: RefCell::default(),
            mirror: RefCell::default(),
            used: Cell::new(Instant::now()),
            progress: Notify::new(),
        })
    }

    /// Whether the server is gone.
    pub fn is_over(&self) -> bool {
        self.input.borrow().is_none()
    }

    /// Whether a request of this id waits for its answer.
    pub fn waits_for(&self, frame: &Frame<'_>) -> bool {
        let open = self.open.borrow();
        ids(frame).any(|(id, _, _)| open.contains_key(id))
    }

    /// Since when nobody has used it; `None` while somebody does.
    pub fn idle_since(&self) -> Option<Instant> {
        let idle = self.open.borrow().is_empty() && !self.streams.borrow().any_carried();
        idle.then(|| self.used.get())
    }

    /// Waits until the server takes more.
    pub async fn room(&self) {
        let input = self.input.borrow().clone();
        if let Some(input) = input {
            input.room().await;
        }
    }

    /// Passes a message on, as one line.
    pub fn send(&self, line: Vec<u8>) -> Result<(), AskError> {
        self.used.set(Instant::now());
        self.input.borrow().as_ref().ok_or(AskError::Ended)?.send(line);
        Ok(())
    }

    /// Expects answers to the requests in a message, which is to be sent next; gives the stream that they come on. With `primed` see [`Streams::open`].
    pub fn expect(&self, frame: &Frame<'_>, primed: bool) -> Result<u64, AskError> {
        if self.waits_for(frame) {
            return Err(AskError::Repeated);
        }
        let mut open = self.open.borrow_mut();
        if open.len() + frame.messages().len() > MAX_OPEN {
            return Err(AskError::Many);
        }
        let stream = self.streams.borrow_mut().open(primed);
        for (id, method, params) in ids(frame) {
            let meta = params.and_then(Object::parse).and_then(|p| p.get("_meta")).and_then(Object::parse);
            let progress = meta.and_then(|meta| meta.get("progressToken")).map(str::to_owned);
            open.insert(id.to_owned(), Open { stream, method: method.to_owned(), progress });
        }
        Ok(stream)
    }

    /// A connection carries a stream.
    pub fn attach(&self, stream: u64) -> Option<u64> {
        self.streams.borrow_mut().attach(stream)
    }

    /// Goes on behind an event.
    pub fn resume(&self, event: &str) -> Option<u64> {
        self.streams.borrow_mut().resume(event).ok()
    }

    /// What a connection gets next.
    pub fn next(&self, stream: u64, carrier: u64, waker: &Waker) -> Next {
        let next = self.streams.borrow_mut().next(stream, carrier, waker);
        self.progress.notify_waiters();
        next
    }

    /// Waits until there is something on a stream. Gives it when nothing else follows.
    pub async fn only(&self, stream: u64) -> Option<Vec<u8>> {
        poll_fn(|context| {
            let mut streams = self.streams.borrow_mut();
            match streams.is_ready(stream, context.waker()) {
                true => Poll::Ready(streams.only(stream).map(<[u8]>::to_vec)),
                false => Poll::Pending,
            }
        })
        .await
    }

    /// A connection that carried a stream has gone. A client of revision 2026-07-28 gives its request up that way; of
    /// earlier ones it may come back.
    pub fn detach(&self, stream: u64, carrier: u64) {
        let left = self.streams.borrow_mut().detach(stream, carrier);
        self.used.set(Instant::now());
        self.progress.notify_waiters();
        if !left || self.era == Era::Session {
            return;
        }
        let mut open = self.open.borrow_mut();
        let given_up: Vec<String> =
            open.iter().filter(|(_, open)| open.stream == stream).map(|(id, _)| id.clone()).collect();
        for id in given_up {
            open.remove(&id);
            if let Some(input) = &*self.input.borrow() {
                let params = format!(r#"{{"requestId":{id},"reason":"the client has closed the connection"}}"#);
                input.send(
                    format!(r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{params}}}"#).into_bytes(),
                );
            }
        }
    }

    /// Takes a line of the server, once there is room for it.
    pub async fn hear(&self, line: &[u8]) {
        loop {
            let progress = self.progress.notified();
            tokio::pin!(progress);
            progress.as_mut().enable();
            if !self.streams.borrow().is_full() || self.is_over() {
                break;
            }
            progress.await;
        }
        // The engine passes on messages only.
        let Ok(frame) = Frame::parse(line) else { return };
        if let Some((stream, retry)) = self.paused(&frame) {
            return self.streams.borrow_mut().pause(stream, retry);
        }
        let stream = frame.messages().iter().find_map(|message| self.belongs(message)).or_else(|| self.any());
        let Some(stream) = stream else { return };
        for message in frame.messages() {
            self.note(message, stream);
        }
        self.streams.borrow_mut().push(stream, line);
        let done = frame.messages().iter().filter_map(|message| self.answered(&message.body)).any(|of| of == stream);
        if done && !self.open.borrow().values().any(|open| open.stream == stream) {
            self.streams.borrow_mut().end(stream);
        }
    }

    /// The stream that the server has closed so that it is asked again, and after how many milliseconds.
    fn paused(&self, frame: &Frame<'_>) -> Option<(u64, u64)> {
        let Frame::Single(Message { body: Body::Notification { method, params }, .. }) = frame else { return None };
        let params = params.filter(|_| method == PAUSED).and_then(Object::parse)?;
        // A stream that is there no more is none that could be closed.
        let stream = self.open.borrow().get(params.get("requestId")?).map_or(u64::MAX, |open| open.stream);
        Some((stream, params.get("retry")?.parse().ok()?))
    }

    /// The stream that a message belongs to by what it says.
    fn belongs(&self, message: &Message<'_>) -> Option<u64> {
        let open = self.open.borrow();
        let of = |id: &str| open.get(id).map(|open| open.stream);
        match &message.body {
            Body::Response { id, .. } | Body::Error { id: Some(id), .. } => of(id),
            Body::Error { id: None, .. } | Body::Request { .. } => None,
            Body::Notification { method, params } => {
                let params = params.and_then(Object::parse)?;
                let meta = || params.get("_meta").and_then(Object::parse);
                if let Some(of) = meta().and_then(|m| m.get("io.modelcontextprotocol/subscriptionId")).and_then(of) {
                    return Some(of);
                }
                match method.as_ref() {
                    "notifications/progress" => {
                        let token = params.get("progressToken")?;
                        let waits = open.values().find(|open| open.progress.as_deref() == Some(token))?;
                        Some(waits.stream)
                    }
                    "notifications/cancelled" => self.asked.borrow().get(params.get("requestId")?).copied(),
                    _ if self.era == Era::Session && is_news(method) && self.streams.borrow().is_carried(OWN) => {
                        Some(OWN)
                    }
                    _ => None,
                }
            }
        }
    }

    /// The stream for what names no request: over stdio nothing says which one it belongs to. The newest that somebody
    /// listens to is right for a client that speaks one by one.
    fn any(&self) -> Option<u64> {
        let streams = self.streams.borrow();
        let open = self.open.borrow();
        let listening = |open: &&Open| open.method != "subscriptions/listen" && streams.is_carried(open.stream);
        let newest = open.values().filter(listening).map(|open| open.stream).max();
        newest.or((self.era == Era::Session).then_some(OWN))
    }

    /// Remembers what later messages depend on.
    fn note(&self, message: &Message<'_>, stream: u64) {
        match &message.body {
            Body::Request { id, .. } => {
                let mut asked = self.asked.borrow_mut();
                if asked.len() < MAX_OPEN {
                    asked.insert((*id).to_owned(), stream);
                }
            }
            Body::Response { id, result } => {
                let lists = self.open.borrow().get(*id).is_some_and(|open| open.method == "tools/list");
                if lists && self.era == Era::Stateless {
                    self.mirror.borrow_mut().learn(result);
                }
            }
            Body::Error { .. } | Body::Notification { .. } => {}
        }
    }

    /// A request of the client is answered.
    fn answered(&self, body: &Body<'_>) -> Option<u64> {
        match body {
            Body::Response { id, .. } | Body::Error { id: Some(id), .. } => {
                self.open.borrow_mut().remove(*id).map(|open| open.stream)
            }
            Body::Error { id: None, .. } | Body::Request { .. } | Body::Notification { .. } => None,
        }
    }

    /// The client has answered what the server asked.
    pub fn replied(&self, frame: &Frame<'_>) {
        for message in frame.messages() {
            if let Body::Response { id, .. } | Body::Error { id: Some(id), .. } = &message.body {
                self.asked.borrow_mut().remove(*id);
            }
        }
    }

    /// The server is not needed any more, or is gone: whoever waits is told.
    pub fn end(&self) {
        if let Some(input) = self.input.take() {
            input.close();
        }
        let mut streams = self.streams.borrow_mut();
        for (id, Open { stream, .. }) in self.open.take() {
            streams.push(stream, &bridge::error(&id, ENDED));
            streams.end(stream);
        }
        streams.end(OWN);
        drop(streams);
        self.progress.notify_waiters();
    }
}

/// The requests of a message of the client: raw id, method, raw params.
fn ids<'f>(frame: &'f Frame<'f>) -> impl Iterator<Item = (&'f str, &'f str, Option<&'f str>)> {
    frame.messages().iter().filter_map(|message| match &message.body {
        Body::Request { id, method, params } => Some((*id, method.as_ref(), *params)),
        Body::Notification { .. } | Body::Response { .. } | Body::Error { .. } => None,
    })
}

/// Whether a notification tells what a server has changed by itself.
fn is_news(method: &str) -> bool {
    method.ends_with("/list_changed")
        || matches!(method, "notifications/resources/updated" | "notifications/tasks/status")
}
