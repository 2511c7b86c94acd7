//! The engine's socket: making it, finding it, starting an engine behind it.

use std::{
    ffi::OsString,
    fs::{self, File},
    io::{self, Read, Seek, SeekFrom},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use firedoor_model::paths::Paths;

#[cfg(unix)]
#[path = "endpoint/unix.rs"]
mod system;
#[cfg(windows)]
#[path = "endpoint/windows.rs"]
mod system;

pub use system::{Listener, Lock, Stream, connect, paths, private_directory};

/// How long a shim or a command waits for an engine that it started.
pub const START_LIMIT: Duration = Duration::from_secs(10);

/// How long a new engine waits for one that is ending: what that one still writes takes milliseconds.
const ENDING_LIMIT: Duration = Duration::from_secs(5);

/// How long a caller waits for another one that is starting the engine: a little longer than that one waits itself.
const TURN_LIMIT: Duration = START_LIMIT.saturating_add(Duration::from_secs(2));

/// Why the socket cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum EndpointError {
    /// Another engine holds the lock.
    #[error("another Firedoor engine is running (it holds {}): use it, or stop it first", .0.display())]
    Running(PathBuf),
    /// A directory is not ours alone.
    #[error("{} must be a directory owned by you with mode 0700, but it {what}: fix or remove it", .path.display())]
    Directory {
        /// The directory.
        path: PathBuf,
        /// What is wrong.
        what: &'static str,
    },
    /// No engine answers.
    #[error("no Firedoor engine is running: start one with `firedoor daemon`")]
    NoEngine,
    /// The user switched Firedoor off.
    #[error("Firedoor is off: start it with the desktop app or `firedoor daemon`")]
    Off,
    /// The process behind the socket belongs to another user.
    #[error("the engine's socket {} is served by another user: remove it", .0.display())]
    Foreign(PathBuf),
    /// The engine was started but did not come up.
    #[error("the Firedoor engine did not start: {0}")]
    Start(String),
    /// The same, in the engine's own words.
    #[error("{0}")]
    Said(String),
    /// The directory of the log cannot be made, or written to.
    #[error("cannot write {}, the engine's log: {source}. {STATE}", .path.display())]
    State {
        /// Which file.
        path: PathBuf,
        /// What the system said.
        source: Box<EndpointError>,
    },
    /// A socket's address has 108 bytes, the last of which is zero (unix(7)).
    #[error("the path of the engine's socket is too long for the system ({}): set XDG_RUNTIME_DIR to a shorter directory", .0.display())]
    TooLong(PathBuf),
    /// The directory of the socket cannot be made.
    #[error("cannot create {}, where the engine's socket has to be: {source}. {RUNTIME}", .path.display())]
    Runtime {
        /// Which directory.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The pipe that stands for the socket on Windows.
    #[cfg(windows)]
    #[error(transparent)]
    Pipe(#[from] crate::pipe::PipeError),
    /// A file operation failed.
    #[error("cannot {what} {}: {source}", .path.display())]
    Io {
        /// What was tried.
        what: &'static str,
        /// On which file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

/// What to do where the directory of the socket cannot be made.
const RUNTIME: &str = if cfg!(windows) {
    "Make the directory that it lies in writable for you"
} else {
    "Set XDG_RUNTIME_DIR to a directory that you may write to, or unset it"
};

/// The same of its log.
const STATE: &str = if cfg!(windows) {
    "Make the directory that it lies in writable for you"
} else {
    "Make that directory writable for you, or set XDG_STATE_HOME to one that is"
};

fn runtime_directory(paths: &Paths) -> Result<(), EndpointError> {
    private_directory(&paths.runtime).map_err(|e| match e {
        EndpointError::Io { what: "create", path, source } => EndpointError::Runtime { path, source },
        other => other,
    })
}

fn io_error(what: &'static str, path: &Path) -> impl FnOnce(io::Error) -> EndpointError {
    let path = path.to_owned();
    move |source| EndpointError::Io { what, path, source }
}

/// The engine's side: what it listens with, and the lock that makes this engine the only one. Dropping it takes the name back.
pub struct Endpoint {
    listener: Option<Listener>,
    paths: Paths,
    _lock: Lock,
}

impl Endpoint {
    /// Takes the lock and listens. What an engine that died has left behind is replaced. An engine that is about to
    /// end, which nobody can connect to any more, is waited for.
    pub fn bind(paths: &Paths) -> Result<Self, EndpointError> {
        runtime_directory(paths)?;
        let held = lock(&paths.lock(), ENDING_LIMIT, || connect(paths).is_err())?;
        let lock = held.ok_or_else(|| EndpointError::Running(paths.lock()))?;
        let listener = system::listen(paths)?;
        remove(&paths.off())?;
        Ok(Self { listener: Some(listener), paths: paths.clone(), _lock: lock })
    }

    /// Takes the listener, once.
    pub fn take_listener(&mut self) -> Option<Listener> {
        self.listener.take()
    }

    /// Takes the name back, so that nobody finds an engine that is about to end. The lock stays.
    pub fn hide(&self) {
        system::hide(&self.paths);
    }
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        self.hide();
    }
}

fn remove(path: &Path) -> Result<(), EndpointError> {
    match fs::remove_file(path) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => Err(io_error("replace", path)(e)),
        _ => Ok(()),
    }
}

/// Notes that the user switched Firedoor off, so that shims do not start it again.
pub fn switch_off(paths: &Paths) -> Result<(), EndpointError> {
    let path = paths.off();
    system::write_empty(&path).map_err(io_error("write", &path))
}

/// Connects to a running engine, or starts `firedoor daemon` and connects to that. `var` reads the caller's environment.
///
/// Of several callers one starts the engine, under a lock; the others wait for it.
pub fn connect_or_start(
    paths: &Paths,
    firedoor: &Path,
    var: impl Fn(&str) -> Option<OsString>,
) -> Result<Stream, EndpointError> {
    match connect(paths) {
        Err(EndpointError::NoEngine) => {}
        other => return other,
    }
    runtime_directory(paths)?;
    if paths.off().exists() {
        return Err(EndpointError::Off);
    }
    let _turn = turn(&paths.runtime.join("start.lock"), TURN_LIMIT)?;
    match connect(paths) {
        Err(EndpointError::NoEngine) => {}
        other => return other,
    }
    start_engine(paths, firedoor, var)?;
    connect(paths)
}

/// Takes the lock of a file, which only one process has. `None` when another has it.
pub fn only_one(path: &Path) -> Result<Option<Lock>, EndpointError> {
    Ok(system::try_lock(system::open_lock(path)?).map_err(io_error("lock", path))?.ok())
}

/// Waits for the turn to start the engine. Whoever has it may have been stopped with it, so this must end.
fn turn(path: &Path, limit: Duration) -> Result<Lock, EndpointError> {
    let held = || format!("another process has been starting it for too long: end what holds {}", path.display());
    lock(path, limit, || true)?.ok_or_else(|| EndpointError::Start(held()))
}

/// Takes the lock of a file; while another process has it, waits for at most `limit` and as long as `worth` says. `None` when
/// it still has it then.
pub fn lock(path: &Path, limit: Duration, worth: impl Fn() -> bool) -> Result<Option<Lock>, EndpointError> {
    let deadline = Instant::now() + limit;
    let mut file = system::open_lock(path)?;
    loop {
        file = match system::try_lock(file).map_err(io_error("lock", path))? {
            Ok(lock) => return Ok(Some(lock)),
            Err(file) if Instant::now() < deadline && worth() => file,
            Err(_) => return Ok(None),
        };
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Has an engine started that outlives us and does not descend from us, and waits until it listens.
fn start_engine(paths: &Paths, firedoor: &Path, var: impl Fn(&str) -> Option<OsString>) -> Result<(), EndpointError> {
    let mut command = Command::new(firedoor);
    command.args(["daemon", "--background"]).env_clear().current_dir(system::ROOT);
    command.envs(system::KEPT.iter().filter_map(|name| Some((name, var(name)?))));
    system::apart(&mut command);
    let mut start = Start::begin(paths, command)?;
    // It ends once it knows; what it said went into the log.
    start.child.wait().map_err(io_error("wait for", firedoor))?;
    if start.ready() { Ok(()) } else { Err(start.failure()) }
}

/// The second half of `firedoor daemon --background`: starts the engine itself with this command, which lives on without our
/// streams, and waits until it says that it listens, or why not.
pub fn start_apart(paths: &Paths, command: Command) -> Result<(), EndpointError> {
    let start = Start::begin(paths, command)?;
    let said = String::from_utf8_lossy(&start.said).trim().to_owned();
    match start.ready() {
        true => Ok(()),
        false if said.is_empty() => Err(start.failure()),
        false => Err(EndpointError::Said(said)),
    }
}

/// An engine that was started, up to the first line on its stdout.
struct Start {
    child: Child,
    said: Vec<u8>,
    /// Whether it said that in time, or closed its stdout.
    in_time: bool,
    log: PathBuf,
    /// The log's length before.
    before: u64,
}

impl Start {
    /// Its stderr leads to the log.
    fn begin(paths: &Paths, mut command: Command) -> Result<Self, EndpointError> {
        let log = paths.state.join("engine.log");
        let stderr = private_directory(&paths.state).and_then(|()| system::open_log(&log));
        let stderr = stderr.map_err(|e| match e {
            EndpointError::Io { .. } => EndpointError::State { path: log.clone(), source: Box::new(e) },
            other => other,
        })?;
        let before = stderr.metadata().map_or(0, |m| m.len());
        let (ready, stdout) = io::pipe().map_err(|e| EndpointError::Start(e.to_string()))?;
        command.stdin(Stdio::null()).stdout(stdout).stderr(stderr);
        system::keep_streams();
        let program = PathBuf::from(command.get_program());
        let child = command.spawn().map_err(io_error("start", &program))?;
        // `command` holds the pipe's write end: with it gone, the end of the stream means that the engine is gone.
        drop(command);
        let deadline = Instant::now() + START_LIMIT;
        let said = system::first_line(ready, deadline).map_err(|e| EndpointError::Start(e.to_string()))?;
        Ok(Self { child, said, in_time: Instant::now() < deadline, log, before })
    }

    fn ready(&self) -> bool {
        self.said.starts_with(b"ready\n")
    }

    fn failure(mut self) -> EndpointError {
        let why = if self.in_time { "it ended" } else { "it gave no sign in time" };
        let status = if self.in_time { self.child.wait().ok() } else { self.child.try_wait().ok().flatten() };
        let status = status.map(|status| format!(" ({status})")).unwrap_or_default();
        let last = last_line(&self.log, self.before).map(|line| format!(": {line}")).unwrap_or_default();
        EndpointError::Start(format!("{why}{status}{last}; see {}", self.log.display()))
    }
}

/// The last line of what was added to a log since it had `before` bytes, shortened.
fn last_line(log: &Path, before: u64) -> Option<String> {
    let mut file = File::open(log).ok()?;
    let end = file.metadata().ok()?.len();
    file.seek(SeekFrom::Start(before.max(end.saturating_sub(4096)))).ok()?;
    let mut bytes = Vec::new();
    file.take(4096).read_to_end(&mut bytes).ok()?;
    let text = String::from_utf8_lossy(&bytes);
    let line = text.lines().rev().find(|line| !line.trim().is_empty())?;
    Some(line.chars().filter(|c| !c.is_control()).take(300).collect())
}

#[cfg(unix)]
#[cfg(test)]
mod tests;
