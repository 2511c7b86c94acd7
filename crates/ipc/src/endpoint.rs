//! The engine's socket: making it, finding it, starting an engine behind it.

use std::{
    ffi::OsString,
    fs::{self, DirBuilder, File, OpenOptions},
    io::{self, Read, Seek, SeekFrom},
    os::{
        fd::AsFd,
        unix::{
            fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt},
            net::{UnixListener, UnixStream},
        },
    },
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use firedoor_model::paths::{NoHome, Paths};
use nix::{
    errno::Errno,
    fcntl::{Flock, FlockArg},
    unistd::{User, getuid},
};

use crate::process;

/// How long a shim or a command waits for an engine that it started.
pub const START_LIMIT: Duration = Duration::from_secs(10);

/// How long a new engine waits for one that is ending: what that one still writes takes milliseconds.
const ENDING_LIMIT: Duration = Duration::from_secs(5);

/// How long a caller waits for another one that is starting the engine: a little longer than that one waits itself.
const TURN_LIMIT: Duration = START_LIMIT.saturating_add(Duration::from_secs(2));

/// Variables that an engine started by a shim keeps: what finding the user's directories, bus and display needs.
const KEPT: [&str; 16] = [
    "HOME",
    "PATH",
    "USER",
    "LOGNAME",
    "LANG",
    "LC_ALL",
    "XDG_CONFIG_HOME",
    "XDG_STATE_HOME",
    "XDG_DATA_HOME",
    "XDG_CACHE_HOME",
    "XDG_RUNTIME_DIR",
    "DBUS_SESSION_BUS_ADDRESS",
    "DISPLAY",
    "WAYLAND_DISPLAY",
    "XAUTHORITY",
    "CLAUDE_CONFIG_DIR",
];

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
    /// A socket's address has 108 bytes, the last of which is zero (unix(7)).
    #[error("the path of the engine's socket is too long for the system ({}): set XDG_RUNTIME_DIR to a shorter directory", .0.display())]
    TooLong(PathBuf),
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

fn io_error(what: &'static str, path: &Path) -> impl FnOnce(io::Error) -> EndpointError {
    let path = path.to_owned();
    move |source| EndpointError::Io { what, path, source }
}

/// Firedoor's directories for a process with this environment.
///
/// Some clients give their servers only a few variables, `XDG_RUNTIME_DIR` not among them, and their shims must still find
/// the engine that was started with it. systemd puts it at /run/user/UID (pam_systemd(8)); that is taken when the home is
/// the one that the user database names, so that another home keeps its things apart.
pub fn paths(var: impl Fn(&str) -> Option<OsString>) -> Result<Paths, NoHome> {
    Paths::from_env(|name| match name {
        "XDG_RUNTIME_DIR" => var(name).or_else(|| usual_runtime(var("HOME")?)),
        _ => var(name),
    })
}

fn usual_runtime(home: OsString) -> Option<OsString> {
    let user = User::from_uid(getuid()).ok()??;
    let directory = PathBuf::from(format!("/run/user/{}", user.uid));
    let ours = fs::symlink_metadata(&directory).is_ok_and(|meta| meta.is_dir() && meta.uid() == user.uid.as_raw());
    (ours && user.dir == Path::new(&home)).then(|| directory.into())
}

/// Creates a directory of mode 0700 or checks that it is one and ours.
pub fn private_directory(path: &Path) -> Result<(), EndpointError> {
    DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(io_error("create", path))?;
    let meta = fs::symlink_metadata(path).map_err(io_error("inspect", path))?;
    let wrong = |what| Err(EndpointError::Directory { path: path.to_owned(), what });
    if !meta.is_dir() {
        return wrong("is something else");
    }
    if meta.uid() != getuid().as_raw() {
        return wrong("belongs to another user");
    }
    if meta.permissions().mode() & 0o077 != 0 {
        // Made by us under another umask, or widened by mistake: narrowing it is always right.
        fs::set_permissions(path, fs::Permissions::from_mode(0o700)).map_err(io_error("protect", path))?;
    }
    Ok(())
}

