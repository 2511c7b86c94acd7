//! `firedoor-wasm`: runs one WebAssembly tool in wasmtime. It gets the directories, variables and limits that are named, and
//! no more; around it stands the same sandbox as around any server.
//!
//! Architecture invariant: the only program that contains wasmtime. Absent: threads, any way to start a program, any
//! list of hosts: connections are judged by the sandbox.

mod arguments;
mod cache;
mod error;
mod host;
mod http;
mod limits;

use std::{
    io::{self, Write as _},
    process::ExitCode,
};

use arguments::{Arguments, Command};
use clap::Parser as _;
use error::RunError;

fn main() -> ExitCode {
    let Command::Run(options) = Arguments::parse().command;
    match host::run(&options) {
        Ok(code) => ExitCode::from(code),
        Err(e) => {
            say(&e);
            ExitCode::from(e.code())
        }
    }
}

/// Says on standard error what went wrong; standard output is the module's.
fn say(error: &RunError) {
    // There is nowhere else to say it.
    let _ = writeln!(io::stderr(), "firedoor-wasm: {error}");
}
