//! Decides what a server is started with: profile, grants, environment, install step. Reads files; writes only the
//! server's private directories and the record of an install.
//!
//! What a sandboxed server can see: the base set (`profiles/sandbox/base.toml`), its interpreter's installation, its own
//! package or project, its private home, cache and temporary directory, and what its profile, its arguments or the user
//! grant. Not: the user's home, other entries' private directories, `/tmp`, `/run`, `/proc/PID`, `/etc/resolv.conf`.
//! The working directory is kept, but not granted: `chdir` and `getcwd` need no Landlock right.

mod broker;
mod closed;
mod command;
mod environment;
mod error;
mod grants;
mod identity;
mod install;
mod installed;
mod plan;
mod private;
mod profile;
mod program;
mod proposal;
mod protect;
mod registry;
mod remote;
mod runtime;
mod sys;
mod venv;
mod version_manager;

use std::{
    collections::BTreeSet,
    fmt,
    net::SocketAddrV4,
    path::{Path, PathBuf},
};

use firedoor_model::{Millis, launch::Grant, network::HostGrant, paths::Paths};

pub use broker::{RouteError, broker, interception, known_route, means, route, same_connections};
pub use closed::{Closed, Remedy, closed};
pub use environment::is_expected;
pub use error::PlanError;
pub use identity::{Ecosystem, Identity, Package, What};
pub use install::InstallStep;
pub use plan::{Plan, Run, plan};
pub use private::{forget, home_with_files};
pub use profile::{ArgumentAccess, Kind, Match, Problem, Profile, Profiles, Subject};
pub use proposal::{Proposal, propose};
pub use remote::{CERTIFICATES, RemoteRun, host_of, is_about_the_network, is_about_trust, login_hosts, remote};

/// What `firedoor grants` holds for one entry.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UserGrants {
    /// Paths.
    pub grants: Vec<Grant>,
    /// Names of variables that stay although they look like credentials.
    pub env: BTreeSet<String>,
    /// Hosts.
    pub hosts: Vec<HostGrant>,
    /// Paths of Unix sockets.
    pub sockets: Vec<PathBuf>,
}

/// Where the engine's egress proxy listens, and what one session names itself with.
#[derive(Clone, PartialEq, Eq)]
pub struct ProxyAddress {
    /// A loopback address.
    pub address: SocketAddrV4,
    /// User name: letters, digits, `-` and `_`.
    pub user: String,
    /// Password: letters, digits, `-` and `_`.
    pub token: String,
}

impl ProxyAddress {
    pub(crate) fn url(&self) -> String {
        format!("http://{}:{}@{}", self.user, self.token, self.address)
    }
}

// The token is a secret.
impl fmt::Debug for ProxyAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProxyAddress").field("address", &self.address).finish_non_exhaustive()
    }
}

/// What a plan depends on besides the request.
#[derive(Clone, Debug)]
pub struct Context<'a> {
    /// Firedoor's directories, and the user's home.
    pub paths: &'a Paths,
    /// Sandbox profiles.
    pub profiles: &'a Profiles,
    /// The name of the profile to use; `None` for the one that is for this server.
    pub profile: Option<&'a str>,
    /// What the user granted this entry.
    pub user: &'a UserGrants,
    /// The names that the entry's `env` and `envFile` declare; `None` when the entry is not known, which declares nothing.
    pub declared_env: Option<&'a BTreeSet<String>>,
    /// The engine's egress proxy. Without it nothing can be installed.
    pub proxy: Option<ProxyAddress>,
    /// The time.
    pub now: Millis,
    /// Whether what runs is to be identified, for which its file is read whole.
    pub identify: bool,
}

impl<'a> Context<'a> {
    /// The profile that is for the server, nothing declared, nothing installed; what runs is identified.
    pub fn new(paths: &'a Paths, profiles: &'a Profiles, user: &'a UserGrants, now: Millis) -> Self {
        Self { paths, profiles, profile: None, user, declared_env: None, proxy: None, now, identify: true }
    }
}

/// A path of a profile: absolute, or below the home when it begins with `~/`.
fn profile_path(text: &str, home: &Path) -> PathBuf {
    text.strip_prefix("~/").map_or_else(|| PathBuf::from(text), |rest| home.join(rest))
}
