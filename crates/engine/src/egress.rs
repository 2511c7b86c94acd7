//! The proxy through which install steps reach their registry: HTTP CONNECT (RFC 9110 §9.3.6) on a loopback port, one
//! token per step, judged by host name and port. Other users' programs are not heard: they could take all of its connections.

use std::{
    cell::RefCell,
    collections::HashMap,
    io,
    net::{Ipv4Addr, SocketAddr, SocketAddrV4},
    rc::Rc,
    sync::Arc,
    time::Duration,
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, copy_bidirectional},
    net::{TcpListener, TcpStream},
    sync::Semaphore,
    time::timeout,
};

use crate::login::is_ours;

/// Longest request head, in bytes.
const MAX_HEAD: usize = 16 << 10;
/// Most connections at once.
const MAX_CONNECTIONS: usize = 128;
/// For the request head, the look-up and the connection.
const SETUP_LIMIT: Duration = Duration::from_secs(30);
/// For a whole connection: an install step is over long before.
const LIFE_LIMIT: Duration = Duration::from_secs(30 * 60);

/// The running proxy.
pub struct Egress {
    address: SocketAddrV4,
    tokens: RefCell<HashMap<String, Vec<Target>>>,
}

/// A host and port that may be reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// Lower-case host name.
    pub host: String,
    /// TCP port.
    pub port: u16,
}

/// Permission to reach some targets. Ends when dropped.
pub struct Pass {
    egress: Rc<Egress>,
    token: String,
}

impl Drop for Pass {
    fn drop(&mut self) {
        self.egress.tokens.borrow_mut().remove(&self.token);
    }
}

impl Egress {
    /// Listens on a free loopback port. Needs a running tokio `LocalSet`.
    pub async fn start() -> io::Result<Rc<Self>> {
        Self::start_for(is_ours).await
    }

    /// Serves only those whose address, beside our own, `is_ours`.
    async fn start_for(is_ours: impl Fn(SocketAddr, SocketAddr) -> bool + 'static) -> io::Result<Rc<Self>> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let SocketAddr::V4(address) = listener.local_addr()? else {
            return Err(io::Error::other("the proxy did not get an IPv4 address"));
        };
        let egress = Rc::new(Self { address, tokens: RefCell::default() });
        let serving = egress.clone();
        tokio::task::spawn_local(async move {
            let slots = Arc::new(Semaphore::new(MAX_CONNECTIONS));
            loop {
                match listener.accept().await {
                    Ok((_, peer)) if !is_ours(peer, address.into()) => {}
                    Ok((client, _)) => {
                        let Ok(slot) = slots.clone().acquire_owned().await else { return };
                        let egress = serving.clone();
                        tokio::task::spawn_local(async move {
                            egress.serve(client).await;
                            drop(slot);
                        });
                    }
                    // Out of descriptors: wait for some to come back.
                    Err(_) => tokio::time::sleep(Duration::from_millis(100)).await,
                }
            }
        });
        Ok(egress)
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddrV4 {
        self.address
    }

    /// A token of 128 random bits. It is good for nothing until [`Egress::admit`].
    pub fn token() -> Result<String, getrandom::Error> {
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes)?;
        Ok(data_encoding::HEXLOWER.encode(&bytes))
    }

    /// Lets the bearer of `token` reach `targets`.
    pub fn admit(self: &Rc<Self>, token: String, targets: Vec<Target>) -> Pass {
        self.tokens.borrow_mut().insert(token.clone(), targets);
        Pass { egress: self.clone(), token }
    }

    async fn serve(&self, mut client: TcpStream) {
        let opened = timeout(SETUP_LIMIT, self.open(&mut client)).await;
        match opened {
            Ok(Ok(mut upstream)) => {
                // Both ends may fail at any time; the client of the proxy sees its connection close.
                let _ = timeout(LIFE_LIMIT, copy_bidirectional(&mut client, &mut upstream)).await;
            }
            Ok(Err(refusal)) => {
                let answer = format!("HTTP/1.1 {}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n", refusal.status());
                let _ = client.write_all(answer.as_bytes()).await;
            }
            Err(_) => {}
        }
    }

    /// Reads the request and connects.
    async fn open(&self, client: &mut TcpStream) -> Result<TcpStream, Refusal> {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            // One byte at a time past the head would belong to the tunnel; heads are short and few.
            let byte = client.read_u8().await.map_err(|_| Refusal::Malformed)?;
            head.push(byte);
            if head.len() > MAX_HEAD {
                return Err(Refusal::Malformed);
            }
        }
        let target = self.judge(&head)?;
        let upstream =
            TcpStream::connect((target.host.as_str(), target.port)).await.map_err(|_| Refusal::Unreachable)?;
        client.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n").await.map_err(|_| Refusal::Unreachable)?;
        Ok(upstream)
    }

    fn judge(&self, head: &[u8]) -> Result<Target, Refusal> {
        let mut headers = [httparse::EMPTY_HEADER; 64];
        let mut request = httparse::Request::new(&mut headers);
        if !matches!(request.parse(head), Ok(httparse::Status::Complete(_))) {
            return Err(Refusal::Malformed);
        }
        if request.method != Some("CONNECT") {
            return Err(Refusal::Method);
        }
        let (host, port) = request.path.and_then(|p| p.rsplit_once(':')).ok_or(Refusal::Malformed)?;
        let target = Target {
            host: host.trim_end_matches('.').to_ascii_lowercase(),
            port: port.parse().map_err(|_| Refusal::Malformed)?,
        };
        let mut credentials = request.headers.iter().filter(|h| h.name.eq_ignore_ascii_case("proxy-authorization"));
        let value = credentials.next().map(|h| h.value).ok_or(Refusal::Unauthorized)?;
        if credentials.next().is_some() {
            return Err(Refusal::Malformed);
        }
        let token = basic_password(value).ok_or(Refusal::Unauthorized)?;
        let tokens = self.tokens.borrow();
        let targets = tokens.get(&token).ok_or(Refusal::Unauthorized)?;
        if targets.contains(&target) { Ok(target) } else { Err(Refusal::Forbidden) }
    }
}

