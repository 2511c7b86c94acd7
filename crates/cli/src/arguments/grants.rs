//! What a server may do besides what its profile grants.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use firedoor_model::{EntryId, network::HostGrant};

#[derive(Subcommand)]
pub enum GrantsCommand {
    /// Show what was granted
    List {
        /// To this entry only
        entry: Option<EntryId>,
        /// One JSON document
        #[arg(long)]
        json: bool,
    },
    /// Grant more
    Add(GrantOptions),
    /// Take grants away
    Remove(RevokeOptions),
}

#[derive(Args)]
pub struct GrantOptions {
    /// Which entry
    pub entry: EntryId,
    #[command(flatten)]
    pub access: AccessOptions,
    /// One JSON document
    #[arg(long)]
    pub json: bool,
    /// Look for the entry in project configurations here, too
    #[arg(long = "project", value_name = "DIR")]
    pub projects: Vec<PathBuf>,
}

#[derive(Args)]
pub struct RevokeOptions {
    /// Which entry
    pub entry: EntryId,
    #[command(flatten)]
    pub access: AccessOptions,
    /// One JSON document
    #[arg(long)]
    pub json: bool,
}

#[derive(Args)]
pub struct AccessOptions {
    /// Read this path and what is below it
    #[arg(long = "ro", value_name = "PATH")]
    pub read: Vec<PathBuf>,
    /// Read and write this path and what is below it
    #[arg(long = "rw", value_name = "PATH")]
    pub write: Vec<PathBuf>,
    /// Reach this host: a name, *.NAME, an address, or * for every public one; /udp for datagrams
    #[arg(long = "host", value_name = "NAME[:PORT[/udp]]")]
    pub hosts: Vec<HostGrant>,
    /// Reach this Unix socket
    #[arg(long = "unix", value_name = "PATH")]
    pub sockets: Vec<PathBuf>,
    /// Get this environment variable
    #[arg(long = "env", value_name = "NAME")]
    pub env: Vec<String>,
}
