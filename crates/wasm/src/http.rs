//! `wasi:http` for preview 2 programs: requests that go out, over HTTP/1.1, each on a connection of its own.
//!
//! A connection is one of this process, made by name with the system's resolver, as `wasi:sockets` makes them. So the
//! sandbox around us judges it as every server's: by name, port and address, with a question where somebody can be asked.
//! Nothing here knows which hosts are granted. What is here are bounds on what a host, or the program, can use up.

mod body;
mod failure;

use std::{
    pin::Pin,
    sync::{Arc, OnceLock},
    time::Duration,
};

use http::{Request, Response, Uri, header::HeaderName, uri::Scheme};
use http_body_util::BodyExt as _;
use hyper::client::conn::http1;
use rustls::{ClientConfig, pki_types::ServerName};
use rustls_platform_verifier::BuilderVerifierExt as _;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpStream,
    sync::Semaphore,
    time::timeout,
};
use tokio_rustls::TlsConnector;
use wasmtime_wasi::runtime::{AbortOnDropJoinHandle, spawn};
use wasmtime_wasi_http::{
    DEFAULT_FORBIDDEN_HEADERS, Error, ForbiddenHeaderFilter, RequestOptions, WasiBody, WasiHttpCtx, WasiHttpHooks,
    io::TokioIo, p2::bindings::http::types::ErrorCode,
};

use body::Bounded;

/// Most connections at once. A browser has 6 for each host; the sandbox bounds how many are made in a minute.
const MAX_CONNECTIONS: usize = 64;
/// Longest time until a connection stands, TLS included. A person who is asked about a host has a minute, and the connection
/// waits for that answer here.
const CONNECT: Duration = Duration::from_secs(90);
/// Longest time until a response begins, and between two of its parts: models and event streams take theirs.
const SILENCE: Duration = Duration::from_secs(600);
/// Most bytes of a response's head, and of what is read ahead of the program.
const MAX_HEAD: usize = 256 << 10;
/// Most bytes of the body of a request or a response. Bodies are passed on in pieces and never held whole.
const MAX_BODY: u64 = 1 << 30;
/// Most bytes of a program's header fields, in memory.
const MAX_FIELDS: usize = 64 << 10;
/// Most bytes of a piece of a request's body.
const MAX_PIECE: usize = 64 << 10;

/// What the fields of requests may take up.
pub fn context() -> WasiHttpCtx {
    let mut context = WasiHttpCtx::new();
    context.set_field_size_limit(MAX_FIELDS);
    context
}

/// Sends what one program asks for.
pub struct Requests {
    /// What is left of the connections; `None` where the program has no network.
    connections: Option<Arc<Semaphore>>,
    limits: Limits,
}

/// What one exchange may take.
#[derive(Clone, Copy)]
struct Limits {
    connect: Duration,
    silence: Duration,
    body: u64,
}

impl Requests {
    /// Without `network` every request is refused.
    pub fn new(network: bool) -> Self {
        let connections = network.then(|| Arc::new(Semaphore::new(MAX_CONNECTIONS)));
        Self { connections, limits: Limits { connect: CONNECT, silence: SILENCE, body: MAX_BODY } }
    }
}

/// What drives a connection to its end.
type Driver = Box<dyn Future<Output = Result<(), Error>> + Send>;
/// A response, and what drives its connection.
type Sent = Box<dyn Future<Output = Result<(Response<WasiBody>, Driver), Error>> + Send>;

impl WasiHttpHooks for Requests {
    fn forbidden_header_filter(&mut self) -> ForbiddenHeaderFilter {
        Arc::new(|name: &HeaderName| DEFAULT_FORBIDDEN_HEADERS.contains(name))
    }

    /// The last argument tells of errors of the response's body to preview 3 programs, which are not run.
    fn send_request(&mut self, request: Request<WasiBody>, options: Option<RequestOptions>, _: Driver) -> Sent {
        let connections = self.connections.clone();
        let limits = self.limits;
        Box::new(async move {
            let connections = connections.ok_or(Error::HttpRequestDenied)?;
            let permit = connections.try_acquire_owned().map_err(|_| Error::ConnectionLimitReached)?;
            let (response, connection) = exchange(request, options.unwrap_or_default(), limits).await?;
            let driver: Driver = Box::new(async move {
                let ended = connection.await;
                drop(permit);
                ended.map_err(Error::Hyper)
            });
            Ok((response, driver))
        })
    }

