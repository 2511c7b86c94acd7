//! What the user decides: answers to questions, rules, and definitions that changed.

use std::path::PathBuf;

use clap::{Subcommand, ValueEnum};
use firedoor_model::{Digest, EntryId};

#[derive(Clone, Copy, ValueEnum)]
pub enum ChoiceArgument {
    /// Let it pass
    Allow,
    /// Refuse it
    Block,
}

#[derive(Clone, Copy, ValueEnum)]
pub enum DurationArgument {
    /// This one call
    Once,
    /// Until the agent's session ends
    Session,
    /// As a rule
    Always,
}

#[derive(Clone, Copy, ValueEnum)]
pub enum ScopeArgument {
    /// The same call
    Call,
    /// The tool, and the address that the call names
    Tool,
}

#[derive(Subcommand)]
pub enum RulesCommand {
    /// Show all rules
    List {
        /// One JSON document
        #[arg(long)]
        json: bool,
    },
    /// Add a rule; what is not given matches everything
    Add {
        /// What it does
        effect: ChoiceArgument,
        /// Of this entry only
        #[arg(long)]
        entry: Option<EntryId>,
        /// Calls of this client only: the path of its executable, or of the script that it runs
        #[arg(long)]
        client: Option<String>,
        /// This tool only
        #[arg(long)]
        tool: Option<String>,
        /// Findings of this detector only, or of a family such as "flow/"
        #[arg(long)]
        detector: Option<String>,
        /// Ends after this time: 90s, 10m, 2h, 3d
        #[arg(long)]
        expires: Option<String>,
        /// One JSON document
        #[arg(long)]
        json: bool,
    },
    /// Add a rule about what a row of the log tells: allow marks what was found there as wrong, block blocks the tool
    From {
        /// The row's number, as `firedoor log --json` shows it (`seq`)
        #[arg(value_parser = row)]
        row: u64,
        /// What it does
        effect: ChoiceArgument,
        /// One JSON document
        #[arg(long)]
        json: bool,
    },
    /// Show rules that would have answered earlier questions as you did, or add one of them
    Suggest {
        /// Add the one of this name
        #[arg(long, value_name = "NAME")]
        accept: Option<Digest>,
        /// One JSON document
        #[arg(long)]
        json: bool,
    },
    /// Put a rule back that was removed since the engine was started
    Restore {
        /// The number that it had
        #[arg(value_parser = removed)]
        id: i64,
        /// One JSON document
        #[arg(long)]
        json: bool,
    },
    /// Remove a rule
    Remove {
        /// Its number
        #[arg(value_parser = standing)]
        id: i64,
        /// One JSON document
        #[arg(long)]
        json: bool,
    },
    /// Add the rules in a file made by export
    Import {
        /// The file
        file: PathBuf,
        /// One JSON document
        #[arg(long)]
        json: bool,
    },
    /// Print all rules as JSON Lines
    Export,
}

#[derive(Subcommand)]
pub enum PinsCommand {
    /// Show pinned definitions
    List {
        /// Of this entry only
        entry: Option<EntryId>,
        /// One JSON document
        #[arg(long)]
        json: bool,
    },
    /// Show what changed (exit code 1 when something did)
    Diff {
        /// Of this entry only
        entry: Option<EntryId>,
        /// One JSON document
        #[arg(long)]
        json: bool,
    },
    /// Accept changed definitions
    Accept {
        /// Of this entry
        entry: EntryId,
        /// Only this tool
        #[arg(long)]
        tool: Option<String>,
        /// One JSON document
        #[arg(long)]
        json: bool,
    },
}

fn standing(text: &str) -> Result<i64, &'static str> {
    text.parse().map_err(|_| "a rule is named by its number: see `firedoor rules list`")
}

fn removed(text: &str) -> Result<i64, &'static str> {
    text.parse().map_err(|_| "say the number that the rule had, as `firedoor rules remove` and `firedoor log` tell it")
}

fn row(text: &str) -> Result<u64, &'static str> {
    text.parse().map_err(|_| "a row is named by its number: see `seq` in `firedoor log --json`")
}
