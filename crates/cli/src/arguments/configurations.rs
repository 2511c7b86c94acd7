//! Clients' configurations: looking at them, rerouting their servers, and giving them back.

use std::path::PathBuf;

use clap::Args;
use firedoor_model::Severity;

#[derive(Args)]
pub struct ScanOptions {
    /// Look for project configurations here, too
    #[arg(long = "project", value_name = "DIR")]
    pub projects: Vec<PathBuf>,
    /// One JSON document
    #[arg(long)]
    pub json: bool,
    /// Findings as one SARIF 2.1.0 document
    #[arg(long, conflicts_with = "json")]
    pub sarif: bool,
    /// Exit with code 1 when there is a finding of this level or above: low, medium, high or critical
    #[arg(long, value_name = "LEVEL")]
    pub fail_on: Option<Severity>,
}

#[derive(Args)]
pub struct ProtectOptions {
    /// Every server of every client
    #[arg(long, conflicts_with = "entries")]
    pub all: bool,
    /// CLIENT, CLIENT/SERVER or a whole entry id
    #[arg(required_unless_present = "all")]
    pub entries: Vec<String>,
    /// Print the differences and change nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Do not ask
    #[arg(long)]
    pub yes: bool,
    /// Do not start the servers to compare their tools
    #[arg(long)]
    pub no_verify: bool,
    /// Leave entries with an address as such, and put an address of Firedoor's in front: for clients that cannot start
    /// programs, because they run in a sandbox of their own
    #[arg(long, conflicts_with = "all")]
    pub endpoint: bool,
    /// Start the servers through Firedoor only, to see that they answer; nothing is compared
    #[arg(long, conflicts_with = "no_verify")]
    pub confined: bool,
    /// Look for project configurations here, too
    #[arg(long = "project", value_name = "DIR")]
    pub projects: Vec<PathBuf>,
    /// One JSON document
    #[arg(long)]
    pub json: bool,
}

#[derive(Args)]
pub struct RestoreOptions {
    /// Every protected entry of every client
    #[arg(long, conflicts_with = "entries")]
    pub all: bool,
    /// CLIENT, CLIENT/SERVER or a whole entry id
    #[arg(required_unless_present = "all")]
    pub entries: Vec<String>,
    /// Look for project configurations here, too
    #[arg(long = "project", value_name = "DIR")]
    pub projects: Vec<PathBuf>,
    /// One JSON document
    #[arg(long)]
    pub json: bool,
}
