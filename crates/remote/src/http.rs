//! The HTTP client: one origin, the user's headers, certificates of the system.

use std::{cell::RefCell, error::Error as _, path::Path, time::Duration};

use bytes::Bytes;
use firedoor_model::remote::Instructions;
use reqwest::{
    Certificate, Client, ClientBuilder, Method, Response, Url,
    header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue},
    redirect::{Attempt, Policy},
};

const JSON: HeaderValue = HeaderValue::from_static("application/json");
const BOTH: HeaderValue = HeaderValue::from_static("application/json, text/event-stream");
const EVENTS: HeaderValue = HeaderValue::from_static("text/event-stream");

/// For a connection with its TLS handshake.
const CONNECT: Duration = Duration::from_secs(30);
/// A connection that carries nothing is looked at this often: a laptop that slept has lost it.
const KEEP_ALIVE: Duration = Duration::from_secs(30);
/// A server that redirects within its origin does so once.
const MAX_REDIRECTS: usize = 3;
/// Largest file of certificates.
const MAX_CERTIFICATES: u64 = 4 << 20;

/// How rustls says that a certificate comes from somebody who is not trusted, and what to do then.
const UNKNOWN_AUTHORITY: &str = "UnknownIssuer";
const TRUST: &str = "; nobody that this machine trusts vouches for that server. If it is your company's, have NODE_EXTRA_CA_CERTS name \
                     the file with its authority, in the environment of the client";

/// Headers that the protocol sets. `mcp-` stands for all that begin so.
const RESERVED: [&str; 13] = [
    "accept",
    "connection",
    "content-encoding",
    "content-length",
    "content-type",
    "expect",
    "host",
    "keep-alive",
    "last-event-id",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// The server cannot be spoken to as the entry says.
#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    /// The address. It is not shown: it may hold a secret.
    #[error("the server's address is no http or https address: correct it in the client's configuration")]
    Url,
    /// A header.
    #[error("the header {name:?} cannot be sent: {why}; correct it in the client's configuration")]
    Header {
        /// Its name.
        name: String,
        /// What is wrong.
        why: &'static str,
    },
    /// A file of certificates.
    #[error("the certificates of {variable} cannot be used: {why}")]
    Certificates {
        /// Which variable names the file.
        variable: &'static str,
        /// What is wrong.
        why: String,
    },
    /// TLS.
    #[error("TLS cannot be set up: {0}")]
    Tls(String),
}

/// A request that got no answer.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct HttpError(String);

/// The client of one server.
pub struct Http {
    client: Client,
    url: Url,
    headers: RefCell<HeaderMap>,
}

impl Http {
    /// Sets it up. Proxies are those of the environment (`HTTPS_PROXY`, `HTTP_PROXY`, `ALL_PROXY`, `NO_PROXY`), roots of
    /// trust those of the system, or on Linux of `SSL_CERT_FILE` and `SSL_CERT_DIR` (rustls-platform-verifier, which asks other
    /// systems themselves), and those of `NODE_EXTRA_CA_CERTS` as well.
    pub fn new(instructions: &Instructions) -> Result<Self, SetupError> {
        let url = Url::parse(&instructions.url).map_err(|_| SetupError::Url)?;
        if !matches!(url.scheme(), "http" | "https") || !url.has_host() {
            return Err(SetupError::Url);
        }
        let mut headers = HeaderMap::new();
        for (name, value) in &instructions.headers {
            let error = |why| SetupError::Header { name: name.clone(), why };
            let parsed = HeaderName::try_from(name.as_str()).map_err(|_| error("that is no header's name"))?;
            if RESERVED.contains(&parsed.as_str()) || parsed.as_str().starts_with("mcp-") {
                return Err(error("the protocol sets it"));
            }
            let mut value =
                HeaderValue::from_str(value).map_err(|_| error("its value has a line break or the like"))?;
            value.set_sensitive(true);
            headers.insert(parsed, value);
        }
        let origin = url.origin();
        let same_origin = Policy::custom(move |attempt: Attempt<'_>| {
            // 307 and 308 repeat the request as it was; the others would turn it into another (RFC 9110 §15.4).
            let repeats = matches!(attempt.status().as_u16(), 307 | 308);
            if repeats && attempt.url().origin() == origin && attempt.previous().len() <= MAX_REDIRECTS {
                attempt.follow()
            } else {
                attempt.stop()
            }
        });
        let client = built(builder()?.redirect(same_origin))?;
        Ok(Self { client, url, headers: RefCell::new(headers) })
    }

    /// What shows who we are.
    pub fn authorization(&self) -> Option<HeaderValue> {
        self.headers.borrow().get(AUTHORIZATION).cloned()
    }

    /// Takes another one for it.
    pub fn authorize(&self, value: HeaderValue) {
        self.headers.borrow_mut().insert(AUTHORIZATION, value);
    }

    /// The server's address.
    pub fn url(&self) -> &Url {
        &self.url
    }

    /// Sends a message.
    pub async fn post(&self, to: &Url, body: Bytes, mut headers: HeaderMap) -> Result<Response, HttpError> {
        headers.insert(CONTENT_TYPE, JSON);
        headers.insert(ACCEPT, BOTH);
        self.send(Method::POST, to, headers, Some(body)).await
    }

    /// Opens a stream of events.
    pub async fn listen(&self, mut headers: HeaderMap) -> Result<Response, HttpError> {
        headers.insert(ACCEPT, EVENTS);
        self.send(Method::GET, &self.url, headers, None).await
    }

    /// Ends the server's session.
    pub async fn delete(&self, headers: HeaderMap) -> Result<Response, HttpError> {
        self.send(Method::DELETE, &self.url, headers, None).await
    }

    async fn send(
        &self,
        method: Method,
        to: &Url,
        headers: HeaderMap,
        body: Option<Bytes>,
    ) -> Result<Response, HttpError> {
        let own = self.headers.borrow().clone();
        let mut request = self.client.request(method, to.clone()).headers(own).headers(headers);
        if let Some(body) = body {
            request = request.body(body);
        }
        request.send().await.map_err(|e| {
            let what = if e.is_connect() { "cannot be reached" } else { "did not answer" };
            let why = reason(&e);
            let hint = if why.contains(UNKNOWN_AUTHORITY) { TRUST } else { "" };
            HttpError(format!("{} {what}: {why}{hint}", place(to)))
        })
    }
}

