//! From the session to the server: each message becomes a request over HTTP.

use std::{
    cell::{Cell, RefCell},
    rc::Rc,
    time::Duration,
};

use bytes::Bytes;
use firedoor_model::{
    remote::{Instructions, Transport},
    told_by_firedoor,
    wire::{Body, Frame, Message, Object},
};
use reqwest::{
    Response, Url,
    header::{HeaderMap, HeaderValue},
};
use tokio::{
    io::{AsyncBufRead, AsyncBufReadExt},
    sync::{Mutex, Notify, Semaphore},
};

use crate::{
    flight::{Cancelled, Flight, Flights, Kind},
    http::{Http, HttpError, SetupError},
    mirror::{self, Mirror},
    output::Output,
    renewal::{Renewal, Renewed},
    session::Session,
};

/// Requests that are under way at the same time, each on a connection of its own where the server speaks HTTP/1.1.
/// Others wait for their turn.
const AT_ONCE: usize = 512;

/// A message that gets no answer is waited for so long, so that what follows comes after it.
const PATIENCE: Duration = Duration::from_secs(10);

/// For taking leave of the server.
const FAREWELL: Duration = Duration::from_secs(1);

/// JSON-RPC's first code for errors of an implementation.
const ERROR: i64 = -32000;

/// One session with one server.
pub struct Bridge {
    pub(crate) http: Http,
    pub(crate) output: Output,
    pub(crate) transport: Transport,
    pub(crate) limit: usize,
    pub(crate) at_endpoint: bool,
    pub(crate) login: Login,
    renewal: Option<Renewal>,
    pub(crate) flights: Flights,
    pub(crate) session: Session,
    pub(crate) mirror: RefCell<Mirror>,
    /// HTTP+SSE: where messages go; what the server says comes on the other stream.
    pub(crate) channel: RefCell<Option<Url>>,
    pub(crate) opening_channel: Mutex<()>,
    /// The server has taken a message at its own address, so it is none of HTTP+SSE.
    pub(crate) takes_posts: Cell<bool>,
    pub(crate) places: Semaphore,
    /// `initialize` is not answered yet.
    opening: Cell<bool>,
    opened: Notify,
    /// Why the session cannot go on.
    failure: RefCell<Option<String>>,
    failed: Notify,
}

/// How the user logs in at the server.
pub(crate) enum Login {
    /// With what the entry says itself.
    Own,
    /// With `firedoor login` and this entry, as a word of a shell.
    Command(String),
}

impl Login {
    fn of(instructions: &Instructions) -> Self {
        let own = instructions.headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("authorization"));
        if own && !instructions.signed_in { Self::Own } else { Self::Command(instructions.entry.quoted()) }
    }
}

/// What one line says.
enum Said {
    /// Answers what the server asked.
    Answer,
    /// Wants no answer.
    Notice { method: String },
    /// Gives a request up.
    GivesUp { id: String },
    /// Wants answers.
    Asks { ids: Vec<String>, kind: Kind, method: String },
}

impl Bridge {
    /// Sets it up. Nothing is sent yet.
    pub fn new(instructions: &Instructions, output: Output) -> Result<Rc<Self>, SetupError> {
        let login = Login::of(instructions);
        Ok(Rc::new(Self {
            http: Http::new(instructions)?,
            output,
            transport: instructions.transport,
            limit: instructions.max_message,
            at_endpoint: instructions.at_endpoint,
            // Without it a token that has ended is one that is refused.
            renewal: matches!(login, Login::Command(_)).then(Renewal::new).and_then(Result::ok),
            login,
            flights: Flights::default(),
            session: Session::default(),
            mirror: RefCell::default(),
            channel: RefCell::default(),
            opening_channel: Mutex::default(),
            takes_posts: Cell::new(false),
            places: Semaphore::new(AT_ONCE),
            opening: Cell::new(false),
            opened: Notify::new(),
            failure: RefCell::default(),
            failed: Notify::new(),
        }))
    }

