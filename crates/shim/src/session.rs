//! One server's life, seen from the shim: a single poll loop over the engine, signals and the server's tree.

use std::{
    fs::File,
    io,
    os::fd::AsFd,
    process::ExitCode,
    time::{Duration, Instant},
};

use firedoor_ipc::{
    blocking::Connection,
    shim::{ToEngine, ToShim},
    wire::WireError,
};
use firedoor_model::{EntryId, launch::Step, login::Another, network::AttemptKind};
use firedoor_sandbox::{Exit, Launch, Notice, Stderr, Tree};
use nix::{
    errno::Errno,
    poll::{PollFd, PollFlags, PollTimeout, poll},
    sys::signal::{Signal, raise},
    unistd::dup2_stdout,
};

use crate::{
    broker::Broker,
    engines::{self, Engines, Restarts},
    refuse,
    server::{Server, Wanted, in_message, noticed},
    sys::Signals,
    words::Words,
};

/// For the engine to decide: it looks at files, which may lie on a slow disk.
const PLAN_LIMIT: Duration = Duration::from_secs(60);

/// While Firedoor is off, an engine is looked for this often.
const RETRY: u16 = 500;

/// Time between asking a server to end (SIGTERM) and killing it.
const GRACE: Duration = Duration::from_secs(2);

/// What is running.
enum Stage {
    /// The engine decides, until this time.
    Planning(Instant),
    /// The install step runs until this time.
    Installing(Tree, Instant),
    /// The server runs; when it was asked to end, it is killed at this time.
    Running(Box<Server>, Option<Instant>),
    /// The server has ended; the engine writes the rest of its output.
    Draining(Box<Server>, Exit),
}

impl Stage {
    fn planning() -> Self {
        Self::Planning(Instant::now() + PLAN_LIMIT)
    }
}

/// Asks the engine, runs the server, and ends as the server did. An error means that nothing runs.
pub fn run(engines: &Engines, entry: &EntryId, request: &ToEngine, signals: Signals) -> Result<ExitCode, String> {
    let mut engine = ask(engines, request)?;
    // While the engine plans.
    #[cfg(target_os = "linux")]
    firedoor_sandbox::prepare();
    let mut stage = Stage::planning();
    let mut restarts = Restarts::default();
    loop {
        let ready = wait(&engine, &signals, &stage).map_err(|e| format!("waiting failed: {e}"))?;
        listen(&mut stage, request, &engine);
        while let Some(signal) = signals.next() {
            match &stage {
                Stage::Running(server, _) => {
                    // The server may have just ended; its exit is the next event.
                    let _ = server.tree.signal(signal);
                }
                // Dropping an install step's tree kills it.
                Stage::Planning(_) | Stage::Installing(..) | Stage::Draining(..) => {
                    return Ok(end(Exit::Signal(signal)));
                }
            }
        }
        // One read may bring several messages, and the socket is then no longer readable.
        loop {
            if !ready.engine {
                break;
            }
            match engine.try_receive::<ToShim>() {
                Ok(None) => break,
                Ok(Some(ToShim::Off)) => match off(engines, stage, &signals)? {
                    Return::Resumed(next) => (engine, stage) = *next,
                    Return::End(exit) => return Ok(end(exit)),
                },
                Ok(Some(message)) => match obey(message, stage, entry, &engine)? {
                    Next::Stage(next) => stage = next,
                    Next::End(exit) => return Ok(end(exit)),
                },
                Err(why) => {
                    (engine, stage) = match without_engine(engines, &mut restarts, request, stage, &why)? {
                        Return::Resumed(next) => *next,
                        Return::End(exit) => return Ok(end(exit)),
                    };
                    break;
                }
            }
        }
        stage = advance(stage, &engine)?;
    }
}

