//! Where the browser comes back to when the user has logged in: an address of this machine, for one answer. On another machine
//! it ends there without one, and the user may paste that address here.
//!
//! Every program of this machine can connect to it. Those of other users are not heard: what the browser is sent to can be read
//! in its command line, and whoever were faster than the browser could log the user in as somebody else.

#[cfg_attr(unix, path = "callback/unix.rs")]
#[cfg_attr(windows, path = "callback/windows.rs")]
mod system;

use std::{
    io::{self, Read as _, Write as _},
    net::{SocketAddr, TcpListener, TcpStream},
    time::{Duration, Instant},
};

use self::system::Input;
use firedoor_ipc::tcp;

/// For one request of the browser, to its end.
const BROWSER: Duration = Duration::from_secs(5);

/// Longest request that is read: what comes behind the header is of no use.
const MAX_REQUEST: usize = 16 << 10;

/// Connections that are read at once. Browsers open more than they use.
const MAX_OPEN: usize = 16;

/// Where the browser comes back to.
const PATH: &str = "/callback";

/// The address, as long as somebody listens there.
pub struct Callback {
    listener: TcpListener,
    address: SocketAddr,
    open: Vec<Caller>,
}

/// A connection whose request is not there yet.
struct Caller {
    stream: TcpStream,
    heard: Vec<u8>,
    until: Instant,
}

/// The browser, which waits for an answer.
pub struct Browser(TcpStream);

/// What comes first.
pub enum Came {
    /// The browser, with the query of its request.
    Browser(String, Browser),
    /// A line of the user's.
    Line(String),
}

/// What the user types, a line at a time.
pub struct Typed {
    input: Input,
    heard: Vec<u8>,
    over: bool,
}

impl Typed {
    /// From what the user types into, which is this process' own input: a terminal, or a pipe.
    pub fn new() -> io::Result<Self> {
        Ok(Self { input: Input::own()?, heard: Vec::new(), over: false })
    }

    /// The next line of what was typed so far. Reads only once there is something.
    fn line(&mut self, ready: bool) -> Option<String> {
        if ready {
            let mut chunk = [0; 4096];
            match self.input.read(&mut chunk) {
                Ok(0) => self.over = true,
                Ok(count) => self.heard.extend(chunk.get(..count).unwrap_or_default()),
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => self.over = true,
            }
        }
        let end = self.heard.iter().position(|b| *b == b'\n');
        if end.is_none() && self.heard.len() > MAX_REQUEST {
            self.heard.clear();
        }
        let line: Vec<u8> = self.heard.drain(..=end?).collect();
        Some(String::from_utf8_lossy(&line).trim().to_owned())
    }
}

/// What a request says so far.
#[derive(Debug, PartialEq, Eq)]
enum Said {
    /// More has to come.
    Unfinished,
    /// The query of a request for our address, by that name and no other.
    Query(String),
    /// It is not what is waited for.
    Else,
}

/// Whether the socket at the other end is one of the user's programs, or of root, who can do all that anyway. Where the system
/// is not asked, it is everybody's that knows the address: what comes is still matched with what was sent to the browser.
pub fn is_ours(peer: SocketAddr, own: SocketAddr) -> bool {
    match tcp::other_end(peer, own) {
        Ok(end) => end.is_ours() || end.uid == 0,
        Err(e) => e.kind() == io::ErrorKind::Unsupported,
    }
}

