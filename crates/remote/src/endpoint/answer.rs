//! What goes back over HTTP.

use std::{
    convert::Infallible,
    pin::Pin,
    rc::Rc,
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use hyper::{
    Response, StatusCode,
    body::{Body, Frame, SizeHint},
    header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE, HeaderValue, X_CONTENT_TYPE_OPTIONS},
};
use tokio::time::{Interval, MissedTickBehavior, interval_at};

use super::{session::Session, stream::Next};

/// A stream on which nothing comes says so this often. A client that has gone is noticed then at the latest.
const QUIET: Duration = Duration::from_secs(25);

/// A body.
pub enum Answer {
    /// Known in full, or nothing.
    Whole(Option<Bytes>),
    /// A stream of events.
    Events(Events),
}

/// A stream of events, carried by one connection.
pub struct Events {
    session: Rc<Session>,
    stream: u64,
    carrier: u64,
    quiet: Interval,
}

impl Events {
    /// Carries a stream; `None` when it is not there any more.
    pub fn carry(session: &Rc<Session>, stream: u64) -> Option<Self> {
        let carrier = session.attach(stream)?;
        let mut quiet = interval_at(tokio::time::Instant::now() + QUIET, QUIET);
        quiet.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Some(Self { session: session.clone(), stream, carrier, quiet })
    }
}

impl Drop for Events {
    fn drop(&mut self) {
        self.session.detach(self.stream, self.carrier);
    }
}

impl Body for Answer {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let events = match self.get_mut() {
            Self::Whole(bytes) => return Poll::Ready(bytes.take().map(|bytes| Ok(Frame::data(bytes)))),
            Self::Events(events) => events,
        };
        match events.session.next(events.stream, events.carrier, context.waker()) {
            Next::Event(bytes) => {
                events.quiet.reset();
                Poll::Ready(Some(Ok(Frame::data(bytes))))
            }
            Next::End => Poll::Ready(None),
            Next::Wait => events.quiet.poll_tick(context).map(|_| Some(Ok(Frame::data(Bytes::from_static(b":\n\n"))))),
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(self, Self::Whole(None))
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole(bytes) => SizeHint::with_exact(bytes.as_ref().map_or(0, Bytes::len) as u64),
            Self::Events(_) => SizeHint::default(),
        }
    }
}

fn with(status: StatusCode, kind: Option<&'static str>, body: Answer) -> Response<Answer> {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    if let Some(kind) = kind {
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    }
    if status == StatusCode::METHOD_NOT_ALLOWED {
        headers.insert(ALLOW, HeaderValue::from_static("POST, GET, DELETE"));
    }
    response
}

/// Nothing but a status.
pub fn status(status: StatusCode) -> Response<Answer> {
    with(status, None, Answer::Whole(None))
}

/// One message.
pub fn message(status: StatusCode, message: Vec<u8>) -> Response<Answer> {
    with(status, Some("application/json"), Answer::Whole(Some(message.into())))
}

/// A stream of events.
pub fn events(events: Events) -> Response<Answer> {
    with(StatusCode::OK, Some("text/event-stream"), Answer::Events(events))
}

/// An error of JSON-RPC, in the place of the answer to what has this raw id.
pub fn error(status: StatusCode, id: &str, code: i64, why: &str) -> Response<Answer> {
    let error = serde_json::json!({"code": code, "message": why});
    message(status, format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{error}}}"#).into_bytes())
}
