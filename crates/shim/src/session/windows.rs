//! One server's life, seen from the shim: threads wait for the engine and for the server's end, and one loop hears of both.
//!
//! The engine takes duplicates of the streams, and the data do not pass through here. An engine that dies takes the session with it:
//! what was read and not passed on is lost, so the server ends as well.

use std::{
    fs::File,
    io::{self, PipeWriter},
    os::windows::io::{AsHandle as _, BorrowedHandle, OwnedHandle},
    process::ExitCode,
    sync::mpsc::{self, RecvTimeoutError, Sender},
    thread,
    time::{Duration, Instant},
};

use firedoor_ipc::{
    blocking::{Connection, Incoming, Outgoing},
    shim::{Ended, STREAMS, ToEngine, ToShim},
    wire::WireError,
};
use firedoor_model::{Ability, EntryId, launch::Step, remote::Instructions};
use firedoor_sandbox::{Exit, Launch, Stderr, Tree};

use crate::{
    engines::{self, Engines},
    instructions,
    sys::Signals,
};

/// For the engine to decide: it looks at files, which may lie on a slow disk.
const PLAN_LIMIT: Duration = Duration::from_secs(60);

/// Time between closing a server's input and killing it.
const GRACE: Duration = Duration::from_secs(2);

/// How long an engine may take for its duplicates of a server's handles.
const TAKING: Duration = Duration::from_secs(1);

/// How long the program that speaks to a server with an address may take to read what it is for: Windows may look through a new file first.
const TELLING: Duration = Duration::from_secs(30);

/// What a thread has seen.
enum Event {
    Engine(Result<ToShim, WireError>),
    /// The main process of what runs with this number has ended.
    Exited(u64),
}

/// What is running.
enum Stage {
    /// The engine decides, until this time.
    Planning(Instant),
    /// The install step runs until this time.
    Installing(Tree, Instant),
    /// The server runs; when it was asked to end, it is killed at this time.
    Running(Server, Option<Instant>),
    /// The server has ended; the engine writes the rest of its output. Its handles stay open: the engine may not have taken
    /// its duplicates yet.
    Draining(Exit, #[expect(dead_code, reason = "held, not used")] Server),
}

impl Stage {
    fn planning() -> Self {
        Self::Planning(Instant::now() + PLAN_LIMIT)
    }