fn open_lock(path: &Path) -> Result<File, EndpointError> {
    OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .mode(0o600)
        .custom_flags(nix::libc::O_NOFOLLOW)
        .open(path)
        .map_err(io_error("open", path))
}

/// The engine's side: the listening socket, and the lock that makes this engine the only one. Dropping it removes the
/// socket.
pub struct Endpoint {
    listener: Option<UnixListener>,
    path: PathBuf,
    _lock: Flock<File>,
}

impl Endpoint {
    /// Takes the lock and listens. A socket left behind by an engine that died is replaced. An engine that is about to
    /// end, which nobody can connect to any more, is waited for.
    pub fn bind(paths: &Paths) -> Result<Self, EndpointError> {
        private_directory(&paths.runtime)?;
        let held = lock(&paths.lock(), ENDING_LIMIT, || connect(paths).is_err())?;
        let lock = held.ok_or_else(|| EndpointError::Running(paths.lock()))?;
        let path = paths.socket();
        for old in [&path, &paths.off()] {
            match fs::remove_file(old) {
                Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(io_error("replace", old)(e)),
                _ => {}
            }
        }
        let listener = UnixListener::bind(&path).map_err(io_error("listen on", &path))?;
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).map_err(io_error("protect", &path))?;
        Ok(Self { listener: Some(listener), path, _lock: lock })
    }
}

/// Notes that the user switched Firedoor off, so that shims do not start it again.
pub fn switch_off(paths: &Paths) -> Result<(), EndpointError> {
    let path = paths.off();
    OpenOptions::new()
        .create(true)
        .truncate(true)
        .write(true)
        .mode(0o600)
        .open(&path)
        .map(drop)
        .map_err(io_error("write", &path))
}

impl Endpoint {
    /// Takes the listener, once.
    pub fn take_listener(&mut self) -> Option<UnixListener> {
        self.listener.take()
    }

    /// Removes the socket, so that nobody finds an engine that is about to end. The lock stays.
    pub fn hide(&self) {
        // A leftover is harmless: the next engine replaces it.
        let _ = fs::remove_file(&self.path);
    }
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        self.hide();
    }
}

/// Connects to a running engine of the same user.
pub fn connect(paths: &Paths) -> Result<UnixStream, EndpointError> {
    let path = paths.socket();
    let socket = UnixStream::connect(&path).map_err(|e| match e.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => EndpointError::NoEngine,
        io::ErrorKind::InvalidInput => EndpointError::TooLong(path.clone()),
        _ => io_error("connect to", &path)(e),
    })?;
    let peer = process::peer(socket.as_fd()).map_err(io_error("check the engine behind", &path))?;
    if peer.uid != getuid().as_raw() {
        return Err(EndpointError::Foreign(path));
    }
    Ok(socket)
}

