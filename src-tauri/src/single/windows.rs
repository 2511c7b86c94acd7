//! A named pipe of the user's.

use std::{
    fmt, io, thread,
    time::{Duration, Instant},
};

use firedoor_ipc::{
    endpoint::Stream,
    pipe::{self, Listener, PipeError},
};
use firedoor_model::paths::Paths;

use super::{ENDING_LIMIT, SingleError};

/// Between two tries to listen.
const PAUSE: Duration = Duration::from_millis(20);

pub struct Door(Listener);

impl Door {
    /// The lock is ours, so whoever still has the name is an app that is ending.
    pub fn bind(paths: &Paths) -> Result<Self, SingleError> {
        let (name, deadline) = (pipe::desktop_name(paths), Instant::now() + ENDING_LIMIT);
        loop {
            match Listener::bind(&name) {
                Ok(listener) => return Ok(Self(listener)),
                Err(PipeError::Taken(_)) if Instant::now() < deadline => thread::sleep(PAUSE),
                Err(e) => {
                    let source = io::Error::other(e.to_string());
                    return Err(SingleError::Io { what: "listen on", path: name.into(), source });
                }
            }
        }
    }

    /// The next one who knocks.
    pub fn accept(&mut self) -> io::Result<Stream> {
        self.0.accept(None).map(|(connection, _)| connection)
    }
}

impl fmt::Debug for Door {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Door")
    }
}

/// Where the app that runs listens.
pub fn knock(paths: &Paths) -> Result<Stream, PipeError> {
    pipe::connect(&pipe::desktop_name(paths))
}