/// A client with the environment's proxies and the system's roots of trust.
pub fn builder() -> Result<ClientBuilder, SetupError> {
    // It fails when there is one already, which is as good.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let mut builder = Client::builder()
        .connect_timeout(CONNECT)
        .tcp_keepalive(KEEP_ALIVE)
        .tcp_nodelay(true)
        .user_agent(concat!("firedoor/", env!("CARGO_PKG_VERSION")));
    let extra = "NODE_EXTRA_CA_CERTS";
    if let Some(path) = std::env::var_os(extra).filter(|p| !p.is_empty()) {
        let error = |why| SetupError::Certificates { variable: extra, why };
        builder = builder.tls_certs_merge(certificates(Path::new(&path)).map_err(error)?);
    }
    Ok(builder)
}

/// The client itself.
pub fn built(builder: ClientBuilder) -> Result<Client, SetupError> {
    builder.build().map_err(|e| SetupError::Tls(reason(&e)))
}

/// Host and port of an address, without what may be a secret in it.
pub fn place(url: &Url) -> String {
    let port = url.port().map(|p| format!(":{p}")).unwrap_or_default();
    format!("{}://{}{port}", url.scheme(), url.host_str().unwrap_or_default())
}

/// Why something failed, to the first cause, without addresses.
pub fn reason(error: &reqwest::Error) -> String {
    let mut cause = error.source();
    let mut deepest = None;
    while let Some(inner) = cause {
        deepest = Some(inner.to_string());
        cause = inner.source();
    }
    deepest.unwrap_or_else(|| if error.is_timeout() { "it took too long".into() } else { "the request failed".into() })
}

fn certificates(path: &Path) -> Result<Vec<Certificate>, String> {
    let meta = std::fs::metadata(path).map_err(|e| e.to_string())?;
    if !meta.is_file() || meta.len() > MAX_CERTIFICATES {
        return Err("it is no file of at most 4 MiB".into());
    }
    let text = std::fs::read(path).map_err(|e| e.to_string())?;
    Certificate::from_pem_bundle(&text).map_err(|e| reason(&e))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(url: &str, headers: &[(&str, &str)]) -> Result<String, String> {
        let headers = headers.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).collect();
        let instructions = Instructions {
            url: url.into(),
            transport: Default::default(),
            headers,
            max_message: 1,
            entry: "a/b/c".parse().unwrap(),
            signed_in: false,
            at_endpoint: false,
        };
        Http::new(&instructions).map(|h| place(h.url())).map_err(|e| e.to_string())
    }

    #[test]
    fn what_an_entry_may_say() {
        assert_eq!(check("https://u:p@a.example/mcp?key=1", &[("X-Key", "1")]).unwrap(), "https://a.example");
        assert_eq!(check("http://[::1]:8080/", &[("authorization", "Bearer x")]).unwrap(), "http://[::1]:8080");
        for url in ["", "a.example", "file:///etc/passwd", "ws://a.example/", "https://"] {
            assert!(check(url, &[]).is_err(), "{url}");
        }
        for (name, value) in
            [("Host", "b"), ("mcp-session-id", "1"), ("Mcp-Name", "1"), ("a b", "1"), ("x", "1\r\ny: 2")]
        {
            let error = check("https://a.example/", &[(name, value)]).unwrap_err();
            assert!(error.contains(name) && !error.contains("\r\n"), "{error}");
        }
    }
}