/// Connects to a running engine, or starts `firedoor daemon` and connects to that. `var` reads the caller's environment.
///
/// Of several callers one starts the engine, under a lock; the others wait for it.
pub fn connect_or_start(
    paths: &Paths,
    firedoor: &Path,
    var: impl Fn(&str) -> Option<OsString>,
) -> Result<UnixStream, EndpointError> {
    match connect(paths) {
        Err(EndpointError::NoEngine) => {}
        other => return other,
    }
    private_directory(&paths.runtime)?;
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
pub fn only_one(path: &Path) -> Result<Option<Flock<File>>, EndpointError> {
    match Flock::lock(open_lock(path)?, FlockArg::LockExclusiveNonblock) {
        Ok(lock) => Ok(Some(lock)),
        Err((_, Errno::EWOULDBLOCK)) => Ok(None),
        Err((_, e)) => Err(io_error("lock", path)(e.into())),
    }
}

/// Waits for the turn to start the engine. Whoever has it may have been stopped with it, so this must end.
fn turn(path: &Path, limit: Duration) -> Result<Flock<File>, EndpointError> {
    let held = || format!("another process has been starting it for too long: end what holds {}", path.display());
    lock(path, limit, || true)?.ok_or_else(|| EndpointError::Start(held()))
}

/// Takes the lock of a file; while another process has it, waits for at most `limit` and as long as `worth` says. `None` when
/// it still has it then.
pub fn lock(path: &Path, limit: Duration, worth: impl Fn() -> bool) -> Result<Option<Flock<File>>, EndpointError> {
    let deadline = Instant::now() + limit;
    let mut file = open_lock(path)?;
    loop {
        file = match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
            Ok(lock) => return Ok(Some(lock)),
            Err((file, Errno::EWOULDBLOCK)) if Instant::now() < deadline && worth() => file,
            Err((_, Errno::EWOULDBLOCK)) => return Ok(None),
            Err((_, e)) => return Err(io_error("lock", path)(e.into())),
        };
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Starts an engine that outlives us, and waits until it listens.
fn start_engine(paths: &Paths, firedoor: &Path, var: impl Fn(&str) -> Option<OsString>) -> Result<(), EndpointError> {
    private_directory(&paths.state)?;
    let log = paths.state.join("engine.log");
    let stderr = OpenOptions::new()
        .create(true)
        .append(true)
        .mode(0o600)
        .custom_flags(nix::libc::O_NOFOLLOW)
        .open(&log)
        .map_err(io_error("open", &log))?;
    let before = stderr.metadata().map_or(0, |m| m.len());
    let (mut ready, stdout) = io::pipe().map_err(|e| EndpointError::Start(e.to_string()))?;
    let mut command = Command::new(firedoor);
    command.args(["daemon", "--background"]).env_clear().current_dir("/");
    command.envs(KEPT.iter().filter_map(|name| Some((name, var(name)?))));
    // The child leaves our session by itself and hands over to a grandchild, which no longer descends from the client.
    command.stdin(Stdio::null()).stdout(stdout).stderr(stderr);
    let mut child = command.spawn().map_err(io_error("start", firedoor))?;
    // `command` holds the pipe's write end: with it gone, the end of the stream means that the engine is gone.
    drop(command);
    let status = child.wait().map_err(io_error("wait for", firedoor))?;
    let deadline = Instant::now() + START_LIMIT;
    let mut said = Vec::new();
    let mut chunk = [0; 256];
    while said.len() < 4096 && !said.contains(&b'\n') {
        let left = deadline.saturating_duration_since(Instant::now());
        let mut polled = [nix::poll::PollFd::new(ready.as_fd(), nix::poll::PollFlags::POLLIN)];
        let timeout = nix::poll::PollTimeout::try_from(left).unwrap_or(nix::poll::PollTimeout::MAX);
        match nix::poll::poll(&mut polled, timeout) {
            Err(Errno::EINTR) => continue,
            Ok(0) => break,
            other => other.map_err(|e| EndpointError::Start(e.to_string()))?,
        };
        match ready.read(&mut chunk).map_err(|e| EndpointError::Start(e.to_string()))? {
            0 => break,
            n => said.extend_from_slice(chunk.get(..n).unwrap_or_default()),
        }
    }
    if said.starts_with(b"ready\n") {
        return Ok(());
    }
    let why = if Instant::now() < deadline { "it ended" } else { "it gave no sign in time" };
    let last = last_line(&log, before).map(|line| format!(": {line}")).unwrap_or_default();
    Err(EndpointError::Start(format!("{why} ({status}){last}; see {}", log.display())))
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

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(root: &Path) -> Paths {
        Paths::from_env(|name| match name {
            "HOME" => Some(root.into()),
            "XDG_RUNTIME_DIR" => Some(root.join("run").into()),
            _ => None,
        })
        .unwrap()
    }

    #[test]
    fn another_home_keeps_its_things_apart() {
        let look = |name: &str| (name == "HOME").then(|| OsString::from("/nonexistent/home"));
        let paths = super::paths(look).unwrap();
        assert_eq!(paths.runtime, Path::new("/nonexistent/home/.local/state/firedoor/run"));
        let named = |name: &str| Some(OsString::from(if name == "XDG_RUNTIME_DIR" { "/r" } else { "/h" }));
        assert_eq!(super::paths(named).unwrap().runtime, Path::new("/r/firedoor"));
    }

    #[test]
    fn one_engine_at_a_time_and_stale_sockets_are_replaced() {
        let root = tempfile::tempdir().unwrap();
        let paths = paths(root.path());
        assert!(matches!(connect(&paths), Err(EndpointError::NoEngine)));
        let first = Endpoint::bind(&paths).unwrap();
        assert!(connect(&paths).is_ok());
        assert!(matches!(Endpoint::bind(&paths), Err(EndpointError::Running(_))));
        drop(first);
        // A socket file without a listener, as after `kill -9`.
        drop(UnixListener::bind(paths.socket()).unwrap());
        assert!(matches!(connect(&paths), Err(EndpointError::NoEngine)));
        assert!(Endpoint::bind(&paths).is_ok());
    }

    #[test]
    fn switched_off_stays_off_until_an_engine_is_started() {
        let root = tempfile::tempdir().unwrap();
        let paths = paths(root.path());
        private_directory(&paths.runtime).unwrap();
        switch_off(&paths).unwrap();
        let refused = connect_or_start(&paths, Path::new("/bin/true"), |_| None);
        assert!(matches!(refused, Err(EndpointError::Off)));
        drop(Endpoint::bind(&paths).unwrap());
        assert!(!paths.off().exists());
    }

    #[test]
    fn an_engine_that_is_ending_is_waited_for() {
        let root = tempfile::tempdir().unwrap();
        let paths = paths(root.path());
        let mut ending = Endpoint::bind(&paths).unwrap();
        let listener = ending.take_listener();
        assert!(matches!(Endpoint::bind(&paths), Err(EndpointError::Running(_))));
        drop(listener);
        ending.hide();
        std::thread::scope(|scope| {
            let next = scope.spawn(|| Endpoint::bind(&paths).map(drop));
            drop(ending);
            assert!(next.join().unwrap().is_ok());
        });
    }

    #[test]
    fn what_an_engine_said_at_its_end_is_told() {
        let root = tempfile::tempdir().unwrap();
        let paths = paths(root.path());
        let engine = root.path().join("engine");
        fs::write(&engine, "#!/bin/sh\necho 'firedoor: the \u{1b}[1mdisk is full' >&2\n").unwrap();
        fs::set_permissions(&engine, fs::Permissions::from_mode(0o755)).unwrap();
        let why = connect_or_start(&paths, &engine, |_| None).unwrap_err().to_string();
        assert!(why.contains("it ended (exit status: 0): firedoor: the [1mdisk is full; see"), "{why}");
    }

    #[test]
    fn whoever_starts_the_engine_for_ever_holds_nobody_up() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("start.lock");
        let held = turn(&path, Duration::ZERO).unwrap();
        let waited = turn(&path, Duration::from_millis(50));
        assert!(matches!(waited, Err(EndpointError::Start(why)) if why.contains("start.lock")));
        drop(held);
        assert!(turn(&path, Duration::ZERO).is_ok());
    }

    #[test]
    fn a_path_that_is_too_long_for_a_socket_says_so() {
        let root = tempfile::tempdir().unwrap();
        let paths = paths(&root.path().join("x".repeat(120)));
        assert!(connect(&paths).unwrap_err().to_string().contains("XDG_RUNTIME_DIR"));
    }

    #[test]
    fn the_runtime_directory_is_ours_alone() {
        let root = tempfile::tempdir().unwrap();
        let dir = root.path().join("d");
        fs::create_dir(&dir).unwrap();
        fs::set_permissions(&dir, fs::Permissions::from_mode(0o755)).unwrap();
        private_directory(&dir).unwrap();
        assert_eq!(fs::metadata(&dir).unwrap().permissions().mode() & 0o777, 0o700);
        let link = root.path().join("link");
        std::os::unix::fs::symlink(&dir, &link).unwrap();
        assert!(matches!(private_directory(&link), Err(EndpointError::Directory { .. })));
    }

    #[test]
    fn an_engine_that_cannot_start_is_an_error() {
        let root = tempfile::tempdir().unwrap();
        let paths = paths(root.path());
        let missing = connect_or_start(&paths, Path::new("/nonexistent/firedoor"), |_| None);
        assert!(missing.unwrap_err().to_string().contains("cannot start"));
        let silent = connect_or_start(&paths, Path::new("/bin/true"), |_| None);
        assert!(matches!(silent, Err(EndpointError::Start(_))));
    }
}
