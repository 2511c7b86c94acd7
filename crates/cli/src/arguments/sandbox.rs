//! The sandbox without a client: a program run in it once, or scanned there, alone or among many.

use std::{ffi::OsString, path::PathBuf};

use clap::{Args, Subcommand};
use firedoor_model::network::HostGrant;

use super::grants::AccessOptions;

#[derive(Subcommand)]
pub enum SandboxCommand {
    /// Run a command as a server would be run; its exit code is the command's
    Run {
        /// Use this profile instead of the one for the command
        #[arg(long)]
        profile: Option<String>,
        #[command(flatten)]
        access: AccessOptions,
        /// Write down what it does and, at the end, show that and the profile it would need
        #[arg(long)]
        observe: bool,
        /// Show it in this file instead of on stderr
        #[arg(long, value_name = "FILE", requires = "observe")]
        record: Option<PathBuf>,
        /// Show it as one JSON document
        #[arg(long, requires = "observe")]
        json: bool,
        /// The command
        #[arg(last = true, required = true)]
        command: Vec<OsString>,
    },
    /// Show what this machine can enforce (exit code 1 when servers cannot be confined)
    Doctor {
        /// One JSON document
        #[arg(long)]
        json: bool,
    },
}

#[derive(Subcommand)]
pub enum WasmCommand {
    /// Run a module once, and report what of what it was given shows in what it puts out (exit code 1 when something does, or
    /// when it tried what it may not)
    Scan(WasmScanOptions),
}

#[derive(Args)]
pub struct WasmScanOptions {
    /// A module, or a folder of modules, each of which is scanned
    #[arg(required_unless_present = "list")]
    pub module: Option<PathBuf>,
    /// Give the module this variable; without a value, ours
    #[arg(long = "env", value_name = "NAME[=VALUE]")]
    pub env: Vec<String>,
    /// Open this directory to the module, to read, as /data or under the name given
    #[arg(long = "dir", value_name = "DIR[::GUEST]")]
    pub directories: Vec<String>,
    /// Let the module reach this host: a name, *.NAME, an address, or * for every public one
    #[arg(long = "host", value_name = "NAME[:PORT[/udp]]")]
    pub hosts: Vec<HostGrant>,
    /// Most bytes of the module's memory
    #[arg(long, value_name = "BYTES", default_value_t = 512 << 20)]
    pub memory: u64,
    /// Most instructions, about
    #[arg(long, value_name = "COUNT")]
    pub fuel: Option<u64>,
    #[command(flatten)]
    pub scan: ScanRunOptions,
    #[command(flatten)]
    pub batch: BatchOptions,
    /// What the module gets
    #[arg(last = true)]
    pub arguments: Vec<OsString>,
}

#[derive(Args)]
pub struct ScanToolOptions {
    /// Use this profile instead of the one for the command
    #[arg(long)]
    pub profile: Option<String>,
    /// With --env NAME=VALUE, this value
    #[command(flatten)]
    pub access: AccessOptions,
    #[command(flatten)]
    pub scan: ScanRunOptions,
    #[command(flatten)]
    pub batch: BatchOptions,
    /// The command
    #[arg(last = true, required_unless_present = "list")]
    pub command: Vec<OsString>,
}

/// One run, and how it is reported.
#[derive(Args)]
pub struct ScanRunOptions {
    /// Give it this file as standard input; without it there is none
    #[arg(long, value_name = "FILE")]
    pub stdin: Option<PathBuf>,
    /// Speak MCP to it: list its tools and call each once with made-up arguments
    #[arg(long, conflicts_with = "stdin")]
    pub mcp: bool,
    /// Longest time, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=3600))]
    pub timeout: u64,
    /// Most bytes of standard output and standard error, each
    #[arg(long, value_name = "BYTES", default_value_t = 1 << 20, value_parser = clap::value_parser!(u64).range(1..=1 << 28))]
    pub output: u64,
    /// Match as the MCP-SandboxScan paper does, to compare
    #[arg(long)]
    pub paper: bool,
    /// One JSON document
    #[arg(long)]
    pub json: bool,
    /// Markdown; values are masked
    #[arg(long, conflicts_with = "json")]
    pub markdown: bool,
    /// One SARIF 2.1.0 document; values are masked
    #[arg(long, conflicts_with_all = ["json", "markdown"])]
    pub sarif: bool,
}

/// Many scans.
#[derive(Args)]
pub struct BatchOptions {
    /// Scan each line of this file: a module's path, or a command as a JSON array of words
    #[arg(long, value_name = "FILE")]
    pub list: Option<PathBuf>,
    /// At most so many at a time
    #[arg(long, value_name = "COUNT", default_value_t = 2, value_parser = clap::value_parser!(u8).range(1..=64))]
    pub jobs: u8,
    /// Append each report to this file of JSON Lines; what is in it already is not scanned again
    #[arg(long, value_name = "FILE")]
    pub results: Option<PathBuf>,
}
