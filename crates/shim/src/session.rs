//! One server's life, seen from the shim: a single poll loop over the engine, signals and the server's tree.

use std::{
    fs::File,
    io,
    os::{
        fd::{AsFd, OwnedFd},
        unix::net::UnixStream,
    },
    process::ExitCode,
    time::{Duration, Instant},
};

use firedoor_ipc::{
    Hello, PROTOCOL, Role,
    blocking::Connection,
    shim::{Ended, ToEngine, ToShim},
    wire::WireError,
};
use firedoor_model::launch::{LaunchRequest, Step};
use firedoor_sandbox::{Exit, Launch, Stderr, Tree};
use nix::{
    errno::Errno,
    poll::{PollFd, PollFlags, PollTimeout, poll},
    sys::{
        signal::{SigSet, Signal, raise},
        signalfd::{SfdFlags, SignalFd},
    },
    unistd::dup2_stdout,
};

/// Time between asking a server to end (SIGTERM) and killing it.
const GRACE: Duration = Duration::from_secs(2);

/// Signals that belong to the server: what a client, a terminal or an init system sends.
const FORWARDED: [Signal; 7] = [
    Signal::SIGHUP,
    Signal::SIGINT,
    Signal::SIGQUIT,
    Signal::SIGTERM,
    Signal::SIGUSR1,
    Signal::SIGUSR2,
    Signal::SIGWINCH,
];

/// Signals as something that can be polled.
pub struct Signals(SignalFd);

impl Signals {
    /// Blocks the signals and reads them from a descriptor. The sandbox gives the server an empty mask.
    pub fn block() -> nix::Result<Self> {
        let mask: SigSet = FORWARDED.into_iter().collect();
        mask.thread_block()?;
        SignalFd::with_flags(&mask, SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC).map(Self)
    }

    /// Gives the signals their usual effect again.
    pub fn release() {
        // It fails for no valid mask (sigprocmask(2)).
        let _ = FORWARDED.into_iter().collect::<SigSet>().thread_unblock();
    }

    fn next(&self) -> Option<i32> {
        let info = self.0.read_signal().ok().flatten()?;
        i32::try_from(info.ssi_signo).ok()
    }
}

/// What is running.
enum Stage {
    /// The engine decides.
    Planning,
    /// The install step runs until this time.
    Installing(Tree, Instant),
    /// The server runs; when it was asked to end, it is killed at this time.
    Running(Server, Option<Instant>),
    /// The server has ended; the engine writes the rest of its output.
    Draining(Exit),
}

struct Server {
    tree: Tree,
    /// Duplicate of what the engine writes to. An end of the stream needs both closed.
    stdin: Option<OwnedFd>,
    /// Duplicate of what the engine reads from.
    _stdout: OwnedFd,
}

/// Asks the engine, runs the server, and ends as the server did. An error means that nothing runs.
pub fn run(socket: UnixStream, request: &LaunchRequest, signals: Signals) -> Result<ExitCode, String> {
    let mut engine = Connection::new(socket);
    let lost = |e: WireError| format!("the Firedoor engine does not answer ({e}); the server was not started");
    engine.send(&Hello { protocol: PROTOCOL, role: Role::Shim }, &[]).map_err(lost)?;
    engine.send(&ToEngine::Launch(request.clone()), &[]).map_err(lost)?;
    let mut stage = Stage::Planning;
    loop {
        let ready = wait(&engine, &signals, &stage).map_err(|e| format!("waiting failed: {e}"))?;
        while let Some(signal) = signals.next() {
            match &stage {
                Stage::Running(server, _) => {
                    // The server may have just ended; its exit is the next event.
                    let _ = server.tree.signal(signal);
                }
                // Dropping an install step's tree kills it.
                Stage::Planning | Stage::Installing(..) | Stage::Draining(_) => return Ok(end(Exit::Signal(signal))),
            }
        }
        // One read may bring several messages, and the socket is then no longer readable.
        while ready.engine {
            match engine.try_receive::<ToShim>() {
                Ok(None) => break,
                Ok(Some(message)) => match obey(message, stage, &engine)? {
                    Next::Stage(next) => stage = next,
                    Next::End(exit) => return Ok(end(exit)),
                },
                Err(e) => return without_engine(stage, &e),
            }
        }
        stage = advance(stage, &engine)?;
    }
}

