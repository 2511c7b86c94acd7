//! The running engine, as a command sees it.

use std::{env, path::PathBuf, time::Duration};

use firedoor_ipc::{
    Hello, PROTOCOL, Role,
    blocking::Connection,
    command::{Reply, Request},
    endpoint::{self, EndpointError},
};
use firedoor_model::paths::Paths;

use crate::failure::Failure;

/// Firedoor's directories for this user.
pub fn paths() -> Result<Paths, Failure> {
    Ok(endpoint::paths(|name| env::var_os(name))?)
}

/// A program of ours, beside this one.
pub fn sibling(name: &str) -> Result<PathBuf, Failure> {
    let own =
        env::current_exe().map_err(|e| Failure::environment(format!("cannot find Firedoor's own directory: {e}")))?;
    Ok(own.with_file_name(name))
}

/// For one answer. The check of a long log takes the longest.
const LIMIT: Duration = Duration::from_secs(120);

/// A connection for commands.
pub struct Engine(Connection);

impl Engine {
    /// The running engine; `None` when none runs.
    pub fn running() -> Result<Option<Self>, Failure> {
        match endpoint::connect(&paths()?) {
            Ok(socket) => Self::greet(socket).map(Some),
            Err(EndpointError::NoEngine) => Ok(None),
            Err(e) => Err(e.into()),
        }
    }

    /// The running engine, or one that is started now.
    pub fn running_or_started() -> Result<Self, Failure> {
        let firedoor = sibling("firedoor")?;
        Self::greet(endpoint::connect_or_start(&paths()?, &firedoor, |name| env::var_os(name))?)
    }

    fn greet(socket: std::os::unix::net::UnixStream) -> Result<Self, Failure> {
        let connection = Connection::new(socket);
        connection.send(&Hello { protocol: PROTOCOL, role: Role::Command }, &[])?;
        Ok(Self(connection))
    }

    /// Asks, and waits for the answer. A refusal and a failure are errors.
    pub fn ask(&mut self, request: &Request) -> Result<Reply, Failure> {
        self.send(request)?;
        self.reply(Some(LIMIT))
    }

    /// Asks for something that is answered with several replies.
    pub fn send(&mut self, request: &Request) -> Result<(), Failure> {
        Ok(self.0.send(request, &[])?)
    }

    /// The next of several replies.
    pub fn next(&mut self) -> Result<Reply, Failure> {
        self.reply(None)
    }

    fn reply(&mut self, limit: Option<Duration>) -> Result<Reply, Failure> {
        match self.0.receive::<Reply>(limit)?.0 {
            Reply::Refused { text } | Reply::Failed { text } => Err(Failure::refused(text)),
            reply => Ok(reply),
        }
    }
}

/// An answer of another kind than the one asked for.
pub fn unexpected() -> Failure {
    Failure::environment("the engine gave an unexpected answer; is it of another version? Restart it")
}
