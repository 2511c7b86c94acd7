//! The running server, and everything that an engine needs to serve it.

use std::{
    fs::File,
    io,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
};

use firedoor_ipc::{
    blocking::Connection,
    shim::{Ended, STREAMS, ToEngine},
    wire::WireError,
};
use firedoor_model::{EntryId, broker, launch::Step, remote::Instructions};
use firedoor_sandbox::{Exit, Launch, Notice, Stderr, Tree};

use crate::{broker::Broker, instructions, sys, words::Words};

/// What the engine wants started.
pub struct Wanted {
    /// The server.
    pub step: Step,
    /// For the engine's successor.
    pub context: String,
    /// Whether what it does is written down.
    pub observe: bool,
    /// What it is told first.
    pub remote: Option<Instructions>,
    /// What puts in the secrets that it does not get.
    pub broker: Option<Box<broker::Start>>,
}

/// A running server. The descriptors are kept so that the next engine can have them when this one dies.
pub struct Server {
    /// The processes.
    pub tree: Tree,
    /// What puts in the secrets that they do not get. Behind them, so that it ends after them.
    pub broker: Option<Broker>,
    /// Duplicate of what the engine writes to. An end of the stream needs both closed.
    pub stdin: Option<OwnedFd>,
    stdout: OwnedFd,
    /// What the engine knows, and the bytes it has read and not dealt with.
    ledger: OwnedFd,
    logs: [OwnedFd; 2],
    remainders: [OwnedFd; 2],
    /// Between a socket and its log.
    between: (OwnedFd, OwnedFd),
    entry: EntryId,
    /// The engine's own words to its successor.
    context: String,
    /// The engine wants to know what it does.
    observe: bool,
    /// What it says, if it stands for one that is reached over HTTP.
    pub words: Option<Words>,
}

/// Why an engine was not told of a server.
#[derive(Debug, thiserror::Error)]
enum Untold {
    #[error("the Firedoor engine has gone ({0})")]
    Engine(#[from] WireError),
    #[error("{0}")]
    Here(String),
}

/// How a server ended, for the engine.
pub fn in_message(exit: Exit) -> Ended {
    match exit {
        Exit::Code(code) => Ended::Code(code),
        Exit::Signal(signal) => Ended::Signal(signal),
    }
}

/// What the guardian tells, for the engine.
pub fn noticed(notice: Notice) -> ToEngine {
    match notice {
        Notice::Attempted(attempt) => ToEngine::Attempted(attempt),
        Notice::Asked(question) => ToEngine::Asked(question),
        Notice::Withdrawn(id) => ToEngine::Withdrawn { id },
    }
}

impl Server {
    /// Starts the server and hands its streams to the engine.
    pub fn start(entry: &EntryId, wanted: Wanted, engine: &Connection) -> Result<Self, String> {
        let Wanted { mut step, context, observe, remote, broker } = wanted;
        let pipe = || io::pipe().map_err(|e| format!("cannot make a pipe: {e}"));
        let memory = |name| sys::memory(name).map_err(|e| format!("cannot get memory: {e}"));
        let ((server_stdin, mut to_server), (from_server, server_stdout)) = (pipe()?, pipe()?);
        if let Some(remote) = &remote {
            instructions::tell(remote, &mut to_server)?;
        }
        let logs = [memory("firedoor-from-client")?, memory("firedoor-from-server")?];
        let remainders = [memory("firedoor-to-server")?, memory("firedoor-to-client")?];
        let ledger = memory("firedoor-ledger")?;
        let between = pipe()?;
        let (words, stderr) = match remote.as_ref().map(|_| Words::pair()).transpose() {
            Ok(Some((words, theirs))) => (Some(words), Stderr::Fd(theirs)),
            Ok(None) => (None, Stderr::Inherit),
            Err(e) => return Err(format!("cannot make a socket: {e}")),
        };
        let broker = match broker {
            Some(start) => Some(Broker::start(&start, &mut step)?),
            None => None,
        };
        let launch = Launch { step: &step, stdin: server_stdin.into(), stdout: server_stdout.into(), stderr, observe };
        let tree = firedoor_sandbox::spawn(launch).map_err(|e| e.to_string())?;
        let server = Self {
            tree,
            broker,
            stdin: Some(to_server.into()),
            stdout: from_server.into(),
            ledger,
            logs,
            remainders,
            between: (between.0.into(), between.1.into()),
            entry: entry.clone(),
            context,
            observe,
            words,
        };
        match server.introduce(engine) {
            // An engine that has died meanwhile is noticed on its socket, and the next one gets the server: as when it dies
            // with the message unread.
            Err(Untold::Engine(e)) if e.lost() => {}
            told => told.map_err(|e| format!("{e}; the server was stopped"))?,
        }
        Ok(server)
    }

    /// Tells the engine that wanted it that it runs.
    fn introduce(&self, engine: &Connection) -> Result<(), Untold> {
        self.send(&ToEngine::Started { pid: self.pid(), level: self.level() }, engine)?;
        self.hand_record(engine)
    }

    /// Hands the server to an engine that takes over from one that died.
    pub fn hand_over(&self, engine: &Connection, exited: Option<Exit>) -> Result<(), String> {
        let message = ToEngine::Resume {
            entry: self.entry.clone(),
            context: self.context.clone(),
            pid: self.pid(),
            level: self.level(),
            exited: exited.map(in_message),
        };
        self.send(&message, engine).and_then(|()| self.hand_record(engine)).map_err(|e| e.to_string())?;
        // What the engine before was asked about connections, nobody knows any more.
        let _ = self.tree.ask_again();
        Ok(())
    }

    /// Hands the record of an observed server to the engine.
    fn hand_record(&self, engine: &Connection) -> Result<(), Untold> {
        if !self.observe {
            return Ok(());
        }
        let record: Vec<BorrowedFd<'_>> = self.tree.record().into_iter().collect();
        Ok(engine.send(&ToEngine::Observing, &record)?)
    }

    fn pid(&self) -> u32 {
        u32::try_from(self.tree.pid()).unwrap_or_default()
    }

    fn level(&self) -> String {
        self.tree.outcome().sentence()
    }

    /// Sends a message with the streams, in the order of [`STREAMS`].
    fn send(&self, message: &ToEngine, engine: &Connection) -> Result<(), Untold> {
        let (stdin, stdout) = (io::stdin(), io::stdout());
        // Where the server's input is closed already, nobody reads what is written.
        let null = || File::options().write(true).open("/dev/null");
        let nobody = match self.stdin {
            Some(_) => None,
            None => Some(null().map_err(|e| Untold::Here(format!("cannot open /dev/null: {e}")))?),
        };
        let to_server = self.stdin.as_ref().map(AsFd::as_fd).or(nobody.as_ref().map(AsFd::as_fd));
        let Some(to_server) = to_server else {
            return Err(Untold::Here("the server's input is lost".into()));
        };
        let ([read_up, read_down], [up, down]) = (&self.logs, &self.remainders);
        let fds: [BorrowedFd<'_>; STREAMS] = [
            stdin.as_fd(),
            stdout.as_fd(),
            to_server,
            self.stdout.as_fd(),
            self.ledger.as_fd(),
            read_up.as_fd(),
            read_down.as_fd(),
            up.as_fd(),
            down.as_fd(),
            self.between.0.as_fd(),
            self.between.1.as_fd(),
        ];
        Ok(engine.send(message, &fds)?)
    }
}