/// The password in `Basic base64(user:password)` (RFC 7617).
fn basic_password(value: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(value).ok()?;
    let (scheme, encoded) = text.split_once(' ')?;
    if !scheme.eq_ignore_ascii_case("basic") {
        return None;
    }
    let plain = String::from_utf8(data_encoding::BASE64.decode(encoded.trim().as_bytes()).ok()?).ok()?;
    plain.split_once(':').map(|(_, password)| password.to_owned())
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Refusal {
    Malformed,
    Method,
    Unauthorized,
    Forbidden,
    Unreachable,
}

impl Refusal {
    fn status(self) -> &'static str {
        match self {
            Self::Malformed => "400 Bad Request",
            Self::Method => "405 Method Not Allowed",
            Self::Unauthorized => "407 Proxy Authentication Required\r\nProxy-Authenticate: Basic realm=\"firedoor\"",
            Self::Forbidden => "403 Forbidden",
            Self::Unreachable => "502 Bad Gateway",
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use tokio::{net::TcpSocket, task::LocalSet};

    use super::*;

    async fn ask(egress: &Egress, request: String) -> String {
        let mut socket = TcpStream::connect(egress.address()).await.unwrap();
        socket.write_all(request.as_bytes()).await.unwrap();
        let mut text = String::new();
        socket.read_to_string(&mut text).await.unwrap();
        text
    }

    #[tokio::test]
    async fn other_users_take_no_connections() {
        LocalSet::new()
            .run_until(async {
                let others: Rc<RefCell<HashSet<SocketAddr>>> = Rc::default();
                let known = others.clone();
                let egress = Egress::start_for(move |peer, _| !known.borrow().contains(&peer)).await.unwrap();
                let mut held = Vec::new();
                for _ in 0..MAX_CONNECTIONS {
                    let socket = TcpSocket::new_v4().unwrap();
                    socket.bind((Ipv4Addr::LOCALHOST, 0).into()).unwrap();
                    others.borrow_mut().insert(socket.local_addr().unwrap());
                    held.push(socket.connect(egress.address().into()).await.unwrap());
                }
                let answer = timeout(SETUP_LIMIT / 2, ask(&egress, "\r\n\r\n".to_owned())).await;
                assert!(answer.unwrap().starts_with("HTTP/1.1 400"));
                for mut socket in held {
                    assert!(matches!(socket.read(&mut [0]).await, Ok(0) | Err(_)));
                }
            })
            .await;
    }

    #[tokio::test]
    async fn only_the_granted_host_is_reached_and_only_with_the_token() {
        LocalSet::new()
            .run_until(async {
                let server = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
                let port = server.local_addr().unwrap().port();
                tokio::task::spawn_local(async move {
                    while let Ok((mut socket, _)) = server.accept().await {
                        socket.write_all(b"hello").await.unwrap();
                    }
                });
                let egress = Egress::start().await.unwrap();
                let token = Egress::token().unwrap();
                let pass = egress.admit(token.clone(), vec![Target { host: "127.0.0.1".into(), port }]);
                let basic = |token: &str| data_encoding::BASE64.encode(format!("x:{token}").as_bytes());
                let request = |method: &str, to: &str, token: &str| {
                    format!("{method} {to} HTTP/1.1\r\nProxy-Authorization: Basic {}\r\n\r\n", basic(token))
                };
                let allowed = format!("127.0.0.1:{port}");
                for (request, want) in [
                    (request("CONNECT", &allowed, &token), "HTTP/1.1 200"),
                    (request("CONNECT", &allowed, "wrong"), "HTTP/1.1 407"),
                    (request("CONNECT", &format!("localhost:{port}"), &token), "HTTP/1.1 403"),
                    (request("CONNECT", "127.0.0.1:1", &token), "HTTP/1.1 403"),
                    (request("GET", "http://127.0.0.1/", &token), "HTTP/1.1 405"),
                    (format!("CONNECT {allowed} HTTP/1.1\r\n\r\n"), "HTTP/1.1 407"),
                    ("\r\n\r\n".to_owned(), "HTTP/1.1 400"),
                ] {
                    let answer = ask(&egress, request.clone()).await;
                    assert!(answer.starts_with(want), "{request:?} gave {answer:?}");
                    assert_eq!(answer.ends_with("hello"), want.ends_with("200"));
                }
                drop(pass);
                assert!(ask(&egress, request("CONNECT", &allowed, &token)).await.starts_with("HTTP/1.1 407"));
            })
            .await;
    }
}
