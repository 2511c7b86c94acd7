//! One endpoint: its sessions, and what bounds them.

use std::{
    cell::{Cell, RefCell},
    collections::HashMap,
    path::PathBuf,
    process::Child,
    rc::Rc,
    time::{Duration, Instant},
};

use firedoor_ipc::{
    process::{self, Process},
    tcp::{Holders, OtherEnd},
};
use firedoor_model::{endpoint::Endpoint, wire::Frame};
use hyper::StatusCode;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _};

use super::{
    rate::Rate,
    server::{self, Server},
    session::{Era, Session},
};

/// Most servers at once behind one endpoint.
const MAX_SESSIONS: usize = 64;

/// A server that stands for itself, and that nobody asks anything, ends after this long. The next request starts another.
const STATELESS_IDLE: Duration = Duration::from_secs(600);

/// Processes whose sockets are looked at first.
const KNOWN: usize = 8;

/// Bytes of randomness in a session's name.
const NAME: usize = 16;

/// A process that is told to end is waited for this often.
const REAP: Duration = Duration::from_millis(50);

/// Why there is no session.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The user switched Firedoor off.
    #[error("Firedoor is off: start it with the desktop app or `firedoor daemon`")]
    Off,
    /// Too many, too fast.
    #[error("servers are started too often, or too many run at once: wait a little")]
    Many,
    /// The shim.
    #[error("the server was not started: {0}")]
    Start(#[from] std::io::Error),
}

impl OpenError {
    /// What HTTP calls it.
    pub fn status(&self) -> StatusCode {
        match self {
            Self::Off => StatusCode::SERVICE_UNAVAILABLE,
            Self::Many => StatusCode::TOO_MANY_REQUESTS,
            Self::Start(_) => StatusCode::BAD_GATEWAY,
        }
    }
}

/// One endpoint.
pub struct Gate {
    pub endpoint: Endpoint,
    /// The port that it listens on.
    pub port: u16,
    /// Largest message, in bytes.
    pub max_message: usize,
    shim: PathBuf,
    /// The user switched Firedoor off.
    off: Rc<Cell<bool>>,
    sessions: RefCell<HashMap<String, Rc<Session>>>,
    /// Messages, and starts of servers.
    pub messages: Rate,
    starts: Rate,
    /// Processes that have connected, the last one first, and what sockets they hold.
    known: RefCell<Vec<Process>>,
    holders: RefCell<Holders>,
}

impl Gate {
    pub fn new(endpoint: Endpoint, port: u16, max_message: usize, shim: PathBuf, off: Rc<Cell<bool>>) -> Rc<Self> {
        Rc::new(Self {
            endpoint,
            port,
            max_message,
            shim,
            off,
            sessions: RefCell::default(),
            messages: Rate::new(4000, 1000, Duration::from_secs(1)),
            starts: Rate::new(64, 120, Duration::from_secs(60)),
            known: RefCell::default(),
            holders: RefCell::default(),
        })
    }

    /// The process at the other end of a connection.
    pub fn client(&self, socket: OtherEnd) -> Option<Process> {
        let mut known = self.known.borrow_mut();
        let found = self.holders.borrow_mut().of(socket, &known)?;
        known.retain(|other| *other != found);
        known.insert(0, found);
        known.truncate(KNOWN);
        Some(found)
    }

    /// How many servers run.
    pub fn count(&self) -> usize {
        self.sessions.borrow().len()
    }

    /// The session with a name that the client has been told.
    pub fn session(&self, name: &str) -> Option<Rc<Session>> {
        self.sessions.borrow().get(name).filter(|session| session.era == Era::Session).cloned()
    }

    /// A server for requests of revision 2026-07-28: one of this client's, on which none of the same id waits.
    pub fn stateless(
        self: &Rc<Self>,
        client: Process,
        headers: Vec<(String, String)>,
        frame: &Frame<'_>,
    ) -> Result<Rc<Session>, OpenError> {
        let fits = |session: &&Rc<Session>| {
            session.era == Era::Stateless
                && session.client == client
                && session.headers == headers
                && !session.is_over()
                && !session.waits_for(frame)
        };
        let found = self.sessions.borrow().values().find(fits).cloned();
        match found {
            Some(session) => Ok(session),
            None => self.open(client, Era::Stateless, headers),
        }
    }

    /// Starts a server.
    pub fn open(
        self: &Rc<Self>,
        client: Process,
        era: Era,
        headers: Vec<(String, String)>,
    ) -> Result<Rc<Session>, OpenError> {
        if self.off.get() {
            return Err(OpenError::Off);
        }
        if !self.starts.take(Instant::now()) || (self.count() >= MAX_SESSIONS && !self.make_room()) {
            return Err(OpenError::Many);
        }
        let mut name = [0; NAME];
        getrandom::fill(&mut name).map_err(|e| std::io::Error::other(e.to_string()))?;
        let name = data_encoding::HEXLOWER.encode(&name);
        let server = server::start(&self.shim, &self.endpoint, client, &headers)?;
        let session = Session::new(name.clone(), client, era, headers, server.input.clone());
        self.sessions.borrow_mut().insert(name, session.clone());
        tokio::task::spawn_local(self.clone().listen(session.clone(), server));
        Ok(session)
    }

    /// Ends the session that was not used for the longest time. False when all are in use.
    fn make_room(&self) -> bool {
        let idle = |session: &Rc<Session>| session.idle_since().map(|since| (since, session.clone()));
        let longest = self.sessions.borrow().values().filter_map(idle).min_by_key(|(since, _)| *since);
        match longest {
            Some((_, session)) => {
                self.close(&session);
                true
            }
            None => false,
        }
    }

    /// Ends a session.
    pub fn close(&self, session: &Session) {
        self.sessions.borrow_mut().remove(&session.id);
        session.end();
    }

    /// Ends all.
    pub fn close_all(&self) {
        for session in self.sessions.take().into_values() {
            session.end();
        }
    }

    /// Ends what nobody needs any more.
    pub fn tidy(&self) {
        let over = |session: &&Rc<Session>| {
            let gone = !process::stat(session.client.pid).is_ok_and(|stat| stat.process == session.client);
            let idle = session.idle_since().is_some_and(|since| since.elapsed() > STATELESS_IDLE);
            gone || session.is_over() || (session.era == Era::Stateless && idle)
        };
        let over: Vec<Rc<Session>> = self.sessions.borrow().values().filter(over).cloned().collect();
        for session in over {
            self.close(&session);
        }
    }

    /// Passes on what a server says until it ends.
    async fn listen(self: Rc<Self>, session: Rc<Session>, server: Server) {
        let Server { process, input, mut output } = server;
        drop(input);
        let mut line = Vec::new();
        // The engine lets nothing through that is longer.
        let most = self.max_message as u64 + 1;
        while let Ok(1..) = (&mut output).take(most).read_until(b'\n', &mut line).await {
            let whole = line.strip_suffix(b"\n").unwrap_or_default();
            session.hear(whole.trim_ascii()).await;
            line.clear();
            if line.capacity() > 1 << 20 {
                line = Vec::new();
            }
            if session.is_over() {
                break;
            }
        }
        self.close(&session);
        drop(output);
        reap(process).await;
    }
}

/// Waits for a process that ends, so that no dead entry stays in the process table.
async fn reap(mut process: Child) {
    while let Ok(None) = process.try_wait() {
        tokio::time::sleep(REAP).await;
    }
}
