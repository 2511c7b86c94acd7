//! One request over HTTP, from its head to what goes back.

use std::{
    cell::OnceCell,
    rc::Rc,
    time::{Duration, Instant},
};

use firedoor_ipc::{process::Process, tcp::OtherEnd};
use firedoor_model::{
    told_by_firedoor,
    wire::{Body, Frame, WireError},
};
use http_body_util::BodyExt as _;
use hyper::{
    HeaderMap, Method, Request, Response, StatusCode,
    body::Incoming,
    header::{AUTHORIZATION, HeaderName},
};

use super::{
    answer::{self, Answer, Events},
    gate::{Gate, OpenError},
    session::{AskError, Era, Session},
    stateless,
};
use crate::{
    bridge::params,
    door::{Door, single},
    mirror,
    output::one_line,
    session::{LAST_EVENT, SESSION, VERSION},
};

/// The first revision without sessions.
const STATELESS: &str = "2026-07-28";

/// The first revision whose streams begin with an event that only has an id.
const PRIMED: &str = "2025-11-25";

/// For a message to arrive.
const ARRIVAL: Duration = Duration::from_secs(60);

/// For the first word of a server, before a stream is opened for it.
const FIRST_WORD: Duration = Duration::from_secs(10);

/// Most headers of the client's own that go on to a server.
const MAX_PASSED: usize = 32;

/// JSON-RPC's codes for what is not JSON, what is no message, what lacks something, and what an implementation has to say itself.
const NOT_JSON: i64 = -32700;
const NO_MESSAGE: i64 = -32600;
const INVALID_PARAMS: i64 = -32602;
const OURS: i64 = -32000;

/// A connection.
pub struct Connection {
    pub gate: Rc<Gate>,
    /// The socket at the other end.
    pub socket: OtherEnd,
    /// Who is at the other end, once somebody wanted to know.
    pub client: OnceCell<Process>,
}

/// What goes back to a request that is refused.
type Refused = Box<Response<Answer>>;

type Reply = Result<Response<Answer>, Refused>;

fn error(status: StatusCode, id: &str, code: i64, why: &str) -> Refused {
    Box::new(answer::error(status, id, code, why))
}

fn bad(why: &str) -> Refused {
    error(StatusCode::BAD_REQUEST, "null", OURS, why)
}

impl Connection {
    /// Deals with one request.
    pub async fn visit(&self, request: Request<Incoming>) -> Response<Answer> {
        let (head, body) = request.into_parts();
        let door = Door { port: self.gate.port, key: &self.gate.endpoint.key };
        if let Err(refused) = door.admit(&head.method, &head.uri, &head.headers) {
            return answer::error(refused.status, "null", OURS, refused.why);
        }
        if !self.gate.messages.take(Instant::now()) {
            return answer::error(StatusCode::TOO_MANY_REQUESTS, "null", OURS, "more messages than Firedoor takes");
        }
        let reply = match head.method {
            Method::POST => self.posted(&head.headers, body).await,
            Method::GET => self.listened(&head.headers),
            _ => self.ended(&head.headers),
        };
        reply.unwrap_or_else(|refused| *refused)
    }

    /// The session that a request names.
    fn session(&self, headers: &HeaderMap) -> Result<Option<Rc<Session>>, Refused> {
        let Some(name) = single(headers, &SESSION).map_err(|refused| bad(refused.why))? else { return Ok(None) };
        let gone = || error(StatusCode::NOT_FOUND, "null", OURS, "there is no such session: open another");
        let session = self.gate.session(name).ok_or_else(gone)?;
        let version = single(headers, &VERSION).map_err(|refused| bad(refused.why))?;
        if version.is_some_and(|version| !is_revision(version)) {
            return Err(bad("the MCP-Protocol-Version header names no revision of the protocol"));
        }
        Ok(Some(session))
    }

    /// GET: the stream on which the server speaks by itself, or one that broke off.
    fn listened(&self, headers: &HeaderMap) -> Reply {
        let Some(session) = self.session(headers)? else {
            return Err(error(StatusCode::METHOD_NOT_ALLOWED, "null", OURS, "without a session there is no stream"));
        };
        let stream = match single(headers, &LAST_EVENT).map_err(|refused| bad(refused.why))? {
            Some(event) => session.resume(event).ok_or_else(|| bad("what follows that event is not kept any more"))?,
            None => super::stream::OWN,
        };
        Events::carry(&session, stream).map(answer::events).ok_or_else(|| bad("that stream has ended"))
    }

    /// DELETE: the client ends its session.
    fn ended(&self, headers: &HeaderMap) -> Reply {
        match self.session(headers)? {
            Some(session) => {
                self.gate.close(&session);
                Ok(answer::status(StatusCode::OK))
            }
            None => Err(bad("the Mcp-Session-Id header is missing")),
        }
    }

