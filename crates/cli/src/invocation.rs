//! Reading the command line.

use std::env;

use clap::{Parser, Subcommand};

use crate::arguments::{Arguments, Command, sandbox::SandboxCommand};

/// `firedoor sandbox` and nothing else.
#[derive(Parser)]
#[command(name = "firedoor", version, about)]
struct SandboxArguments {
    #[command(subcommand)]
    command: OnlySandbox,
}

#[derive(Subcommand)]
enum OnlySandbox {
    /// Use the sandbox by itself
    Sandbox {
        #[command(subcommand)]
        command: SandboxCommand,
    },
}

/// What this process was asked for. Usage errors, `--help` and `--version` end it here.
pub fn read() -> Arguments {
    // To describe all commands takes a tenth of the time that a confined program takes to start.
    if env::args_os().nth(1).is_some_and(|first| first == "sandbox") {
        let OnlySandbox::Sandbox { command } = SandboxArguments::parse().command;
        return Arguments { command: Command::Sandbox { command } };
    }
    Arguments::parse()
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn both_ways_read_alike() {
        let help = |all: clap::Command| {
            let mut all = all;
            all.build();
            let sandbox = all.find_subcommand_mut("sandbox").unwrap();
            let own = sandbox.render_long_help().to_string();
            sandbox.get_subcommands_mut().map(|c| c.render_long_help().to_string()).fold(own, |all, one| all + &one)
        };
        let (all, only) = (help(Arguments::command()), help(SandboxArguments::command()));
        assert_eq!(all, only);
        assert!(only.contains("Usage: firedoor sandbox run "), "{only}");
    }
}
