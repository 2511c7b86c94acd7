//! A socket beside the lock.

use std::{
    fs::{self, Permissions},
    io,
    os::unix::{
        fs::PermissionsExt as _,
        net::{UnixListener, UnixStream},
    },
    path::PathBuf,
};

use firedoor_model::paths::Paths;

use super::SingleError;

#[derive(Debug)]
pub struct Door(pub UnixListener);

impl Door {
    /// The lock is ours, so whoever listened there before is gone.
    pub fn bind(paths: &Paths) -> Result<Self, SingleError> {
        let socket = socket(paths);
        let failed = |what| {
            let path = socket.clone();
            move |source| SingleError::Io { what, path, source }
        };
        match fs::remove_file(&socket) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(failed("replace")(e)),
            _ => {}
        }
        let listener = UnixListener::bind(&socket).map_err(failed("listen on"))?;
        fs::set_permissions(&socket, Permissions::from_mode(0o600)).map_err(failed("protect"))?;
        Ok(Self(listener))
    }

    /// The next one who knocks.
    pub fn accept(&mut self) -> io::Result<UnixStream> {
        self.0.accept().map(|(stream, _)| stream)
    }
}

/// Where the app that runs listens.
pub fn knock(paths: &Paths) -> io::Result<UnixStream> {
    UnixStream::connect(socket(paths))
}

fn socket(paths: &Paths) -> PathBuf {
    paths.runtime.join("desktop.sock")
}