/// Passes on what programs of ours say that run with the server: what stands for one that is reached over HTTP, to our
/// stderr or to the engine; what puts secrets in, to the engine.
fn listen(stage: &mut Stage, request: &ToEngine, engine: &Connection) {
    let (Stage::Running(server, _) | Stage::Draining(server, _)) = stage else { return };
    for notice in server.broker.iter_mut().flat_map(Broker::hear) {
        // As with what the guardian tells: an engine that has died meanwhile is noticed on its socket.
        let _ = report(engine, &ToEngine::Brokered(notice));
    }
    let (Some(words), ToEngine::LaunchRemote(request)) = (&mut server.words, request) else { return };
    for refused in words.hear(crate::tell) {
        // An engine that has died meanwhile is noticed on its socket; the program gives up waiting.
        let _ = report(engine, &ToEngine::RenewLogin { request: request.clone(), refused });
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

/// How a loss of the engine went on.
enum Return {
    /// With another engine.
    Resumed(Box<(Connection, Stage)>),
    /// Not at all.
    End(Exit),
}

/// The engine died. What runs goes to the next one, or to the one after that if this one dies as well.
fn without_engine(
    engines: &Engines,
    restarts: &mut Restarts,
    request: &ToEngine,
    stage: Stage,
    why: &WireError,
) -> Result<Return, String> {
    let mut why = why.to_string();
    loop {
        if !restarts.allowed() {
            // Dropping the stage kills what runs. The client sees the end of the stream.
            drop(stage);
            return Err(format!("the Firedoor engine keeps failing ({why}); the server was stopped. See engine.log"));
        }
        crate::say(&format!("the Firedoor engine has gone ({why}); starting another"));
        let (server, exit) = match &stage {
            // Nothing has begun: from the start. Dropping an install step kills it.
            Stage::Planning(_) | Stage::Installing(..) => {
                return Ok(Return::Resumed(Box::new((ask(engines, request)?, Stage::planning()))));
            }
            Stage::Running(server, _) => (server, None),
            Stage::Draining(server, exit) => (server, Some(*exit)),
        };
        let engine = engines.restart()?;
        match server.hand_over(&engine, exit) {
            Ok(()) => return Ok(Return::Resumed(Box::new((engine, stage)))),
            Err(e) => why = e,
        }
    }
}

/// The user switched Firedoor off. Answers the client so until there is an engine again.
fn off(engines: &Engines, stage: Stage, signals: &Signals) -> Result<Return, String> {
    let Stage::Running(mut server, limit) = stage else {
        return match stage {
            Stage::Draining(_, exit) => Ok(Return::End(exit)),
            Stage::Planning(_) | Stage::Installing(..) | Stage::Running(..) => Err("Firedoor was switched off".into()),
        };
    };
    let mut client = refuse::Client::default();
    loop {
        let mut fds = vec![
            PollFd::new(signals.as_fd(), PollFlags::POLLIN),
            PollFd::new(server.tree.exited_fd(), PollFlags::POLLIN),
        ];
        let stdin = io::stdin();
        if !client.closed() {
            fds.push(PollFd::new(stdin.as_fd(), PollFlags::POLLIN));
        }
        match poll(&mut fds, RETRY) {
            Err(Errno::EINTR) | Ok(_) => {}
            Err(e) => return Err(format!("waiting failed: {e}")),
        }
        let typed = fds.get(2).and_then(PollFd::any).unwrap_or(false);
        drop(fds);
        while let Some(signal) = signals.next() {
            let _ = server.tree.signal(signal);
        }
        // There is nobody to ask while Firedoor is off.
        let _ = server.tree.refuse_open();
        if ended(&server.tree) {
            return Ok(Return::End(server.tree.wait().map_err(|e| format!("the server was lost: {e}"))?));
        }
        if typed {
            client.answer("Firedoor is off: start it with the desktop app or `firedoor daemon`");
            if client.closed() {
                // The end of the stream is for the server as well.
                server.stdin = None;
            }
        }
        // Between two messages only, since what was read of one is read.
        if client.between_messages()
            && let Some(engine) = engines.running()
            && server.hand_over(&engine, None).is_ok()
        {
            return Ok(Return::Resumed(Box::new((engine, Stage::Running(server, limit)))));
        }
    }
}

struct Ready {
    engine: bool,
}

fn wait(engine: &Connection, signals: &Signals, stage: &Stage) -> io::Result<Ready> {
    let mut fds = vec![PollFd::new(engine.as_fd(), PollFlags::POLLIN), PollFd::new(signals.as_fd(), PollFlags::POLLIN)];
    let deadline = match stage {
        Stage::Planning(limit) => Some(*limit),
        Stage::Draining(server, _) => {
            fds.extend(server.words.as_ref().and_then(Words::fd).map(|fd| PollFd::new(fd, PollFlags::POLLIN)));
            None
        }
        Stage::Installing(tree, limit) => {
            fds.push(PollFd::new(tree.exited_fd(), PollFlags::POLLIN));
            Some(*limit)
        }
        Stage::Running(server, limit) => {
            fds.push(PollFd::new(server.tree.exited_fd(), PollFlags::POLLIN));
            fds.push(PollFd::new(server.tree.notices_fd(), PollFlags::POLLIN));
            fds.extend(server.broker.as_ref().and_then(Broker::fd).map(|fd| PollFd::new(fd, PollFlags::POLLIN)));
            fds.extend(server.words.as_ref().and_then(Words::fd).map(|fd| PollFd::new(fd, PollFlags::POLLIN)));
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
fn obey(message: ToShim, stage: Stage, entry: &EntryId, engine: &Connection) -> Result<Next, String> {
    Ok(Next::Stage(match (message, stage) {
        (ToShim::Refuse { text }, Stage::Planning(_)) => return Err(text),
        (ToShim::Install { step, limit }, Stage::Planning(_)) => match install(&step) {
            Ok(tree) => Stage::Installing(tree, Instant::now() + limit),
            Err(detail) => {
                report(engine, &ToEngine::Installed { ok: false, detail })?;
                Stage::planning()
            }
        },
        (ToShim::Run { step, context, observe, remote, broker }, Stage::Planning(_)) => {
            match Server::start(entry, Wanted { step, context, observe, remote, broker }, engine) {
                Ok(server) => Stage::Running(Box::new(server), None),
                Err(detail) => {
                    // With no engine to tell it is still the reason.
                    let _ = report(engine, &ToEngine::Failed { detail: detail.clone() });
                    return Err(detail);
                }
            }
        }
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
        (ToShim::Rule(ruling), Stage::Running(server, limit)) => {
            let _ = server.tree.rule(ruling);
            Stage::Running(server, limit)
        }
        (ToShim::LoginRenewed { refused, value }, Stage::Running(mut server, limit)) => {
            if let Some(words) = &mut server.words {
                words.answer(&Another { refused, value });
            }
            Stage::Running(server, limit)
        }
        (ToShim::Stop, Stage::Running(server, limit)) => {
            let _ = server.tree.signal(Signal::SIGTERM as i32);
            Stage::Running(server, limit.or_else(|| Some(Instant::now() + GRACE)))
        }
        (ToShim::Stop, Stage::Planning(_) | Stage::Installing(..)) => {
            return Ok(Next::End(Exit::Signal(Signal::SIGTERM as i32)));
        }
        (ToShim::Drained | ToShim::Stop, Stage::Draining(_, exit)) => return Ok(Next::End(exit)),
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
            Stage::planning()
        }
        Stage::Running(mut server, limit) => {
            pass_on_notices(&server.tree, engine);
            if limit.is_some_and(|at| Instant::now() >= at) {
                let _ = server.tree.kill();
            } else if !ended(&server.tree) {
                return Ok(Stage::Running(server, limit));
            }
            let exit = server.tree.wait().map_err(|e| format!("the server was lost: {e}"))?;
            // What ended it may have been told last.
            pass_on_notices(&server.tree, engine);
            // An engine that has died meanwhile is noticed on its socket.
            let _ = report(engine, &ToEngine::Exited(in_message(exit)));
            Stage::Draining(server, exit)
        }
        Stage::Planning(limit) if Instant::now() >= limit => {
            return Err(
                "the Firedoor engine does not answer; the server was not started. Stop the engine and try again".into(),
            );
        }
        stage @ (Stage::Planning(_) | Stage::Draining(..)) => stage,
    })
}

/// Passes on what the server was refused and what it wants to connect to. What it used up goes to the client's log as well.
fn pass_on_notices(tree: &Tree, engine: &Connection) {
    while let Some(notice) = tree.next_notice() {
        if let Notice::Attempted(attempt) = &notice
            && attempt.kind == AttemptKind::Resource
        {
            crate::say(&format!("the server used more than {}: {}", attempt.target.visible(200), attempt.reason));
        }
        // An engine that has died meanwhile is noticed on its socket, and what was asked is asked again.
        let _ = report(engine, &noticed(notice));
    }
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
    let launch = Launch { step, stdin: null.into(), stdout: output, stderr: Stderr::Inherit, observe: false };
    firedoor_sandbox::spawn(launch).map_err(|e| e.to_string())
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