struct Ready {
    engine: bool,
}

fn wait(engine: &Connection, signals: &Signals, stage: &Stage) -> io::Result<Ready> {
    let mut fds =
        vec![PollFd::new(engine.as_fd(), PollFlags::POLLIN), PollFd::new(signals.0.as_fd(), PollFlags::POLLIN)];
    let deadline = match stage {
        Stage::Planning | Stage::Draining(_) => None,
        Stage::Installing(tree, limit) => {
            fds.push(PollFd::new(tree.exited_fd(), PollFlags::POLLIN));
            Some(*limit)
        }
        Stage::Running(server, limit) => {
            fds.push(PollFd::new(server.tree.exited_fd(), PollFlags::POLLIN));
            *limit
        }
    };
    let timeout = match deadline {
        None => PollTimeout::NONE,
        Some(at) => {
            let left = at.saturating_duration_since(Instant::now());
            PollTimeout::try_from(left.as_millis() + 1).unwrap_or(PollTimeout::MAX)
        }
    };
    match poll(&mut fds, timeout) {
        Err(Errno::EINTR) | Ok(_) => {}
        Err(e) => return Err(e.into()),
    }
    let any = |fd: Option<&PollFd<'_>>| fd.and_then(PollFd::any).unwrap_or(false);
    Ok(Ready { engine: any(fds.first()) })
}

enum Next {
    Stage(Stage),
    End(Exit),
}

/// Does what the engine says.
fn obey(message: ToShim, stage: Stage, engine: &Connection) -> Result<Next, String> {
    Ok(Next::Stage(match (message, stage) {
        (ToShim::Refuse { text }, Stage::Planning) => return Err(text),
        (ToShim::Install { step, limit }, Stage::Planning) => match install(&step) {
            Ok(tree) => Stage::Installing(tree, Instant::now() + limit),
            Err(detail) => {
                report(engine, &ToEngine::Installed { ok: false, detail })?;
                Stage::Planning
            }
        },
        (ToShim::Run { step }, Stage::Planning) => match serve(&step, engine) {
            Ok(server) => Stage::Running(server, None),
            Err(detail) => {
                report(engine, &ToEngine::Failed { detail: detail.clone() })?;
                return Err(detail);
            }
        },
        (ToShim::CloseServerStdin, Stage::Running(mut server, limit)) => {
            server.stdin = None;
            Stage::Running(server, limit)
        }
        (ToShim::CloseClientStdout, stage) => {
            if let Ok(null) = File::options().write(true).open("/dev/null") {
                // Where it fails the client sees the end of the stream when we exit.
                let _ = dup2_stdout(null);
            }
            stage
        }
        (ToShim::Stop, Stage::Running(server, limit)) => {
            let _ = server.tree.signal(Signal::SIGTERM as i32);
            Stage::Running(server, limit.or_else(|| Some(Instant::now() + GRACE)))
        }
        (ToShim::Stop, Stage::Planning | Stage::Installing(..)) => {
            return Ok(Next::End(Exit::Signal(Signal::SIGTERM as i32)));
        }
        (ToShim::Drained | ToShim::Stop, Stage::Draining(exit)) => return Ok(Next::End(exit)),
        // What comes too late, or makes no sense now, changes nothing.
        (_, stage) => stage,
    }))
}