    /// POST: one message, or one batch.
    async fn posted(&self, headers: &HeaderMap, body: Incoming) -> Reply {
        let mut line = self.collect(body).await?;
        one_line(&mut line);
        let bytes = bytes::Bytes::from(line);
        let frame = Frame::parse(bytes.trim_ascii()).map_err(|e| {
            let code = if e == WireError::NotJson { NOT_JSON } else { NO_MESSAGE };
            error(StatusCode::BAD_REQUEST, "null", code, &e.to_string())
        })?;
        let text = bytes.trim_ascii().to_vec();
        if let Some(session) = self.session(headers)? {
            return in_session(headers, &session, text, &frame).await;
        }
        let named = single(headers, &VERSION).map_err(|refused| bad(refused.why))?;
        let own = match &frame {
            Frame::Single(message) => {
                params(message).or_else(|| noticed(message)).and_then(|p| mirror::version(Some(p)))
            }
            Frame::Batch(_) => None,
        };
        if own.as_deref().or(named).is_some_and(|version| version >= STATELESS) {
            return self.by_itself(headers, text, &frame, own.as_deref()).await;
        }
        match &frame {
            Frame::Single(message) if message.method() == Some("initialize") => {
                self.opened(headers, text, &frame).await
            }
            _ => Err(bad("the Mcp-Session-Id header is missing: a session begins with initialize")),
        }
    }

    async fn collect(&self, mut body: Incoming) -> Result<Vec<u8>, Refused> {
        let too_long = || Box::new(answer::status(StatusCode::PAYLOAD_TOO_LARGE));
        let most = self.gate.max_message;
        if hyper::body::Body::size_hint(&body).lower() > most as u64 {
            return Err(too_long());
        }
        let all = async {
            let mut bytes = Vec::new();
            while let Some(frame) = body.frame().await {
                let frame = frame.map_err(|_| bad("the message broke off"))?;
                let part = frame.into_data().unwrap_or_default();
                if bytes.len() + part.len() > most {
                    return Err(too_long());
                }
                bytes.extend_from_slice(&part);
            }
            Ok(bytes)
        };
        let in_time = tokio::time::timeout(ARRIVAL, all).await;
        in_time.unwrap_or_else(|_| Err(Box::new(answer::status(StatusCode::REQUEST_TIMEOUT))))
    }

    /// `initialize`: a server of its own for this client.
    async fn opened(&self, headers: &HeaderMap, line: Vec<u8>, frame: &Frame<'_>) -> Reply {
        let client = self.client()?;
        let session = self.gate.open(client, Era::Session, self.passed(headers)).map_err(|e| refused(&e, frame))?;
        let wanted = match frame {
            Frame::Single(message) => params(message).and_then(requested),
            Frame::Batch(_) => None,
        };
        let mut reply = ask(&session, line, frame, wanted.is_some_and(|version| version.as_str() >= PRIMED)).await?;
        if let Ok(name) = session.id.parse() {
            reply.headers_mut().insert(SESSION, name);
        }
        Ok(reply)
    }

    /// A message of revision 2026-07-28.
    async fn by_itself(&self, headers: &HeaderMap, line: Vec<u8>, frame: &Frame<'_>, version: Option<&str>) -> Reply {
        let Frame::Single(message) = frame else { return Err(bad("this revision has no batches")) };
        let client = self.client()?;
        let passed = self.passed(headers);
        let id = match &message.body {
            Body::Request { id, .. } => *id,
            Body::Notification { .. } => {
                let session = self.gate.stateless(client, passed, frame).map_err(|e| refused(&e, frame))?;
                return ask(&session, line, frame, false).await;
            }
            Body::Response { .. } | Body::Error { .. } => return Err(bad("this revision has no answers of clients")),
        };
        let mismatch = |why: &str| {
            let why = format!("the headers do not match the body: {why}");
            error(StatusCode::BAD_REQUEST, id, stateless::HEADER_MISMATCH, &why)
        };
        let version = version.ok_or_else(|| {
            let why = "_meta names no protocol version (io.modelcontextprotocol/protocolVersion)";
            error(StatusCode::BAD_REQUEST, id, INVALID_PARAMS, why)
        })?;
        let method = message.method().unwrap_or_default();
        // What needs no server to be known, before one is started for it.
        let known = mirror::Mirror::default().headers(version, method, params(message)).map_err(|e| mismatch(&e))?;
        stateless::compare(&known, headers).map_err(|e| mismatch(&e))?;
        let session = self.gate.stateless(client, passed, frame).map_err(|e| refused(&e, frame))?;
        let all = session.mirror.borrow().headers(version, method, params(message)).map_err(|e| mismatch(&e))?;
        stateless::compare(&all, headers).map_err(|e| mismatch(&e))?;
        session.room().await;
        let stream = session.expect(frame, false).map_err(|e| failed(e, frame))?;
        let events = Events::carry(&session, stream).ok_or_else(|| failed(AskError::Ended, frame))?;
        session.send(line).map_err(|e| failed(e, frame))?;
        match tokio::time::timeout(FIRST_WORD, session.only(stream)).await {
            Ok(Some(only)) => {
                let status = stateless::status(&only, stateless::says_capabilities(params(message)));
                Ok(answer::message(status, only))
            }
            Ok(None) | Err(_) => Ok(answer::events(events)),
        }
    }