    fn deadline(&self) -> Option<Instant> {
        match self {
            Self::Planning(at) | Self::Installing(_, at) => Some(*at),
            Self::Running(_, at) => *at,
            Self::Draining(..) => None,
        }
    }
}

/// A running server. The engine has duplicates of the handles.
struct Server {
    tree: Tree,
    /// What the engine writes to. An end of the stream needs both closed.
    _stdin: Option<OwnedHandle>,
    /// What the engine reads. It takes its duplicate a moment after it is told, so ours stays open.
    _stdout: OwnedHandle,
    since: Instant,
}

/// Asks the engine, runs the server, and ends as the server did. An error means that nothing runs.
pub fn run(engines: &Engines, _: &EntryId, request: &ToEngine, _: Signals) -> Result<ExitCode, String> {
    let (incoming, engine) = ask(engines, request)?.split();
    let (events, next) = mpsc::channel();
    listen(incoming, events.clone())?;
    let mut session = Session { engine, events, started: 0 };
    let mut stage = Stage::planning();
    loop {
        let event = match stage.deadline() {
            None => next.recv().map_err(|_| RecvTimeoutError::Disconnected),
            Some(at) => next.recv_timeout(at.saturating_duration_since(Instant::now())),
        };
        stage = match event {
            Ok(Event::Engine(Ok(message))) => match session.obey(message, stage)? {
                Next::Stage(stage) => stage,
                Next::End(exit) => return Ok(end(exit)),
            },
            // Dropping the stage kills what runs.
            Ok(Event::Engine(Err(why))) => {
                // What the engine had not written yet is lost; how the server ended is not.
                if let Stage::Draining(exit, _) = stage {
                    return Ok(end(exit));
                }
                return Err(format!(
                    "the Firedoor engine has gone ({why}); the server was stopped, because it would run unprotected. Start it again \
                     in your client"
                ));
            }
            Ok(Event::Exited(number)) if number == session.started => session.ended(stage)?,
            Ok(Event::Exited(_)) => stage,
            Err(RecvTimeoutError::Timeout) => session.late(stage)?,
            // We hold a sender ourselves.
            Err(RecvTimeoutError::Disconnected) => return Err("waiting failed".into()),
        };
    }
}

/// Greets an engine and tells it what to launch.
fn ask(engines: &Engines, request: &ToEngine) -> Result<Connection, String> {
    let engine = engines::alive(|| {
        let engine = engines.start()?;
        engine.send(request, &[])?;
        Ok(engine)
    });
    engine.map_err(|e| format!("{e}. The server was not started, because it would run unprotected."))
}

fn thread(name: &str, work: impl FnOnce() + Send + 'static) -> Result<(), String> {
    thread::Builder::new().name(name.into()).spawn(work).map(drop).map_err(|e| format!("cannot start a thread: {e}"))
}

fn listen(mut incoming: Incoming, events: Sender<Event>) -> Result<(), String> {
    thread("engine", move || {
        loop {
            // Nobody gives us handles, and a frame with some is refused.
            let message = incoming.receive(None).map(|(message, _)| message);
            let last = message.is_err();
            if events.send(Event::Engine(message)).is_err() || last {
                return;
            }
        }
    })
}

enum Next {
    Stage(Stage),
    End(Exit),
}

struct Session {
    engine: Outgoing,
    events: Sender<Event>,
    /// How many processes were started.
    started: u64,
}

impl Session {
    /// Does what the engine says.
    fn obey(&mut self, message: ToShim, stage: Stage) -> Result<Next, String> {
        Ok(Next::Stage(match (message, stage) {
            (ToShim::Refuse { text }, Stage::Planning(_)) => return Err(text),
            (ToShim::Install { step, limit }, Stage::Planning(_)) => match self.install(&step) {
                Ok(tree) => Stage::Installing(tree, Instant::now() + limit),
                Err(detail) => {
                    self.report(&ToEngine::Installed { ok: false, detail })?;
                    Stage::planning()
                }
            },
            (ToShim::Run { step, context: _, observe, remote, broker }, Stage::Planning(_)) => {
                let started = match broker {
                    Some(_) => Err(Ability::Brokering.missing().to_string()),
                    None => self.start(&step, observe, remote.as_ref()),
                };
                match started {
                    Ok(server) => Stage::Running(server, None),
                    Err(detail) => {
                        self.report(&ToEngine::Failed { detail: detail.clone() })?;
                        return Err(detail);
                    }
                }
            }
            (ToShim::CloseServerStdin, Stage::Running(server, limit)) => {
                Stage::Running(Server { _stdin: None, ..server }, limit)
            }
            // The end of its input asks a server to end; there are no signals. The engine closes its own end as well, unless it was
            // told to stop before it took that: then the server is killed.
            (ToShim::Stop, Stage::Running(server, limit)) => {
                let limit = limit.or_else(|| Some(Instant::now() + GRACE));
                match server.since.elapsed() < TAKING {
                    true => Stage::Running(server, limit),
                    false => Stage::Running(Server { _stdin: None, ..server }, limit),
                }
            }
            (ToShim::Stop, Stage::Planning(_) | Stage::Installing(..)) => return Ok(Next::End(Exit::Code(1))),
            (ToShim::Drained | ToShim::Stop | ToShim::Off, Stage::Draining(exit, _)) => return Ok(Next::End(exit)),
            (ToShim::Off, _) => {
                return Err(
                    "Firedoor is off: start it with `firedoor daemon`, and then the server in your client".into()
                );
            }
            // What comes too late, or makes no sense now, changes nothing. The client sees the end of its stream when we exit.
            (_, stage) => stage,
        }))
    }

    /// Something has ended by itself.
    fn ended(&self, stage: Stage) -> Result<Stage, String> {
        Ok(match stage {
            Stage::Installing(mut tree, _) => {
                let exit = tree.wait().map_err(|e| format!("the install step was lost: {e}"))?;
                let detail = format!("it {exit}; its output is above, in the client's log of this server");
                self.report(&ToEngine::Installed { ok: exit == Exit::Code(0), detail })?;
                Stage::planning()
            }
            Stage::Running(mut server, _) => {
                let exit = server.tree.wait().map_err(|e| format!("the server was lost: {e}"))?;
                self.report(&ToEngine::Exited(match exit {
                    Exit::Code(code) => Ended::Code(code),
                    Exit::Signal(signal) => Ended::Signal(signal),
                }))?;
                Stage::Draining(exit, server)
            }
            stage @ (Stage::Planning(_) | Stage::Draining(..)) => stage,
        })
    }