impl Callback {
    /// Listens from now on: nobody else can have the address then.
    pub fn listen() -> io::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0))?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        Ok(Self { listener, address, open: Vec::new() })
    }

    /// What the issuer is told.
    pub fn redirect(&self) -> String {
        format!("http://{}{PATH}", self.address)
    }

    /// The query of an address that the browser ended at elsewhere, if it is this one.
    pub fn pasted(&self, address: &str) -> Option<String> {
        let query = address.strip_prefix(&self.redirect())?.strip_prefix('?')?;
        let query = query.split('#').next()?;
        let good = !query.is_empty() && query.len() <= MAX_REQUEST && query.bytes().all(|b| b.is_ascii_graphic());
        good.then(|| query.to_owned())
    }

    /// Waits for the browser, and for a line of the user's where one may come. `None` when nobody came in time.
    pub fn next(&mut self, deadline: Instant, mut typed: Option<&mut Typed>) -> io::Result<Option<Came>> {
        loop {
            if let Some(line) = typed.as_mut().and_then(|typed| typed.line(false)) {
                return Ok(Some(Came::Line(line)));
            }
            let now = Instant::now();
            if now >= deadline {
                return Ok(None);
            }
            self.open.retain(|caller| caller.until > now);
            let until = self.open.iter().map(|caller| caller.until).min().unwrap_or(deadline).min(deadline);
            let input = typed.as_ref().filter(|typed| !typed.over).map(|typed| &typed.input);
            let open = self.open.iter().map(|caller| &caller.stream);
            if system::wait(&self.listener, open, input, until.saturating_duration_since(now))?
                && let Some(line) = typed.as_mut().and_then(|typed| typed.line(true))
            {
                return Ok(Some(Came::Line(line)));
            }
            self.accept()?;
            if let Some((query, browser)) = self.read() {
                return Ok(Some(Came::Browser(query, browser)));
            }
        }
    }

    /// Takes whoever has come, if it is one of the user's programs; a few at a time, so that strangers hold nobody up.
    fn accept(&mut self) -> io::Result<()> {
        for _ in 0..MAX_OPEN {
            match self.listener.accept() {
                Ok((stream, peer)) => {
                    let full = self.open.len() >= MAX_OPEN;
                    if !full && is_ours(peer, self.address) && stream.set_nonblocking(true).is_ok() {
                        self.open.push(Caller { stream, heard: Vec::new(), until: Instant::now() + BROWSER });
                    }
                }
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                // It has gone again.
                Err(e) if matches!(e.kind(), io::ErrorKind::ConnectionAborted | io::ErrorKind::Interrupted) => {}
                Err(e) => return Err(e),
            }
        }
        Ok(())
    }

    /// Reads what there is. What is not waited for is answered so.
    fn read(&mut self) -> Option<(String, Browser)> {
        let host = self.address.to_string();
        let mut at = 0;
        while let Some(caller) = self.open.get_mut(at) {
            match caller.hear(&host) {
                Said::Unfinished => at += 1,
                Said::Query(query) => return Some((query, Browser(self.open.swap_remove(at).stream))),
                Said::Else => {
                    Browser(self.open.swap_remove(at).stream).tell(false, "this is not what Firedoor waits for")
                }
            }
        }
        None
    }
}

impl Caller {
    fn hear(&mut self, host: &str) -> Said {
        let mut chunk = [0; 4096];
        loop {
            match self.stream.read(&mut chunk) {
                Ok(0) => return Said::Else,
                Ok(count) => self.heard.extend(chunk.get(..count).unwrap_or_default()),
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => return Said::Unfinished,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return Said::Else,
            }
            match said(&self.heard, host) {
                Said::Unfinished if self.heard.len() > MAX_REQUEST => return Said::Else,
                Said::Unfinished => {}
                said => return said,
            }
        }
    }
}

/// What a request says (RFC 9112 §3): its first line, and its host.
fn said(heard: &[u8], host: &str) -> Said {
    let Some(end) = heard.windows(4).position(|four| four == b"\r\n\r\n") else { return Said::Unfinished };
    let head = heard.get(..end).and_then(|head| std::str::from_utf8(head).ok()).unwrap_or_default();
    let mut lines = head.split("\r\n");
    let words: Vec<&str> = lines.next().unwrap_or_default().split(' ').collect();
    let ["GET", target, version] = words.as_slice() else { return Said::Else };
    let query = target.strip_prefix(PATH).and_then(|rest| rest.strip_prefix('?'));
    let hosts: Vec<&str> = lines
        .filter_map(|line| line.split_once(':'))
        .filter(|(name, _)| name.eq_ignore_ascii_case("host"))
        .map(|(_, value)| value.trim())
        .collect();
    match query {
        // It becomes a line of its own.
        Some(query)
            if version.starts_with("HTTP/1.") && hosts == [host] && query.bytes().all(|b| b.is_ascii_graphic()) =>
        {
            Said::Query(query.to_owned())
        }
        _ => Said::Else,
    }
}