/// Looks whether something has ended or taken too long.
fn advance(stage: Stage, engine: &Connection) -> Result<Stage, String> {
    Ok(match stage {
        Stage::Installing(mut tree, limit) => {
            let late = Instant::now() >= limit;
            if !late && !ended(&tree) {
                return Ok(Stage::Installing(tree, limit));
            }
            let (ok, detail) = if late {
                drop(tree);
                (false, "it took too long and was stopped".to_owned())
            } else {
                let exit = tree.wait().map_err(|e| format!("the install step was lost: {e}"))?;
                (exit == Exit::Code(0), format!("it {exit}; its output is above, in the client's log of this server"))
            };
            report(engine, &ToEngine::Installed { ok, detail })?;
            Stage::Planning
        }
        Stage::Running(mut server, limit) => {
            if limit.is_some_and(|at| Instant::now() >= at) {
                let _ = server.tree.kill();
            } else if !ended(&server.tree) {
                return Ok(Stage::Running(server, limit));
            }
            let exit = server.tree.wait().map_err(|e| format!("the server was lost: {e}"))?;
            let said = match exit {
                Exit::Code(code) => Ended::Code(code),
                Exit::Signal(signal) => Ended::Signal(signal),
            };
            report(engine, &ToEngine::Exited(said))?;
            Stage::Draining(exit)
        }
        stage @ (Stage::Planning | Stage::Draining(_)) => stage,
    })
}

fn ended(tree: &Tree) -> bool {
    let mut fd = [PollFd::new(tree.exited_fd(), PollFlags::POLLIN)];
    poll(&mut fd, PollTimeout::ZERO).is_ok_and(|n| n > 0)
}

fn report(engine: &Connection, message: &ToEngine) -> Result<(), String> {
    engine.send(message, &[]).map_err(|e| format!("the Firedoor engine has gone ({e})"))
}

/// Starts the install step. What it prints goes to our stderr: stdout is the protocol.
fn install(step: &Step) -> Result<Tree, String> {
    let null = File::open("/dev/null").map_err(|e| format!("cannot open /dev/null: {e}"))?;
    let output = io::stderr().as_fd().try_clone_to_owned().map_err(|e| format!("cannot use stderr: {e}"))?;
    let launch = Launch { step, stdin: null.into(), stdout: output, stderr: Stderr::Inherit };
    firedoor_sandbox::spawn(launch).map_err(|e| e.to_string())
}

/// Starts the server and hands the four ends of its streams over.
fn serve(step: &Step, engine: &Connection) -> Result<Server, String> {
    let pipe = || io::pipe().map_err(|e| format!("cannot make a pipe: {e}"));
    let ((server_stdin, to_server), (from_server, server_stdout)) = (pipe()?, pipe()?);
    let launch = Launch { step, stdin: server_stdin.into(), stdout: server_stdout.into(), stderr: Stderr::Inherit };
    let tree = firedoor_sandbox::spawn(launch).map_err(|e| e.to_string())?;
    let started = ToEngine::Started {
        pid: u32::try_from(tree.pid()).unwrap_or_default(),
        level: tree.outcome().level.sentence().to_owned(),
    };
    let (stdin, stdout) = (io::stdin(), io::stdout());
    engine
        .send(&started, &[stdin.as_fd(), stdout.as_fd(), to_server.as_fd(), from_server.as_fd()])
        .map_err(|e| format!("the Firedoor engine has gone ({e}); the server was stopped"))?;
    Ok(Server { tree, stdin: Some(to_server.into()), _stdout: from_server.into() })
}

/// The engine has gone: end what runs, and say so.
fn without_engine(stage: Stage, why: &WireError) -> Result<ExitCode, String> {
    match stage {
        Stage::Planning | Stage::Installing(..) => {
            Err(format!("the Firedoor engine has gone ({why}); the server was not started"))
        }
        // Dropping the tree kills it. The client sees the end of the stream and may start the server again.
        Stage::Running(server, _) => {
            drop(server);
            crate::say(&format!("the Firedoor engine has gone ({why}); the server was stopped"));
            Ok(ExitCode::FAILURE)
        }
        Stage::Draining(exit) => Ok(end(exit)),
    }
}

/// Ends as the server did: with its code, or by its signal.
fn end(exit: Exit) -> ExitCode {
    match exit {
        Exit::Code(code) => ExitCode::from(u8::try_from(code & 0xff).unwrap_or(1)),
        Exit::Signal(number) => {
            Signals::release();
            if let Ok(signal) = Signal::try_from(number) {
                let _ = raise(signal);
            }
            ExitCode::from(u8::try_from(exit.shell_code() & 0xff).unwrap_or(1))
        }
    }
}
