//! `firedoor-remote --broker`: puts secrets in for a server that does not get them.
//!
//! It listens on this machine for that one server, whose address for its service begins with a random path of its own. What
//! the server sends there has a placeholder where its credential belongs; here the secret takes its place, and the request
//! goes on over TLS to the one host that the user has said. It is confined like every server: it reaches those hosts and
//! nothing else, and reads no file of the user's.
//!
//! Architecture invariants: a secret stands in one header of a request to its own host and nowhere else; no redirect is
//! followed; what comes back passes the mask.

mod answer;
mod asked;
mod lane;
mod mask;
mod notices;

use std::{
    convert::Infallible,
    io::Write as _,
    net::{Ipv4Addr, SocketAddr},
    rc::Rc,
    sync::Arc,
    time::Duration,
};

use firedoor_model::{
    broker::{Brokered, MAX_ROUTES, Said, Seen},
    remote::MAX_INSTRUCTIONS,
};
use hyper::{Method, Request, Response, StatusCode, body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use reqwest::{Client, redirect::Policy};
use tokio::{
    io::{AsyncBufRead, AsyncBufReadExt as _, AsyncReadExt as _},
    net::{TcpListener, TcpStream},
    sync::Semaphore,
    task::JoinSet,
};

use self::{
    answer::{Answer, passed, refused},
    asked::Asked,
    lane::Lane,
    notices::Notices,
};
use crate::{
    endpoint::door::{Refusal, from_here, refusal},
    http,
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
    port: u16,
    notices: Arc<Notices>,
}

/// Serves until stdin ends.
pub async fn serve(mut input: impl AsyncBufRead + Unpin) -> Result<(), String> {
    let (broker, listener) = match prepared(&mut input).await {
        Ok(ready) => ready,
        Err(why) => return say(&Said::Failed { why }),
    };
    say(&Said::Listens { port: broker.port })?;
    let places = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    let mut connections = JoinSet::new();
    let mut end = Vec::new();
    loop {
        let next = async {
            let place = places.clone().acquire_owned().await.map_err(|e| e.to_string())?;
            Ok::<_, String>((place, listener.accept().await))
        };
        let (place, accepted) = tokio::select! {
            next = next => next?,
            Some(_) = connections.join_next() => continue,
            // Nobody says anything more on it.
            _ = input.read_until(b'\n', &mut end) => return Ok(()),
        };
        match accepted {
            Ok((stream, theirs)) => {
                let broker = broker.clone();
                connections.spawn_local(async move {
                    converse(broker, stream, theirs).await;
                    drop(place);
                });
            }
            // Out of descriptors: some come back.
            Err(_) => tokio::time::sleep(Duration::from_millis(100)).await,
        }
    }
}

/// What is to be done, and where it is heard.
async fn prepared(input: &mut (impl AsyncBufRead + Unpin)) -> Result<(Rc<Broker>, TcpListener), String> {
    let mut line = Vec::new();
    let count = input.take(MAX_INSTRUCTIONS as u64).read_until(b'\n', &mut line).await;
    count.map_err(|e| format!("stdin cannot be read: {e}"))?;
    let all: Vec<Brokered> =
        serde_json::from_slice(&line).map_err(|_| "this program is started by firedoor-shim".to_owned())?;
    if all.is_empty() || all.len() > MAX_ROUTES {
        return Err("there is nothing to put in, or too much".into());
    }
    let lanes = all.into_iter().map(Lane::new).collect::<Result<_, _>>()?;
    let builder = http::builder().map_err(|e| e.to_string())?;
    let builder = builder.redirect(Policy::none()).referer(false).https_only(true);
    let client = http::built(builder).map_err(|e| e.to_string())?;
    let bound = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await;
    let listener = bound.map_err(|e| format!("no port can be opened on this machine: {e}"))?;
    let port = listener.local_addr().map_err(|e| format!("the port is not known: {e}"))?.port();
    Ok((Rc::new(Broker { lanes, client, port, notices: Arc::default() }), listener))
}

/// A line for the shim. There are few: they fit into the pipe, so nothing waits for them to be read.
fn say(said: &Said) -> Result<(), String> {
    let mut line = serde_json::to_vec(said).map_err(|e| e.to_string())?;
    line.push(b'\n');
    let mut out = std::io::stdout().lock();
    out.write_all(&line).and_then(|()| out.flush()).map_err(|e| format!("stdout cannot be used: {e}"))
}

async fn converse(broker: Rc<Broker>, stream: TcpStream, theirs: SocketAddr) {
    if !theirs.ip().is_loopback() {
        return;
    }
    // A small request should not wait for another.
    let _ = stream.set_nodelay(true);
    let service = service_fn(move |request| {
        let broker = broker.clone();
        async move { Ok::<_, Infallible>(broker.serve(request).await) }
    });
    let mut server = http1::Builder::new();
    server.timer(TokioTimer::new()).header_read_timeout(HEAD).max_buf_size(MAX_HEAD).max_headers(MAX_HEADERS);
    // Whoever breaks off has said what it wanted.
    let _ = server.serve_connection(TokioIo::new(stream), service).await;
}

impl Broker {
    async fn serve(&self, request: Request<Incoming>) -> Response<Answer> {
        match self.pass_on(request).await {
            Ok(response) => response,
            Err(why) => refused(&why),
        }
    }

    /// Sends a request on to its service, with the secret in its place.
    async fn pass_on(&self, request: Request<Incoming>) -> Result<Response<Answer>, Refusal> {
        let (head, body) = request.into_parts();
        from_here(self.port, &head.uri, &head.headers)?;
        let lane = self.lanes.iter().find(|lane| lane.is_at(head.uri.path()));
        let lane = lane.ok_or(refusal(StatusCode::NOT_FOUND, "there is nothing here"))?;
        if !METHODS.contains(&head.method) {
            return Err(refusal(StatusCode::METHOD_NOT_ALLOWED, "this method is not passed on"));
        }
        let notice = |(seen, place): (Seen, &'static str)| {
            self.notices.tell(lane, seen, place);
            refusal(
                StatusCode::FORBIDDEN,
                match seen {
                    Seen::Other => "Firedoor passes on only the credential of this server's entry here",
                    Seen::Misplaced | Seen::Echoed => "the placeholder of a credential stands where none belongs",
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
