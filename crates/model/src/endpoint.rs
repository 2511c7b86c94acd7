//! Addresses on this machine at which clients that start no programs reach a server through Firedoor.

use std::{fmt, path::PathBuf};

use serde::{Deserialize, Serialize};

use crate::{EntryId, remote::Transport};

/// The client in the id of an entry that no client's configuration has: `firedoor endpoints add` made it.
pub const OWN_CLIENT: &str = "endpoint";

/// The scope of such an entry.
pub const OWN_SCOPE: &str = "user";

/// Most endpoints. Each takes a port.
pub const MAX_ENDPOINTS: usize = 256;

/// One address, behind which there is one server. Its text form says where the server is, and neither key nor values.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Endpoint {
    /// Whose server.
    pub entry: EntryId,
    /// The TCP port on 127.0.0.1; 0 until one has been found, and then the same for ever.
    pub port: u16,
    /// The secret that the path consists of: whoever knows it may use the server.
    pub key: String,
    /// The server.
    pub target: Target,
}

/// What an endpoint stands for. A value in it that is a secret stands there as a reference to the keychain.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Target {
    /// The server.
    pub server: Served,
    /// Where it is started.
    pub cwd: PathBuf,
}

/// A server behind an endpoint.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Served {
    /// A program.
    Program {
        /// The command.
        program: String,
        /// Its arguments.
        args: Vec<String>,
        /// What is set in its environment.
        env: Vec<(String, String)>,
    },
    /// Reached over HTTP.
    Remote {
        /// Its address.
        url: String,
        /// How it is spoken to.
        transport: Transport,
        /// Headers of every request.
        headers: Vec<(String, String)>,
        /// Whether the client's own headers go on to it, as they would if the client reached it itself.
        pass: bool,
    },
}

impl Endpoint {
    /// Where clients reach it; `None` until it has a port.
    pub fn address(&self) -> Option<String> {
        (self.port != 0).then(|| format!("http://127.0.0.1:{}/{}", self.port, self.key))
    }
}

impl Target {
    /// The values that may stand for secrets.
    pub fn values(&self) -> impl Iterator<Item = &String> {
        let (args, pairs): (&[String], &[(String, String)]) = match &self.server {
            Served::Program { args, env, .. } => (args, env),
            Served::Remote { headers, .. } => (&[], headers),
        };
        args.iter().chain(pairs.iter().map(|(_, value)| value))
    }
}

impl fmt::Display for Target {
    /// For people: what is started, or where it is. No value of an environment or of a header.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.server {
            Served::Program { program, args, .. } => {
                f.write_str(program)?;
                args.iter().try_for_each(|arg| write!(f, " {arg}"))
            }
            Served::Remote { url, .. } => f.write_str(url),
        }
    }
}

impl fmt::Debug for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Target({self})")
    }
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Endpoint({} {} {})", self.entry, self.port, self.target)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_shown() {
        let server = Served::Program {
            program: "npx".into(),
            args: vec!["-y".into(), "srv".into()],
            env: vec![("TOKEN".into(), "firedoor-secret:endpoint/user/x/TOKEN".into())],
        };
        let target = Target { server, cwd: "/".into() };
        assert_eq!(target.to_string(), "npx -y srv");
        assert_eq!(target.values().count(), 3);
        let endpoint = Endpoint { entry: "a/b/c".parse().unwrap(), port: 0, key: "k".into(), target };
        assert_eq!(endpoint.address(), None);
        assert_eq!(Endpoint { port: 7, ..endpoint }.address().as_deref(), Some("http://127.0.0.1:7/k"));
    }
}