impl Browser {
    /// Tells it what became of it. A browser that has gone needs no answer, and one that does not listen gets none.
    pub fn tell(mut self, good: bool, why: &str) {
        let text = if good {
            "Firedoor is logged in. You can close this page.\n".to_owned()
        } else {
            format!("Firedoor is not logged in: {}\n", firedoor_model::Untrusted::new(why).visible(1000))
        };
        let status = if good { "200 OK" } else { "400 Bad Request" };
        // The address of this page holds the code: it is passed on to nobody.
        let head = format!(
            "HTTP/1.1 {status}\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: {}\r\n\
             Cache-Control: no-store\r\nReferrer-Policy: no-referrer\r\nX-Content-Type-Options: nosniff\r\n\
             Connection: close\r\n\r\n",
            text.len()
        );
        // It fits into the empty buffer of the socket.
        let _ = self.0.write_all(format!("{head}{text}").as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_own_connection_is_ours() {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let own = listener.local_addr().unwrap();
        let stream = TcpStream::connect(own).unwrap();
        let (accepted, peer) = listener.accept().unwrap();
        assert!(is_ours(peer, own));
        assert_eq!(is_ours("127.0.0.1:1".parse().unwrap(), own), cfg!(not(target_os = "linux")));
        drop((stream, accepted));
    }

    #[test]
    fn only_the_browsers_answer_is_taken() {
        let check = |text: &str| said(text.as_bytes(), "127.0.0.1:7");
        let host = "Host: 127.0.0.1:7\r\n\r\n";
        let good = "GET /callback?code=a&state=b HTTP/1.1\r\nAccept: x\r\nhost:127.0.0.1:7\r\n\r\n";
        assert_eq!(check(good), Said::Query("code=a&state=b".into()));
        for bad in [
            format!("POST /callback?code=a HTTP/1.1\r\n{host}"),
            format!("GET /?code=a HTTP/1.1\r\n{host}"),
            format!("GET /callback HTTP/1.1\r\n{host}"),
            format!("GET /callbackx?code=a HTTP/1.1\r\n{host}"),
            // Without a version the query would end with the line's end, and be two lines.
            format!("GET /callback?x\r\n{host}"),
            format!("GET /callback?x HTTP/2\r\n{host}"),
            format!("GET /callback?x\ny HTTP/1.1\r\n{host}"),
            format!("GET /callback?x y HTTP/1.1\r\n{host}"),
            format!("GET /callback?x\u{e9} HTTP/1.1\r\n{host}"),
            format!("GET /callback?code=a HTTP/1.1\r\nHost: evil.example\r\n{host}"),
            "GET /callback?code=a HTTP/1.1\r\nHost: evil.example:7\r\n\r\n".to_owned(),
            "GET /callback?code=a HTTP/1.1\r\n\r\n".to_owned(),
        ] {
            assert_eq!(check(&bad), Said::Else, "{bad:?}");
        }
        assert_eq!(check("GET /callback?code=a HTTP/1.1\r\n"), Said::Unfinished);
        assert_eq!(check(""), Said::Unfinished);
    }

    #[test]
    fn connections_that_say_nothing_or_nonsense_hold_nobody_up() {
        let mut callback = Callback::listen().unwrap();
        let to = || TcpStream::connect(callback.address).unwrap();
        let (_silent, mut slow, mut wrong, mut right) = (to(), to(), to(), to());
        slow.write_all(b"GET /callback?").unwrap();
        wrong.write_all(b"GET /callback?x\r\n\r\n").unwrap();
        let request = format!("GET /callback?code=a HTTP/1.1\r\nHost: {}\r\n\r\n", callback.address);
        right.write_all(request.as_bytes()).unwrap();
        let came = callback.next(Instant::now() + Duration::from_secs(60), None).unwrap();
        let Some(Came::Browser(query, browser)) = came else { panic!("nobody typed anything") };
        assert_eq!(query, "code=a");
        browser.tell(true, "");
        let mut answer = String::new();
        right.read_to_string(&mut answer).unwrap();
        assert!(answer.contains("is logged in"));
        assert!(callback.next(Instant::now(), None).unwrap().is_none());
    }

    #[test]
    fn an_address_that_is_pasted_is_this_logins() {
        let callback = Callback::listen().unwrap();
        let redirect = callback.redirect();
        let check = |text: &str, want: Option<&str>| assert_eq!(callback.pasted(text).as_deref(), want, "{text}");
        check(&format!("{redirect}?code=a&state=b"), Some("code=a&state=b"));
        check(&format!("{redirect}?code=a#top"), Some("code=a"));
        check(&redirect, None);
        check(&format!("{redirect}?"), None);
        check(&format!("{redirect}?a b"), None);
        check(&format!("{redirect}x?code=a"), None);
        check("http://127.0.0.1:1/callback?code=a", None);
        check("https://evil.example/?code=a", None);
        check("", None);
    }
}
