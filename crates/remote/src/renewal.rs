//! Another token, when the server refuses the one that came with the instructions. Whoever started us is asked, on the socket
//! that stands in the place of stderr: it has no more to do with the server than we have with the keychain.

use std::{
    cell::{Cell, RefCell},
    io,
    os::{fd::AsFd as _, unix::net},
    time::Duration,
};

use firedoor_model::{
    Digest,
    login::{MAX_LINE, RENEW},
};
use reqwest::header::HeaderValue;
use tokio::{net::UnixStream, sync::Mutex};

/// For the issuer, and the keychain.
const LIMIT: Duration = Duration::from_secs(60);

/// The socket, and what came of it.
pub struct Renewal {
    socket: UnixStream,
    heard: RefCell<Vec<u8>>,
    turn: Mutex<()>,
    /// Counts tokens.
    generation: Cell<u64>,
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
        })
    }

    /// Counts tokens: what a request was sent with is compared with this.
    pub fn generation(&self) -> u64 {
        self.generation.get()
    }

    /// Another token in the place of one that was refused. `None` when there is none; true with it when it came meanwhile, for
    /// another request.
    pub async fn another(&self, seen: u64, refused: impl FnOnce() -> Option<HeaderValue>) -> Option<Renewed> {
        let _turn = self.turn.lock().await;
        if self.generation.get() != seen {
            return Some(Renewed::Meanwhile);
        }
        let refused = Digest::of(refused()?.as_bytes());
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
