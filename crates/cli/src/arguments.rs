//! What can be asked for.

pub(crate) mod configurations;
pub(crate) mod decisions;
pub(crate) mod endpoints;
pub(crate) mod grants;
pub(crate) mod sandbox;
pub(crate) mod secrets;

use std::path::PathBuf;

use clap::{Parser, Subcommand, ValueEnum, value_parser};
use firedoor_ipc::command::MAX_PAUSE;
use firedoor_model::{EntryId, Mode, question::Ref};
use firedoor_store::{MAX_LOG_DAYS, MIN_LOG_DAYS};

use configurations::{ProtectOptions, RestoreOptions, ScanOptions};
use decisions::{ChoiceArgument, DurationArgument, PinsCommand, RulesCommand, ScopeArgument};
use endpoints::EndpointsCommand;
use grants::GrantsCommand;
use sandbox::{SandboxCommand, ScanToolOptions, WasmCommand};
use secrets::{BrokerCommand, LoginOptions, SecretsCommand};

/// A firewall for the tools that AI agents use.
#[derive(Parser)]
#[command(name = "firedoor", version, about)]
pub struct Arguments {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Subcommand)]
pub enum Command {
    /// Show clients, their files and servers, what is protected, and what there is to know about them
    Scan(ScanOptions),
    /// Reroute servers through Firedoor
    Protect(ProtectOptions),
    /// Give configurations back as they were
    Restore(RestoreOptions),
    /// Show what the engine is doing (exit code 2 when none runs)
    Status {
        /// One JSON document
        #[arg(long)]
        json: bool,
    },
    /// Check that everything works here (exit code 1 when something does not)
    Doctor {
        /// One JSON document
        #[arg(long)]
        json: bool,
    },
    /// Show or set how eagerly Firedoor interrupts
    Mode {
        /// watch, balanced or strict
        mode: Option<Mode>,
        /// One JSON document
        #[arg(long)]
        json: bool,
    },
    /// Ask nothing for a while; what is certain and critical stays blocked
    Pause {
        /// For how many minutes (1 to 60)
        #[arg(default_value_t = 15, value_parser = value_parser!(u32).range(1..=i64::from(MAX_PAUSE)))]
        minutes: u32,
        /// One JSON document
        #[arg(long)]
        json: bool,
    },
    /// Ask again, before a pause is over
    Resume {
        /// One JSON document
        #[arg(long)]
        json: bool,
    },
    /// Run the engine without a desktop
    Daemon {
        /// Go to the background; print "ready" when it listens
        #[arg(long)]
        background: bool,
        /// The second half of --background
        #[arg(long, hide = true)]
        child: bool,
    },
    /// Show the open questions, and new servers that could be protected
    Pending {
        /// One JSON document
        #[arg(long)]
        json: bool,
    },
    /// Leave a new server as it is: do not offer to protect it until it changes
    Ignore {
        /// Its entry, as `firedoor pending` shows it
        entry: EntryId,
        /// One JSON document
        #[arg(long)]
        json: bool,
    },
    /// Answer a question
    Answer {
        /// Its reference, as `firedoor pending` shows it
        id: Ref,
        /// What to do
        choice: ChoiceArgument,
        /// How long the answer holds
        #[arg(long = "for", value_enum, default_value = "once")]
        duration: DurationArgument,
        /// What an allow for longer than once holds for
        #[arg(long, value_enum, default_value = "tool")]
        scope: ScopeArgument,
        /// One JSON document
        #[arg(long)]
        json: bool,
    },
    /// Show the audit log
    Log {
        /// JSON Lines
        #[arg(long)]
        json: bool,
        /// Go on with new rows
        #[arg(long)]
        follow: bool,
        /// Only this server (its name or its entry's id)
        #[arg(long)]
        server: Option<String>,
        /// Only from this time on: RFC 3339, or 90s, 10m, 2h, 3d ago
        #[arg(long)]
        since: Option<String>,
        /// Where each finding was seen and what would make it go away, and what a started server is confined to
        #[arg(long, conflicts_with = "json")]
        details: bool,
        #[command(subcommand)]
        command: Option<LogCommand>,
    },
    /// List, add and remove rules
    Rules {
        #[command(subcommand)]
        command: RulesCommand,
    },
    /// List, set and remove the secrets that Firedoor keeps for entries, and choose where: keychain or file
    Secrets {
        #[command(subcommand)]
        command: SecretsCommand,
    },
    /// Log in at a server that is reached over HTTP
    Login(LoginOptions),
    /// End a login at a server: tell its issuer, and forget what it gave
    Logout {
        /// Which entry
        entry: EntryId,
    },
    /// Start the program that logs in, confined
    #[command(hide = true)]
    Errand,
    /// Look at pinned definitions and accept changes
    Pins {
        #[command(subcommand)]
        command: PinsCommand,
    },
    /// Grant a server more than its profile does
    Grants {
        #[command(subcommand)]
        command: GrantsCommand,
    },
    /// Secrets that servers do not get: Firedoor sends them to the one host that they are for
    Broker {
        #[command(subcommand)]
        command: BrokerCommand,
    },
    /// Addresses on this machine for clients that cannot start programs
    Endpoints {
        #[command(subcommand)]
        command: EndpointsCommand,
    },
    /// End a running server; its client may start it again
    Stop {
        /// Which entry
        entry: EntryId,
        /// One JSON document
        #[arg(long)]
        json: bool,
    },
    /// Write down what a server does during its next run, and propose a profile for it
    Observe {
        /// Which entry
        entry: EntryId,
        /// What to do
        what: ObserveArgument,
        /// Look for project configurations here, too
        #[arg(long = "project", value_name = "DIR")]
        projects: Vec<PathBuf>,
        /// One JSON document
        #[arg(long)]
        json: bool,
    },
    /// Use the sandbox by itself
    Sandbox {
        #[command(subcommand)]
        command: SandboxCommand,
    },
    /// Work with WebAssembly tools
    Wasm {
        #[command(subcommand)]
        command: WasmCommand,
    },
    /// Run a program once in the sandbox, and report what of what it was given shows in what it puts out (exit code 1 when
    /// something does, or when it tried what it may not)
    ScanTool(ScanToolOptions),
    /// Judge records offline: JSON Lines in, JSON Lines out (exit code 1 when one is not allowed)
    Inspect,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ObserveArgument {
    /// Observe the next run, once
    On,
    /// Do not
    Off,
    /// Show what was seen, and the profile that follows from it
    Show,
}

#[derive(Subcommand)]
pub enum LogCommand {
    /// Show for how many days the log is kept, or set it (7 to 3650)
    Keep {
        /// Days
        #[arg(value_parser = value_parser!(u32).range(i64::from(MIN_LOG_DAYS)..=i64::from(MAX_LOG_DAYS)))]
        days: Option<u32>,
        /// One JSON document
        #[arg(long)]
        json: bool,
    },
    /// Check that no row was changed, removed or inserted (exit code 1 when one was)
    Verify {
        /// One JSON document
        #[arg(long)]
        json: bool,
    },
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory, Parser, error::ErrorKind};