    /// The process at the other end.
    fn client(&self) -> Result<Process, Refused> {
        if let Some(known) = self.client.get() {
            return Ok(*known);
        }
        let found = self.gate.client(self.socket).ok_or_else(|| {
            let why = "Firedoor cannot see which program this is, so nothing is started for it";
            error(StatusCode::FORBIDDEN, "null", OURS, why)
        })?;
        Ok(*self.client.get_or_init(|| found))
    }

    /// The client's headers that go on to the server.
    fn passed(&self, headers: &HeaderMap) -> Vec<(String, String)> {
        let firedoor_model::endpoint::Served::Remote { pass: true, .. } = &self.gate.endpoint.target.server else {
            return Vec::new();
        };
        let own = |name: &HeaderName| name == AUTHORIZATION || !stateless::is_ours(name.as_str());
        let text = |(name, value): (&HeaderName, &hyper::header::HeaderValue)| {
            Some((name.as_str().to_owned(), value.to_str().ok()?.to_owned()))
        };
        headers.iter().filter(|(name, _)| own(name)).filter_map(text).take(MAX_PASSED).collect()
    }
}

/// A message within a session. One that names no revision is of the first that had sessions.
async fn in_session(headers: &HeaderMap, session: &Rc<Session>, line: Vec<u8>, frame: &Frame<'_>) -> Reply {
    if frame.messages().iter().any(|message| message.method() == Some("initialize")) {
        return Err(bad("this session is open already"));
    }
    let version = single(headers, &VERSION).map_err(|refused| bad(refused.why))?;
    ask(session, line, frame, version.is_some_and(|version| version >= PRIMED)).await
}

/// Passes a message on, and carries what answers it.
async fn ask(session: &Rc<Session>, line: Vec<u8>, frame: &Frame<'_>, primed: bool) -> Reply {
    session.room().await;
    if !frame.messages().iter().any(|message| matches!(message.body, Body::Request { .. })) {
        session.replied(frame);
        session.send(line).map_err(|e| failed(e, frame))?;
        return Ok(answer::status(StatusCode::ACCEPTED));
    }
    let stream = session.expect(frame, primed).map_err(|e| failed(e, frame))?;
    let events = Events::carry(session, stream).ok_or_else(|| failed(AskError::Ended, frame))?;
    session.send(line).map_err(|e| failed(e, frame))?;
    Ok(answer::events(events))
}

/// The id of the request that an error answers.
fn id<'f>(frame: &'f Frame<'f>) -> &'f str {
    match frame {
        Frame::Single(message) => match &message.body {
            Body::Request { id, .. } => id,
            _ => "null",
        },
        Frame::Batch(_) => "null",
    }
}

fn refused(e: &OpenError, frame: &Frame<'_>) -> Refused {
    error(e.status(), id(frame), OURS, &told_by_firedoor(&e.to_string()))
}

fn failed(e: AskError, frame: &Frame<'_>) -> Refused {
    let status = match e {
        AskError::Ended => StatusCode::NOT_FOUND,
        AskError::Repeated => StatusCode::BAD_REQUEST,
        AskError::Many => StatusCode::TOO_MANY_REQUESTS,
    };
    error(status, id(frame), OURS, &format!("Firedoor: {e}"))
}

/// The parameters of a notification.
fn noticed<'a>(message: &firedoor_model::wire::Message<'a>) -> Option<&'a str> {
    match message.body {
        Body::Notification { params, .. } => params,
        _ => None,
    }
}

/// The revision that a client wants to speak.
fn requested(params: &str) -> Option<String> {
    use firedoor_model::wire::{Object, unescape};
    Object::parse(params)?.get("protocolVersion").and_then(unescape).map(|version| version.into_owned())
}

/// Whether a text has the form of a revision's name: a date.
fn is_revision(text: &str) -> bool {
    text.len() == 10
        && text.bytes().enumerate().all(|(at, b)| if matches!(at, 4 | 7) { b == b'-' } else { b.is_ascii_digit() })
}