    fn p2_outgoing_body_chunk_size(&mut self) -> usize {
        MAX_PIECE
    }

    fn p2_error_from_hyper(&mut self, error: &hyper::Error) -> ErrorCode {
        failure::of_http(error)
    }

    fn p2_error_from_connect(&mut self, error: &std::io::Error) -> ErrorCode {
        failure::of_connect(error)
    }

    fn p2_error_from_tls(&mut self, error: &std::io::Error) -> ErrorCode {
        failure::of_tls(error)
    }
}

/// What drives a connection, beside the exchange.
type Connection = AbortOnDropJoinHandle<hyper::Result<()>>;

/// One request and the head of its response. The program may ask for less time than there is, not for more.
async fn exchange(
    mut request: Request<WasiBody>,
    options: RequestOptions,
    limits: Limits,
) -> Result<(Response<WasiBody>, Connection), Error> {
    let at_most = |asked: Option<Duration>, most: Duration| asked.map_or(most, |asked| asked.min(most));
    let connecting = connect(request.uri());
    let stream = timeout(at_most(options.connect_timeout, limits.connect), connecting);
    let stream = stream.await.map_err(|_| Error::ConnectionTimeout)??;
    let (mut sender, connection) = http1::Builder::new().max_buf_size(MAX_HEAD).handshake(TokioIo::new(stream)).await?;
    let connection = spawn(connection);
    // Only a proxy is told scheme and host in the first line.
    let path = request.uri().path_and_query().map_or("/", |path| path.as_str());
    *request.uri_mut() = path.parse().map_err(|_| Error::HttpRequestUriInvalid)?;
    let request = request.map(|body| Bounded::request(body, limits.body));
    let answered = timeout(at_most(options.first_byte_timeout, limits.silence), sender.send_request(request));
    let response = answered.await.map_err(|_| Error::ConnectionReadTimeout)??;
    let silence = at_most(options.between_bytes_timeout, limits.silence);
    let response =
        response.map(|body| Bounded::response(body.map_err(Error::Hyper), limits.body, silence).boxed_unsync());
    Ok((response, connection))
}

/// A connection, with TLS or without.
trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

async fn connect(uri: &Uri) -> Result<Pin<Box<dyn Stream>>, Error> {
    let tls = uri.scheme() == Some(&Scheme::HTTPS);
    let (host, port) = place(uri, if tls { 443 } else { 80 }).ok_or(Error::HttpRequestUriInvalid)?;
    let stream = TcpStream::connect((host, port)).await.map_err(Error::Connect)?;
    stream.set_nodelay(true).map_err(Error::Connect)?;
    if !tls {
        return Ok(Box::pin(stream));
    }
    let name = ServerName::try_from(host.to_owned()).map_err(|_| Error::HttpRequestUriInvalid)?;
    let stream = TlsConnector::from(trust()?).connect(name, stream).await.map_err(Error::Tls)?;
    Ok(Box::pin(stream))
}

/// Host and port of an address. `None` where it names a user, or a port that is none.
fn place(uri: &Uri, usual: u16) -> Option<(&str, u16)> {
    let host = uri.host().filter(|host| !host.is_empty())?;
    let port = match uri.authority()?.as_str().strip_prefix(host)? {
        "" => usual,
        port => port.strip_prefix(':')?.parse().ok().filter(|port| *port != 0)?,
    };
    Some((host.strip_prefix('[').and_then(|h| h.strip_suffix(']')).unwrap_or(host), port))
}

/// TLS with the roots that this machine trusts, read at the first request that needs them.
fn trust() -> Result<Arc<ClientConfig>, Error> {
    static TRUST: OnceLock<Option<Arc<ClientConfig>>> = OnceLock::new();
    let made = || {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().ok()?;
        let mut config = builder.with_platform_verifier().ok()?.with_no_client_auth();
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Some(Arc::new(config))
    };
    TRUST.get_or_init(made).clone().ok_or(Error::ConfigurationError)
}

#[cfg(test)]
mod tests;