    use super::*;

    #[test]
    fn the_arguments_are_consistent() {
        Arguments::command().debug_assert();
    }

    fn refused(words: &[&str]) -> Option<(ErrorKind, String)> {
        let read = Arguments::try_parse_from([&["firedoor"], words].concat());
        read.err().map(|e| (e.kind(), e.to_string()))
    }

    #[test]
    fn what_is_out_of_range_is_a_usage_error() {
        for bad in [&["pause", "0"][..], &["pause", "61"], &["log", "keep", "6"], &["log", "keep", "3651"]] {
            assert_eq!(refused(bad).map(|(kind, _)| kind), Some(ErrorKind::ValueValidation), "{bad:?}");
        }
        for good in [&["pause"][..], &["pause", "60"], &["log", "keep"], &["log", "keep", "7"]] {
            assert_eq!(refused(good), None, "{good:?}");
        }
    }

    #[test]
    fn a_number_that_is_none_is_told_where_numbers_stand() {
        for (words, said) in [
            (&["rules", "remove", "x"][..], "`firedoor rules list`"),
            (&["rules", "restore", "x"], "the number that the rule had"),
            (&["rules", "from", "x", "allow"], "`firedoor log --json`"),
        ] {
            let (_, text) = refused(words).unwrap();
            assert!(text.contains(said) && !text.contains("digit"), "{text}");
        }
    }
}