    /// Passes messages on until the session ends. An error says why the server is lost.
    pub async fn run(self: &Rc<Self>, mut input: impl AsyncBufRead + Unpin) -> Result<(), String> {
        let passing = async {
            let mut line = Vec::new();
            while input.read_until(b'\n', &mut line).await.is_ok_and(|count| count > 0) {
                self.take(std::mem::take(&mut line)).await;
            }
            // Whoever asked may still read.
            self.flights.idle().await;
        };
        tokio::select! {
            () = passing => {}
            () = self.failed.notified() => {}
        }
        self.output.drained().await;
        match self.failure.take() {
            Some(why) => Err(why),
            None => Ok(()),
        }
    }

    /// How many tokens there have been.
    pub(crate) fn tokens(&self) -> u64 {
        self.renewal.as_ref().map_or(0, Renewal::generation)
    }

    /// Gets another token, because this one was refused. True when there is one now.
    pub(crate) async fn log_in_again(&self, seen: u64) -> bool {
        let Some(renewal) = &self.renewal else { return false };
        match renewal.another(seen, || self.http.authorization()).await {
            Some(Renewed::Now(value)) => self.http.authorize(value),
            Some(Renewed::Meanwhile) => {}
            None => return false,
        }
        true
    }

    /// Sends something of our own that can be sent twice: again with another token, if this one is refused.
    pub(crate) async fn with_login<F: Future<Output = Result<Response, HttpError>>>(
        &self,
        send: impl Fn() -> F,
    ) -> Result<Response, HttpError> {
        let token = self.tokens();
        let response = send().await?;
        if response.status().as_u16() == 401 && self.log_in_again(token).await { send().await } else { Ok(response) }
    }

    /// Tells the server that the session is over.
    pub async fn leave(&self) {
        if self.session.is_open() {
            // The server forgets by itself what it is not told.
            let _ = tokio::time::timeout(FAREWELL, self.http.delete(self.session.headers())).await;
        }
    }

    /// Deals with one line.
    async fn take(self: &Rc<Self>, line: Vec<u8>) {
        let body = Bytes::from(line);
        let body = body.slice_ref(body.trim_ascii());
        // The session passes on messages only.
        let Some(said) = Frame::parse(&body).ok().as_ref().map(Said::of) else { return };
        match said {
            Said::Answer => self.tell(body, None).await,
            Said::GivesUp { id } => {
                let closed = self.flights.cancel(&id) == Cancelled::Closed;
                if self.channel.borrow().is_some() {
                    // No connection is its own, and its server owes it no answer.
                    self.flights.answered(&id);
                    self.tell(body, None).await;
                } else if !closed && !self.session.is_modern() {
                    self.tell(body, None).await;
                }
            }
            Said::Notice { method } => {
                self.until_opened().await;
                self.tell(body, Some(&method)).await;
            }
            Said::Asks { ids, kind, method } => {
                self.until_opened().await;
                let Some(flight) = self.flights.add(ids.clone(), kind, &method) else {
                    for id in ids {
                        self.output.send(error(&id, "more requests at once than Firedoor keeps"));
                    }
                    return;
                };
                if kind == Kind::Initialize {
                    self.opening.set(true);
                    self.session.begin(&body);
                }
                // Boxed: the runtime moves a task several times before it runs, and this future is kilobytes.
                tokio::task::spawn_local(Box::pin(self.clone().exchange(body, flight)));
            }
        }
    }

    /// `initialize` comes before everything else.
    async fn until_opened(&self) {
        while self.opening.get() {
            self.opened.notified().await;
        }
    }

    /// `initialize` has been answered, or never will be.
    pub(crate) fn open(&self) {
        self.opening.set(false);
        self.opened.notify_one();
    }

    /// Sends what gets no answer.
    async fn tell(self: &Rc<Self>, body: Bytes, method: Option<&str>) {
        match tokio::time::timeout(PATIENCE, self.deliver_up(&body, method)).await {
            Ok(Ok(())) if method == Some("notifications/initialized") => self.listen_anew(),
            Ok(Ok(())) => {}
            Ok(Err(why)) => crate::say(&format!("the server did not take a message: {why}")),
            Err(_) => crate::say("the server did not take a message in time"),
        }
    }

