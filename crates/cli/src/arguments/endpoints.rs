//! Addresses for clients that cannot start programs.

use clap::{Args, Subcommand};
use firedoor_model::remote::Transport;

#[derive(Subcommand)]
pub enum EndpointsCommand {
    /// Show them (exit code 1 when one cannot be reached)
    List {
        /// One JSON document
        #[arg(long)]
        json: bool,
    },
    /// Make one for a server that stands in no client's configuration, and print its address
    Add(EndpointOptions),
    /// Remove one: its address reaches nothing any more
    Remove {
        /// Its name, or its entry's id
        name: String,
        /// One JSON document
        #[arg(long)]
        json: bool,
    },
}

#[derive(Args)]
pub struct EndpointOptions {
    /// What it is called; its entry is endpoint/user/NAME
    pub name: String,
    /// Put this server behind the address of an endpoint that has this name already
    #[arg(long)]
    pub replace: bool,
    /// One JSON document
    #[arg(long)]
    pub json: bool,
    /// The server's address, when it is reached over HTTP
    #[arg(long, conflicts_with = "command")]
    pub url: Option<String>,
    /// How it is spoken to: auto, http or sse
    #[arg(long, requires = "url", default_value_t)]
    pub transport: Transport,
    /// Send it this header; without a value, it is read from stdin and kept as a secret
    #[arg(long = "header", value_name = "NAME[=VALUE]", requires = "url")]
    pub headers: Vec<String>,
    /// Give it this variable; without a value, it is read from stdin and kept as a secret
    #[arg(long = "env", value_name = "NAME[=VALUE]", conflicts_with = "url")]
    pub env: Vec<String>,
    /// The server's command
    #[arg(last = true)]
    pub command: Vec<String>,
}
