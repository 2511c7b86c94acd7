//! A Unix socket in a directory of the user's.

use std::{
    ffi::OsString,
    fs::{self, DirBuilder, File, OpenOptions},
    io::{self, Read as _},
    os::{
        fd::AsFd,
        unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt},
    },
    path::{Path, PathBuf},
    process::Command,
    time::Instant,
};

use firedoor_model::paths::{NoHome, Paths};
use nix::{
    errno::Errno,
    fcntl::{Flock, FlockArg},
    poll::{PollFd, PollFlags, PollTimeout, poll},
    unistd::{User, getuid},
};

use super::{EndpointError, io_error, remove};
use crate::process;

/// What the engine listens with.
pub type Listener = std::os::unix::net::UnixListener;

/// A connection to it.
pub type Stream = std::os::unix::net::UnixStream;

/// A lock that is held. Given back when dropped, also where a child has a copy of the descriptor.
pub type Lock = Flock<File>;

/// Where an engine is started: a directory that nobody wants to remove.
pub(super) const ROOT: &str = "/";

/// Variables that an engine started by a shim keeps: what finding the user's directories, bus and display needs.
pub(super) const KEPT: [&str; 16] = [
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

pub(super) fn open_lock(path: &Path) -> Result<File, EndpointError> {
    OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .mode(0o600)
        .custom_flags(nix::libc::O_NOFOLLOW)
        .open(path)
        .map_err(io_error("open", path))
}

/// Connects to a running engine of the same user.
pub fn connect(paths: &Paths) -> Result<Stream, EndpointError> {
    let path = paths.socket();
    let socket = Stream::connect(&path).map_err(|e| match e.kind() {
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

/// Opens a file to write to at its end, which no link leads to.
pub(super) fn open_log(path: &Path) -> Result<File, EndpointError> {
    OpenOptions::new()
        .create(true)
        .append(true)
        .mode(0o600)
        .custom_flags(nix::libc::O_NOFOLLOW)
        .open(path)
        .map_err(io_error("open", path))
}

/// Makes an empty file, or empties it.
pub(super) fn write_empty(path: &Path) -> io::Result<()> {
    OpenOptions::new().create(true).truncate(true).write(true).mode(0o600).open(path).map(drop)
}

/// Takes the lock of an open file, unless another process has it: then the file is given back.
pub(super) fn try_lock(file: File) -> io::Result<Result<Lock, File>> {
    match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
        Ok(lock) => Ok(Ok(lock)),
        Err((file, Errno::EWOULDBLOCK)) => Ok(Err(file)),
        Err((_, e)) => Err(e.into()),
    }
}

/// Listens. A socket left behind by an engine that died is replaced.
pub(super) fn listen(paths: &Paths) -> Result<Listener, EndpointError> {
    let path = paths.socket();
    remove(&path)?;
    let listener = Listener::bind(&path).map_err(io_error("listen on", &path))?;
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).map_err(io_error("protect", &path))?;
    Ok(listener)
}

/// Removes the socket, so that nobody finds it any more.
pub(super) fn hide(paths: &Paths) {
    // A leftover is harmless: the next engine replaces it.
    let _ = fs::remove_file(paths.socket());
}

/// The engine leaves our session by itself (`firedoor daemon --background`) and hands over to a child, which then no longer
/// descends from the client.
pub(super) fn apart(_: &mut Command) {}

/// What is started gets no other streams than those that it is given.
pub(super) fn keep_streams() {}

/// What comes through a pipe up to the end of the first line, of at most 4 KiB, or to the end of the stream, or until `deadline`.
pub(super) fn first_line(mut from: io::PipeReader, deadline: Instant) -> io::Result<Vec<u8>> {
    let mut said = Vec::new();
    let mut chunk = [0; 256];
    while said.len() < 4096 && !said.contains(&b'\n') {
        let left = deadline.saturating_duration_since(Instant::now());
        let timeout = PollTimeout::try_from(left).unwrap_or(PollTimeout::MAX);
        match poll(&mut [PollFd::new(from.as_fd(), PollFlags::POLLIN)], timeout) {
            Err(Errno::EINTR) => continue,
            Ok(0) => break,
            other => other?,
        };
        match from.read(&mut chunk)? {
            0 => break,
            n => said.extend_from_slice(chunk.get(..n).unwrap_or_default()),
        }
    }
    Ok(said)
}
