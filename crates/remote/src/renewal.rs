//! Another token, when the server refuses the one that came with the instructions. Whoever started us is asked, on the socket
//! that stands in the place of stderr: it has no more to do with the server than we have with the keychain.

use std::{
    cell::{Cell, RefCell},
    io,
    os::{fd::AsFd as _, unix::net},
    time::{Duration, Instant},
};

use firedoor_model::{
    Digest,
    login::{MAX_LINE, RENEW},
};
use reqwest::header::HeaderValue;
use tokio::{net::UnixStream, sync::Mutex};

/// For the issuer, and the keychain.
const LIMIT: Duration = Duration::from_secs(60);

/// How often is asked in [`SPAN`]: a server that refuses every token is not worth more.
const TRIES: u32 = 5;
const SPAN: Duration = Duration::from_secs(60);

/// The socket, and what came of it.
pub struct Renewal {
    socket: UnixStream,
    heard: RefCell<Vec<u8>>,
    turn: Mutex<()>,
    /// Counts tokens.
    generation: Cell<u64>,
    /// Since when is counted how often was asked.
    tries: Cell<(Instant, u32)>,
}

impl Renewal {
    /// Takes the socket. Needs a running event loop.
    pub fn new() -> io::Result<Self> {
        let socket = net::UnixStream::from(io::stderr().as_fd().try_clone_to_owned()?);
        socket.set_nonblocking(true)?;
        Ok(Self {
            socket: UnixStream::from_std(socket)?,
            heard: RefCell::default(),
            turn: Mutex::default(),
            generation: Cell::new(0),
            tries: Cell::new((Instant::now(), 0)),
        })
    }

    /// Whether there is another try.
    fn may_ask(&self) -> bool {
        let (since, count) = self.tries.get();
        let (since, count) = if since.elapsed() < SPAN { (since, count) } else { (Instant::now(), 0) };
        self.tries.set((since, count.saturating_add(1)));
        count < TRIES
    }

    /// Counts tokens: what a request was sent with is compared with this.
    pub fn generation(&self) -> u64 {
        self.generation.get()
    }

    /// Another token in the place of what was refused, if anything was sent. `None` when there is none.
    pub async fn another(&self, seen: u64, refused: impl FnOnce() -> Option<HeaderValue>) -> Option<Renewed> {
        let _turn = self.turn.lock().await;
        if self.generation.get() != seen {
            return Some(Renewed::Meanwhile);
        }
        if !self.may_ask() {
            return None;
        }
        let refused = Digest::of(refused().map(|value| value.as_bytes().to_vec()).unwrap_or_default().as_slice());
        let line = tokio::time::timeout(LIMIT, self.ask(&format!("{RENEW}{refused}\n"))).await.ok()?.ok()?;
        let mut value = HeaderValue::from_str(&serde_json::from_slice::<Option<String>>(&line).ok()??).ok()?;
        value.set_sensitive(true);
        self.generation.set(seen + 1);
        Some(Renewed::Now(value))
    }

    async fn ask(&self, line: &str) -> io::Result<Vec<u8>> {
        // What came too late for an earlier question.
        self.heard.borrow_mut().clear();
        let mut rest = line.as_bytes();
        while !rest.is_empty() {
            self.socket.writable().await?;
            let sent = again(self.socket.try_write(rest))?;
            rest = rest.get(sent..).unwrap_or_default();
        }
        loop {
            let mut chunk = [0; 4096];
            self.socket.readable().await?;
            let count = match self.socket.try_read(&mut chunk) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                read => again(read)?,
            };
            let mut heard = self.heard.borrow_mut();
            heard.extend(chunk.get(..count).unwrap_or_default());
            if let Some(end) = heard.iter().position(|b| *b == b'\n') {
                return Ok(heard.drain(..=end).collect());
            }
            if heard.len() > MAX_LINE {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
    }
}

/// Nothing, where the socket was not ready after all.
fn again(done: io::Result<usize>) -> io::Result<usize> {
    match done {
        Err(e) if e.kind() == io::ErrorKind::WouldBlock => Ok(0),
        done => done,
    }
}

/// Where another token is.
pub enum Renewed {
    /// Here.
    Now(HeaderValue),
    /// In use already.
    Meanwhile,
}