    /// Something has taken too long.
    fn late(&self, stage: Stage) -> Result<Stage, String> {
        Ok(match stage {
            Stage::Planning(_) => {
                return Err(
                    "the Firedoor engine does not answer; the server was not started. Stop the engine and try again"
                        .into(),
                );
            }
            Stage::Installing(tree, _) => {
                drop(tree);
                self.report(&ToEngine::Installed { ok: false, detail: "it took too long and was stopped".into() })?;
                Stage::planning()
            }
            Stage::Running(server, _) => {
                server.tree.kill().map_err(|e| format!("the server cannot be stopped: {e}"))?;
                Stage::Running(server, None)
            }
            stage @ Stage::Draining(..) => stage,
        })
    }

    fn report(&self, message: &ToEngine) -> Result<(), String> {
        self.send(message, &[])
    }

    fn send(&self, message: &ToEngine, handles: &[BorrowedHandle<'_>]) -> Result<(), String> {
        self.engine.send(message, handles).map_err(|e| format!("the Firedoor engine has gone ({e})"))
    }

    /// Has a thread tell of the end of what was just started.
    fn watch(&mut self, tree: Tree) -> Result<Tree, String> {
        self.started += 1;
        let (number, events) = (self.started, self.events.clone());
        let exited = tree.exited().map_err(|e| format!("cannot wait for the server: {e}"))?;
        thread("server", move || {
            // One that cannot be waited for is looked at like one that has ended.
            let _ = exited.wait();
            let _ = events.send(Event::Exited(number));
        })?;
        Ok(tree)
    }

    /// Starts the server and hands its streams to the engine.
    fn start(&mut self, step: &Step, observe: bool, remote: Option<&Instructions>) -> Result<Server, String> {
        let pipe = || io::pipe().map_err(|e| format!("cannot make a pipe: {e}"));
        let ((stdin, mut to_server), (from_server, stdout)) = (pipe()?, pipe()?);
        let launch = Launch { step, stdin: stdin.into(), stdout: stdout.into(), stderr: Stderr::Inherit, observe };
        let tree = firedoor_sandbox::spawn(launch).map_err(|e| e.to_string())?;
        if let Some(remote) = remote {
            // Now that somebody reads: a pipe takes little here.
            to_server = told(remote.clone(), to_server)?;
        }
        let tree = self.watch(tree)?;
        let started = ToEngine::Started { pid: tree.pid(), level: tree.outcome().sentence() };
        let (client_in, client_out) = (io::stdin(), io::stdout());
        let streams: [BorrowedHandle<'_>; STREAMS] =
            [client_in.as_handle(), client_out.as_handle(), to_server.as_handle(), from_server.as_handle()];
        self.send(&started, &streams)?;
        Ok(Server { tree, _stdin: Some(to_server.into()), _stdout: from_server.into(), since: Instant::now() })
    }

    /// Starts the install step. What it prints goes to our stderr: stdout is the protocol.
    fn install(&mut self, step: &Step) -> Result<Tree, String> {
        let null = File::open("NUL").map_err(|e| format!("cannot open NUL: {e}"))?;
        let output = firedoor_sandbox::own_stderr().map_err(|e| format!("cannot use stderr: {e}"))?;
        let launch = Launch { step, stdin: null.into(), stdout: output, stderr: Stderr::Inherit, observe: false };
        let tree = firedoor_sandbox::spawn(launch).map_err(|e| e.to_string())?;
        self.watch(tree)
    }
}

/// Tells the program what it is for. One that does not read in time is none of ours.
fn told(remote: Instructions, mut to: PipeWriter) -> Result<PipeWriter, String> {
    let (send, done) = mpsc::channel();
    thread("instructions", move || {
        let said = instructions::tell(&remote, &mut to);
        let _ = send.send(said.map(|()| to));
    })?;
    let late = |_| "the program that speaks to the server did not ask what it is for in time".to_owned();
    done.recv_timeout(TELLING).map_err(late)?
}

/// Ends as the server did, as far as a code can say it.
fn end(exit: Exit) -> ExitCode {
    let code = exit.shell_code();
    match u8::try_from(code & 0xff) {
        Ok(0) if code != 0 => ExitCode::FAILURE,
        Ok(code) => ExitCode::from(code),
        Err(_) => ExitCode::FAILURE,
    }
}
