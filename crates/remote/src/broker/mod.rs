//! `firedoor-remote --broker`: puts secrets in for a server that does not get them.
//!
//! It listens on this machine for that one server, whose address for its service begins with a random path of its own, or
//! whose own connections to its service are led here ([`intercept`]). What the server sends has a placeholder where its
//! credential belongs; here the secret takes its place, and the request goes on over TLS to the one host that the user has
//! said. It is confined like every server: it reaches those hosts and nothing else, and reads no file of the user's.
//!
//! Architecture invariants: a secret stands in one header of a request to its own host and nowhere else; no redirect is
//! followed; what comes back passes the mask.

mod answer;
mod asked;
mod intercept;
mod lane;
mod mask;
mod notices;

use std::{
    convert::Infallible,
    io::{self, Write as _},
    net::SocketAddr,
    rc::Rc,
    sync::Arc,
    time::Duration,
};

use firedoor_model::{
    broker::{Brokered, Intercepts, MAX_ROUTES, Said, Seen},
    remote::MAX_INSTRUCTIONS,
};
use hyper::{
    Method, Request, Response, StatusCode, body::Incoming, header::UPGRADE, http::request::Parts, server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::{TokioIo, TokioTimer};
use reqwest::{Client, redirect::Policy};
use tokio::{
    io::{AsyncBufRead, AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _, AsyncWrite},
    net::{TcpListener, TcpStream},
    sync::Semaphore,
    task::JoinSet,
};

use self::{
    answer::{Answer, passed, refused},
    asked::Asked,
    intercept::End,
    lane::Lane,
    notices::Notices,
};
use crate::{
    door::{Refusal, from_here, refusal},
    http, listener,
};

/// Most connections at once. Others wait in the system's queue.
const MAX_CONNECTIONS: usize = 256;

/// For the head of a request, and for a connection on which no other comes.
const HEAD: Duration = Duration::from_secs(60);

/// Longest head of a request, in bytes, and most headers of one.
const MAX_HEAD: usize = 64 << 10;
const MAX_HEADERS: usize = 100;

/// Methods that are passed on. TRACE would have the service repeat the secret.
const METHODS: [Method; 7] =
    [Method::GET, Method::HEAD, Method::POST, Method::PUT, Method::PATCH, Method::DELETE, Method::OPTIONS];

/// All that is put in for one server.
struct Broker {
    lanes: Vec<Lane>,
    client: Client,
    /// Where those are heard who were told an address.
    port: u16,
    /// For each lane whose connections are intercepted, in this order.
    ends: Vec<End>,
    notices: Arc<Notices>,
}

/// Where it listens. Only where there is something to be heard.
#[derive(Default)]
struct Listeners {
    told: Option<TcpListener>,
    led: Option<TcpListener>,
}

impl Listeners {
    /// The next connection, and whether the guardian has led it here.
    async fn accept(&self) -> (io::Result<(TcpStream, SocketAddr)>, bool) {
        async fn next(listener: Option<&TcpListener>) -> io::Result<(TcpStream, SocketAddr)> {
            match listener {
                Some(listener) => listener.accept().await,
                None => std::future::pending().await,
            }
        }
        tokio::select! {
            accepted = next(self.told.as_ref()) => (accepted, false),
            accepted = next(self.led.as_ref()) => (accepted, true),
        }
    }
}

/// Serves until stdin ends.
pub async fn serve(mut input: impl AsyncBufRead + Unpin) -> Result<(), String> {
    let (broker, listeners, listens) = match prepared(&mut input).await {
        Ok(ready) => ready,
        Err(why) => return say(&Said::Failed { why }),
    };
    say(&listens)?;
    let places = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    let mut connections = JoinSet::new();
    let mut end = Vec::new();
    loop {
        let next = async {
            let place = places.clone().acquire_owned().await.map_err(|e| e.to_string())?;
            Ok::<_, String>((place, listeners.accept().await))
        };
        let (place, (accepted, led)) = tokio::select! {
            next = next => next?,
            Some(_) = connections.join_next() => continue,
            // Nobody says anything more on it.
            _ = input.read_until(b'\n', &mut end) => return Ok(()),
        };
        match accepted {
            Ok((stream, theirs)) => {
                let broker = broker.clone();
                connections.spawn_local(async move {
                    converse(broker, stream, theirs, led).await;
                    drop(place);
                });
            }
            // Out of descriptors: some come back.
            Err(_) => tokio::time::sleep(Duration::from_millis(100)).await,
        }
    }
}

/// What is to be done, and where it is heard.
async fn prepared(input: &mut (impl AsyncBufRead + Unpin)) -> Result<(Rc<Broker>, Listeners, Said), String> {
    let mut line = Vec::new();
    let count = input.take(MAX_INSTRUCTIONS as u64).read_until(b'\n', &mut line).await;
    count.map_err(|e| format!("stdin cannot be read: {e}"))?;
    let all: Vec<Brokered> =
        serde_json::from_slice(&line).map_err(|_| "this program is started by firedoor-shim".to_owned())?;
    if all.is_empty() || all.len() > MAX_ROUTES {
        return Err("there is nothing to put in, or too much".into());
    }
    // Certificates are made before anything is heard, and what vouches for them is forgotten.
    let lanes = all.into_iter().map(Lane::new).collect::<Result<Vec<_>, _>>()?;
    let (intercepted, mut lanes): (Vec<Lane>, Vec<Lane>) = lanes.into_iter().partition(|lane| lane.route.intercept);
    let names: Vec<String> = intercepted.iter().map(|lane| lane.name().to_owned()).collect();
    let (mut listeners, mut listens) = (Listeners::default(), (None, None));
    if !lanes.is_empty() {
        let (listener, port) = listener()?;
        (listeners.told, listens.0) = (Some(listener), Some(port));
    }
    let ends = match names.is_empty() {
        true => Vec::new(),
        false => {
            let (ends, authority) = intercept::ends(&names)?;
            let (listener, port) = listener()?;
            (listeners.led, listens.1) = (Some(listener), Some(Intercepts { port, authority }));
            ends
        }
    };
    lanes.splice(..0, intercepted);
    let builder = http::builder().map_err(|e| e.to_string())?;
    let builder = builder.redirect(Policy::none()).referer(false).https_only(true);
    let client = http::built(builder).map_err(|e| e.to_string())?;
    let broker = Broker { lanes, client, port: listens.0.unwrap_or_default(), ends, notices: Arc::default() };
    Ok((Rc::new(broker), listeners, Said::Listens { port: listens.0, intercepts: listens.1 }))
}

fn listener() -> Result<(TcpListener, u16), String> {
    let listener = listener::bind(0).map_err(|e| format!("no port can be opened on this machine: {e}"))?;
    let port = listener.local_addr().map_err(|e| format!("the port is not known: {e}"))?.port();
    Ok((listener, port))
}

/// A line for the shim. There are few: they fit into the pipe, so nothing waits for them to be read.
fn say(said: &Said) -> Result<(), String> {
    let mut line = serde_json::to_vec(said).map_err(|e| e.to_string())?;
    line.push(b'\n');
    let mut out = std::io::stdout().lock();
    out.write_all(&line).and_then(|()| out.flush()).map_err(|e| format!("stdout cannot be used: {e}"))
}

async fn converse(broker: Rc<Broker>, mut stream: TcpStream, theirs: SocketAddr, led: bool) {
    if !theirs.ip().is_loopback() {
        return;
    }
    // A small request should not wait for another.
    let _ = stream.set_nodelay(true);
    if !led {
        return hear(broker, stream, None).await;
    }
    let Some(key) = intercept::key(&mut stream).await else { return };
    let found = broker.lanes.iter().zip(&broker.ends).position(|(lane, _)| lane.is_led_by(&key));
    let Some((at, lane, end)) = found.and_then(|at| Some((at, broker.lanes.get(at)?, broker.ends.get(at)?))) else {
        return;
    };
    match end.accept(stream).await {
        Ok(stream) => {
            hear(broker.clone(), stream, Some(at)).await;
            // Some programs look at the certificate only now, and say nothing.
            if !end.heard.get() {
                broker.notices.tell(lane, Seen::Distrusted, "a connection that it ended after the TLS handshake");
            }
        }
        Err(Some((seen, place))) => broker.notices.tell(lane, seen, &place),
        Err(None) => {}
    }
}

/// Answers the requests of a connection; `on` is the lane where it was intercepted.
async fn hear(broker: Rc<Broker>, stream: impl AsyncRead + AsyncWrite + Unpin + 'static, on: Option<usize>) {
    let service = service_fn(move |request| {
        let broker = broker.clone();
        async move { Ok::<_, Infallible>(broker.serve(request, on).await) }
    });
    let mut server = http1::Builder::new();
    server.timer(TokioTimer::new()).header_read_timeout(HEAD).max_buf_size(MAX_HEAD).max_headers(MAX_HEADERS);
    // Whoever breaks off has said what it wanted.
    let _ = server.serve_connection(TokioIo::new(stream), service).await;
}

impl Broker {
    async fn serve(&self, request: Request<Incoming>, on: Option<usize>) -> Response<Answer> {
        match self.pass_on(request, on).await {
            Ok(response) => response,
            Err(why) => refused(&why),
        }
    }

    /// The lane of a request to the address that the server was told.
    fn told(&self, head: &Parts) -> Result<&Lane, Refusal> {
        from_here(self.port, &head.uri, &head.headers)?;
        let lane = self.lanes.iter().find(|lane| lane.is_at(head.uri.path()));
        lane.ok_or(refusal(StatusCode::NOT_FOUND, "there is nothing here"))
    }

    /// The lane of a request on a connection that was intercepted.
    fn led(&self, head: &Parts, on: usize) -> Result<&Lane, Refusal> {
        let (Some(lane), Some(end)) = (self.lanes.get(on), self.ends.get(on)) else {
            return Err(refusal(StatusCode::NOT_FOUND, "there is nothing here"));
        };
        end.heard.set(true);
        if !lane.is_meant(&head.uri, &head.headers) {
            self.notices.tell(lane, Seen::Unnamed, "the Host of a request");
            let why = "the request is for another host than its connection";
            return Err(refusal(StatusCode::MISDIRECTED_REQUEST, why));
        }
        if head.headers.contains_key(UPGRADE) {
            self.notices.tell(lane, Seen::Unspoken, "a request for another protocol, such as WebSocket");
            let why = "Firedoor passes on HTTP/1.1 here, and no change to another protocol such as WebSocket";
            return Err(refusal(StatusCode::NOT_IMPLEMENTED, why));
        }
        Ok(lane)
    }

    /// Sends a request on to its service, with the secret in its place.
    async fn pass_on(&self, request: Request<Incoming>, on: Option<usize>) -> Result<Response<Answer>, Refusal> {
        let (head, body) = request.into_parts();
        let lane = match on {
            None => self.told(&head)?,
            Some(on) => self.led(&head, on)?,
        };
        if !METHODS.contains(&head.method) {
            return Err(refusal(StatusCode::METHOD_NOT_ALLOWED, "this method is not passed on"));
        }
        let notice = |(seen, place): (Seen, &'static str)| {
            self.notices.tell(lane, seen, place);
            refusal(
                StatusCode::FORBIDDEN,
                match seen {
                    Seen::Other => "Firedoor passes on only the credential of this server's entry here",
                    _ => "the placeholder of a credential stands where none belongs",
                },
            )
        };
        let headers = lane.headers(&head.headers).map_err(notice)?;
        let url = lane.url(&head.uri).map_err(notice)?;
        let url = url.ok_or(refusal(StatusCode::NOT_FOUND, "this lies outside of the service's address"))?;
        let asked = Asked::new(body, lane, self.notices.clone());
        let misplaced = asked.misplaced();
        let is_head = head.method == Method::HEAD;
        let sent = self.client.request(head.method, url.clone()).headers(headers).body(asked.into_body()).send().await;
        let response = sent.map_err(|_| match misplaced.get().is_some() {
            true => refusal(StatusCode::FORBIDDEN, "the placeholder of a credential stands where none belongs"),
            false => refusal(StatusCode::BAD_GATEWAY, "the service cannot be reached, or did not answer"),
        })?;
        passed(response, lane, &url, self.port, is_head, self.notices.clone())
    }
}
