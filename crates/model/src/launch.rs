//! How a server is started: what the shim asks, and the plan it gets.

use std::{ffi::OsString, net::SocketAddrV4, path::PathBuf};

use serde::{Deserialize, Serialize};

use crate::{EntryId, limits::Limits, network::Hosts, protected::ProtectedNames};

/// What a client asked the shim to run. Holds the environment with its secrets: never logged, never stored.
#[derive(Clone, Serialize, Deserialize)]
pub struct LaunchRequest {
    /// Which entry.
    pub entry: EntryId,
    /// The command as the client's configuration spells it, looked up in the request's `PATH`.
    pub program: OsString,
    /// Its arguments.
    pub args: Vec<OsString>,
    /// The shim's working directory.
    pub cwd: PathBuf,
    /// The shim's whole environment.
    pub env: Vec<(OsString, OsString)>,
}

/// What a process may do to one path and everything below it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Access {
    /// List directories only; no file's content.
    List,
    /// Read and execute.
    Read,
    /// As `Write`, but for names that are protected ([`Confinement::protected`]), at any depth. The guardian does the
    /// writing; where it cannot, this is `Read`.
    Edit,
    /// Read, execute, write, create, rename and remove.
    Write,
}

impl Access {
    /// The access that a person or a profile asks for to get this one.
    pub fn asked(self) -> Self {
        if self == Self::Edit { Self::Write } else { self }
    }
}

/// One path that the sandbox opens.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Grant {
    /// Absolute path. A path that does not exist when the server starts is skipped.
    pub path: PathBuf,
    /// What is allowed there.
    pub access: Access,
}

/// What a process may reach on the network.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Network {
    /// Nothing, loopback included. The guardian takes no calls then, so grants to edit are grants to read.
    None,
    /// One loopback TCP address: the engine's egress proxy, which judges by host name.
    Proxy(SocketAddrV4),
    /// These hosts, judged by name; what is refused is reported.
    Hosts(Hosts),
}

/// What the sandbox allows. Everything that is not listed is denied.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Confinement {
    /// Paths.
    pub grants: Vec<Grant>,
    /// Network.
    pub network: Network,
    /// What stays closed below grants to edit. A grant that names such a place itself opens it.
    #[serde(default)]
    pub protected: ProtectedNames,
    /// Paths of Unix sockets that may be connected to. Only with [`Network::Hosts`], which judges them.
    #[serde(default)]
    pub sockets: Vec<PathBuf>,
    /// Firedoor's own directories, links resolved: no socket in them is connected to, whatever a grant has become.
    #[serde(default)]
    pub own: Vec<PathBuf>,
    /// What it may use up.
    #[serde(default)]
    pub limits: Limits,
}

/// What a server was started as, for showing. No arguments and no values of variables: they may be secrets.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Launched {
    /// The package with its version, or the program or script.
    pub what: String,
    /// Variables that it gets because its entry, its profile or the user names them.
    pub named_env: Vec<String>,
    /// Variables of the client that it does not get.
    pub dropped_env: Vec<String>,
    /// What it may use up.
    pub limits: Limits,
}

/// One process to start under a confinement.
#[derive(Clone, Serialize, Deserialize)]
pub struct Step {
    /// Absolute path of the executable.
    pub program: PathBuf,
    /// Arguments, without the program's own name.
    pub args: Vec<OsString>,
    /// The complete environment.
    pub env: Vec<(OsString, OsString)>,
    /// Working directory.
    pub cwd: PathBuf,
    /// What it may do.
    pub confinement: Confinement,
}

impl Step {
    /// What the program is told by a variable. An empty one tells nothing.
    pub fn told(&self, name: &str) -> Option<&OsString> {
        self.env.iter().find(|(known, value)| known == name && !value.is_empty()).map(|(_, value)| value)
    }
}
