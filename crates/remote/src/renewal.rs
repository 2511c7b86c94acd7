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
    login::{Another, MAX_LINE, RENEW},
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
        Self::over(io::stderr().as_fd().try_clone_to_owned()?.into())
    }

    fn over(socket: net::UnixStream) -> io::Result<Self> {
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
        let value = tokio::time::timeout(LIMIT, self.ask(refused)).await.ok()?.ok()??;
        let mut value = HeaderValue::from_str(&value).ok()?;
        value.set_sensitive(true);
        self.generation.set(seen + 1);
        Some(Renewed::Now(value))
    }

    /// Asks, and waits for the answer to this. Whoever asked before may have given up, and the answer comes nevertheless.
    async fn ask(&self, refused: Digest) -> io::Result<Option<String>> {
        while self.read()? {}
        self.heard.borrow_mut().clear();
        let line = format!("{RENEW}{refused}\n");
        let mut rest = line.as_bytes();
        while !rest.is_empty() {
            self.socket.writable().await?;
            let sent = again(self.socket.try_write(rest))?;
            rest = rest.get(sent..).unwrap_or_default();
        }
        loop {
            if let Some(value) = self.answer(refused) {
                return Ok(value);
            }
            self.socket.readable().await?;
            self.read()?;
        }
    }

    /// Reads what is there. False when that is nothing.
    fn read(&self) -> io::Result<bool> {
        let mut chunk = [0; 4096];
        let count = match self.socket.try_read(&mut chunk) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            read => again(read)?,
        };
        let mut heard = self.heard.borrow_mut();
        heard.extend(chunk.get(..count).unwrap_or_default());
        if heard.len() > 2 * MAX_LINE { Err(io::ErrorKind::InvalidData.into()) } else { Ok(count > 0) }
    }

    /// The answer to this, if it is among what was heard.
    fn answer(&self, refused: Digest) -> Option<Option<String>> {
        let mut heard = self.heard.borrow_mut();
        while let Some(end) = heard.iter().position(|b| *b == b'\n') {
            let line: Vec<u8> = heard.drain(..=end).collect();
            if let Ok(another) = serde_json::from_slice::<Another>(&line)
                && another.refused == refused
            {
                return Some(another.value);
            }
        }
        None
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

#[cfg(test)]
mod tests {
    use std::io::{BufRead as _, BufReader, Write as _};

    use super::*;

    fn header(text: &str) -> Option<HeaderValue> {
        HeaderValue::from_str(text).ok()
    }

    #[tokio::test]
    async fn an_answer_that_nobody_waits_for_any_more_is_nobody_elses() {
        let (ours, theirs) = net::UnixStream::pair().unwrap();
        let renewal = Renewal::over(ours).unwrap();
        // Asks, and gives up.
        tokio::select! {
            biased;
            _ = renewal.another(0, || header("Bearer a")) => panic!("nobody has answered"),
            () = tokio::task::yield_now() => {}
        }
        let mut asked = BufReader::new(theirs.try_clone().unwrap());
        let mut heard = move || {
            let mut line = String::new();
            asked.read_line(&mut line).unwrap();
            line
        };
        let (a, b) = (Digest::of(b"Bearer a"), Digest::of(b"Bearer b"));
        assert_eq!(heard(), format!("{RENEW}{a}\n"));
        let mut theirs = theirs;
        let mut say = move |refused: Digest, value: &str| {
            let another = Another { refused, value: Some(value.to_owned()) };
            writeln!(theirs, "{}", serde_json::to_string(&another).unwrap()).unwrap();
        };
        // Asks again, and has the answer to the first question: it is as good.
        say(a, "Bearer b");
        let Some(Renewed::Now(value)) = renewal.another(0, || header("Bearer a")).await else { panic!("no token") };
        assert_eq!(value, "Bearer b");
        assert_eq!(heard(), format!("{RENEW}{a}\n"));
        // Then the answer to the second one comes, which is none to a third.
        let answering = std::thread::spawn(move || {
            say(a, "Bearer b");
            assert_eq!(heard(), format!("{RENEW}{b}\n"));
            say(a, "Bearer b");
            say(b, "Bearer c");
            (say, heard)
        });
        let Some(Renewed::Now(value)) = renewal.another(1, || header("Bearer b")).await else { panic!("no token") };
        assert_eq!((value.to_str().unwrap(), renewal.generation()), ("Bearer c", 2));
        drop(answering.join().unwrap());
    }
}