    async fn deliver_up(self: &Rc<Self>, body: &Bytes, method: Option<&str>) -> Result<(), String> {
        let (mut again, mut may_renew) = (true, true);
        loop {
            self.connect().await?;
            let (seen, token) = (self.session.generation(), self.tokens());
            let to = self.channel.borrow().clone().unwrap_or_else(|| self.http.url().clone());
            let mut headers = self.session.headers();
            if let (Some(method), true) = (method, self.session.is_modern()) {
                headers.extend(HeaderValue::from_str(method).ok().map(|m| (mcp_method(), m)));
            }
            let response = self.http.post(&to, body.clone(), headers).await.map_err(|e| e.to_string())?;
            let status = response.status();
            if status.is_success() {
                return Ok(());
            }
            if status.as_u16() == 401 && std::mem::take(&mut may_renew) && self.log_in_again(token).await {
                continue;
            }
            if status.as_u16() == 404 && self.session.is_open() && std::mem::take(&mut again) {
                self.renew(seen).await?;
                continue;
            }
            return Err(format!("HTTP {status}"));
        }
    }

    /// The headers of a request.
    pub(crate) fn headers(&self, body: &[u8], flight: &Flight) -> Result<HeaderMap, String> {
        match flight.kind {
            Kind::Initialize => Ok(HeaderMap::new()),
            Kind::Legacy => Ok(self.session.headers()),
            Kind::Modern | Kind::Subscription => {
                let Ok(Frame::Single(message)) = Frame::parse(body) else { return Ok(HeaderMap::new()) };
                let (Some(version), Some(method)) = (mirror::version(params(&message)), message.method()) else {
                    return Ok(HeaderMap::new());
                };
                self.session.speaks(&version);
                self.mirror.borrow().headers(&version, method, params(&message))
            }
        }
    }

    /// No answer will come: says so in its place.
    pub(crate) fn fail(&self, flight: &Flight, why: &str) {
        for id in self.flights.lost(flight) {
            self.output.send(error(&id, why));
        }
        if flight.kind == Kind::Initialize {
            self.open();
        }
    }

    /// The server is lost: everything that waits is answered, and the session ends.
    pub(crate) fn give_up(&self, why: &str) {
        for flight in self.flights.all() {
            self.fail(&flight, why);
        }
        self.failure.replace(Some(why.to_owned()));
        self.failed.notify_one();
    }
}

impl Said {
    fn of(frame: &Frame<'_>) -> Self {
        let mut ids = Vec::new();
        let mut others = None;
        for message in frame.messages() {
            match &message.body {
                Body::Request { id, .. } => ids.push((*id).to_owned()),
                Body::Notification { method, params } => others = Some((method.as_ref().to_owned(), *params)),
                Body::Response { .. } | Body::Error { .. } => {}
            }
        }
        if let Frame::Single(message) = frame
            && let Body::Request { method, params, .. } = &message.body
        {
            let kind = match (method.as_ref(), mirror::version(*params)) {
                ("initialize", None) => Kind::Initialize,
                ("subscriptions/listen", Some(_)) => Kind::Subscription,
                (_, Some(_)) => Kind::Modern,
                (_, None) => Kind::Legacy,
            };
            return Self::Asks { ids, kind, method: method.as_ref().to_owned() };
        }
        match others {
            _ if !ids.is_empty() => Self::Asks { ids, kind: Kind::Legacy, method: String::new() },
            Some((method, params)) => {
                let id = params.and_then(Object::parse).and_then(|p| p.get("requestId"));
                match id.filter(|_| method == "notifications/cancelled" && matches!(frame, Frame::Single(_))) {
                    Some(id) => Self::GivesUp { id: id.to_owned() },
                    None => Self::Notice { method },
                }
            }
            None => Self::Answer,
        }
    }
}

fn mcp_method() -> reqwest::header::HeaderName {
    reqwest::header::HeaderName::from_static("mcp-method")
}

/// The params of a request.
pub(crate) fn params<'a>(message: &Message<'a>) -> Option<&'a str> {
    match message.body {
        Body::Request { params, .. } => params,
        _ => None,
    }
}

/// The answer to a request that the server does not answer.
pub(crate) fn error(id: &str, why: &str) -> Vec<u8> {
    let error = serde_json::json!({"code": ERROR, "message": told_by_firedoor(why)});
    format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{error}}}"#).into_bytes()
}
