//! A named pipe, and a directory in the user's own part of the file system, whose access list Windows hands down to what is made in
//! it.

use std::{
    ffi::OsString,
    fs::{self, File, OpenOptions, TryLockError},
    io::{self, Read as _},
    os::windows::{
        io::{AsRawHandle as _, RawHandle},
        process::CommandExt as _,
    },
    path::Path,
    process::Command,
    sync::mpsc,
    thread,
    time::{Duration, Instant},
};

use firedoor_model::paths::{NoHome, Paths};
use windows_sys::Win32::{
    Foundation::{HANDLE_FLAG_INHERIT, SetHandleInformation},
    System::Threading::{CREATE_NEW_PROCESS_GROUP, CREATE_NO_WINDOW},
};

use super::{ENDING_LIMIT, EndpointError, io_error};
use crate::pipe::{self, PipeError};

/// What the engine listens with.
pub type Listener = pipe::Listener;

/// A connection to it.
pub type Stream = pipe::Connection;

/// A lock that is held. Given back when dropped.
pub type Lock = File;

/// Between two looks whether a name is free.
const PAUSE: Duration = Duration::from_millis(20);

/// Where an engine is started: a directory that nobody wants to remove.
pub(super) const ROOT: &str = r"C:\";

/// Variables that an engine started by a shim keeps: what finding the user's directories takes, and what Windows' own libraries ask
/// for.
pub(super) const KEPT: [&str; 16] = [
    "USERPROFILE",
    "APPDATA",
    "LOCALAPPDATA",
    "USERNAME",
    "USERDOMAIN",
    "HOMEDRIVE",
    "HOMEPATH",
    "PATH",
    "PATHEXT",
    "SystemRoot",
    "SystemDrive",
    "ProgramData",
    "ProgramFiles",
    "TEMP",
    "TMP",
    "CLAUDE_CONFIG_DIR",
];

/// Firedoor's directories for a process with this environment.
pub fn paths(var: impl Fn(&str) -> Option<OsString>) -> Result<Paths, NoHome> {
    Paths::from_env(var)
}

/// Creates a directory, or checks that it is one and no link to another. What is made below the user's own directories gets their
/// access list, which names the user, the system and its administrators.
pub fn private_directory(path: &Path) -> Result<(), EndpointError> {
    fs::create_dir_all(path).map_err(io_error("create", path))?;
    // Of a junction as well std says that it is a link.
    let meta = fs::symlink_metadata(path).map_err(io_error("inspect", path))?;
    if meta.is_dir() {
        return Ok(());
    }
    Err(EndpointError::Directory { path: path.to_owned(), what: "is something else" })
}

pub(super) fn open_lock(path: &Path) -> Result<File, EndpointError> {
    OpenOptions::new().create(true).truncate(false).write(true).open(path).map_err(io_error("open", path))
}

/// Opens a file to write to at its end.
pub(super) fn open_log(path: &Path) -> Result<File, EndpointError> {
    OpenOptions::new().create(true).append(true).open(path).map_err(io_error("open", path))
}

/// Makes an empty file, or empties it.
pub(super) fn write_empty(path: &Path) -> io::Result<()> {
    File::create(path).map(drop)
}

/// Takes the lock of an open file, unless another process has it: then the file is given back.
pub(super) fn try_lock(file: File) -> io::Result<Result<Lock, File>> {
    match file.try_lock() {
        Ok(()) => Ok(Ok(file)),
        Err(TryLockError::WouldBlock) => Ok(Err(file)),
        Err(TryLockError::Error(e)) => Err(e),
    }
}

/// Listens. The lock is ours, so whoever still has the name is an engine that is ending, whose connections close one by one.
pub(super) fn listen(paths: &Paths) -> Result<Listener, EndpointError> {
    let (name, deadline) = (pipe::name(paths), Instant::now() + ENDING_LIMIT);
    loop {
        match Listener::bind(&name) {
            Err(PipeError::Taken(_)) if Instant::now() < deadline => thread::sleep(PAUSE),
            other => return Ok(other?),
        }
    }
}

/// The name of a pipe goes with its last end.
pub(super) fn hide(_: &Paths) {}

/// Connects to a running engine of the same user.
pub fn connect(paths: &Paths) -> Result<Stream, EndpointError> {
    pipe::connect(&pipe::name(paths)).map_err(|e| match e {
        // All ends are in use, and no other is made: whoever listened there is ending.
        PipeError::Nobody(_) | PipeError::Busy(_) => EndpointError::NoEngine,
        other => other.into(),
    })
}

/// Without a console of its own or the client's, and out of the reach of the client's Ctrl+C. It hands over to a child
/// (`firedoor daemon --background`), which then no longer descends from the client.
pub(super) fn apart(command: &mut Command) {
    command.creation_flags(CREATE_NO_WINDOW | CREATE_NEW_PROCESS_GROUP);
}

/// What std starts inherits every handle that can be, and what a client has given us as streams can: an engine would hold them open.
pub(super) fn keep_streams() {
    for stream in [io::stdin().as_raw_handle(), io::stdout().as_raw_handle(), io::stderr().as_raw_handle()] {
        keep(stream);
    }
}

#[expect(unsafe_code, reason = "the interface has no safe wrapper")]
fn keep(stream: RawHandle) {
    // SAFETY: a stream of this process, or nothing, of which the call fails: then nothing is inherited either.
    unsafe { SetHandleInformation(stream, HANDLE_FLAG_INHERIT, 0) };
}

/// What comes through a pipe up to the end of the first line, of at most 4 KiB, or to the end of the stream, or until `deadline`.
pub(super) fn first_line(mut from: io::PipeReader, deadline: Instant) -> io::Result<Vec<u8>> {
    let (send, chunks) = mpsc::sync_channel(1);
    // Ends with the stream, which ends with what was started, at the latest.
    thread::Builder::new().name("ready".into()).spawn(move || {
        let mut chunk = [0; 256];
        loop {
            let read = from.read(&mut chunk).map(|n| chunk.get(..n).unwrap_or_default().to_vec());
            let last = read.as_ref().map_or(true, Vec::is_empty);
            if send.send(read).is_err() || last {
                return;
            }
        }
    })?;
    let mut said = Vec::new();
    while said.len() < 4096 && !said.contains(&b'\n') {
        match chunks.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
            Ok(chunk) => {
                let chunk = chunk?;
                if chunk.is_empty() {
                    break;
                }
                said.extend(chunk);
            }
            Err(_) => break,
        }
    }
    Ok(said)
}
