//! `firedoor-shim`: what a client's configuration starts in place of a server.
//!
//! It asks the engine what to run, starts that under its confinement, hands the four ends of the streams to the engine
//! and then only waits: the data do not pass through it. See ARCHITECTURE.md, "Life and death".
//!
//! Architecture invariant: one thread, for ever. The sandbox forks.

mod engines;
mod invocation;
mod refuse;
mod server;
mod session;

use std::{env, process::ExitCode};

use engines::Engines;
use firedoor_ipc::endpoint;
use firedoor_model::launch::LaunchRequest;
use invocation::{Invocation, Parsed};

fn main() -> ExitCode {
    let invocation = match invocation::parse(env::args_os().skip(1)) {
        Ok(Parsed::Run(invocation)) => invocation,
        Ok(Parsed::Version) => {
            say(&format!("firedoor-shim {}", env!("CARGO_PKG_VERSION")));
            return ExitCode::SUCCESS;
        }
        Err(e) => {
            say(&e.to_string());
            return ExitCode::from(2);
        }
    };
    match start(invocation) {
        Ok(code) => code,
        Err(text) => {
            say(&text);
            refuse::serve(&text)
        }
    }
}

/// Runs the server. An error is a sentence for the user; nothing is running then.
fn start(invocation: Invocation) -> Result<ExitCode, String> {
    let paths = endpoint::paths(|name| env::var_os(name)).map_err(|e| e.to_string())?;
    let own = env::current_exe().map_err(|e| format!("cannot find Firedoor's own directory: {e}"))?;
    let cwd = env::current_dir().map_err(|e| format!("cannot read the working directory: {e}"))?;
    let signals = session::Signals::block().map_err(|e| format!("cannot take over signals: {e}"))?;
    let engines = Engines { paths, firedoor: own.with_file_name("firedoor") };
    let request = LaunchRequest {
        entry: invocation.entry,
        program: invocation.program,
        args: invocation.args,
        cwd,
        env: env::vars_os().collect(),
    };
    session::run(&engines, &request, signals)
}

/// One line for the client's log of the server.
fn say(text: &str) {
    use std::io::Write;
    // Nothing is left to be done when even that fails.
    let _ = writeln!(std::io::stderr(), "firedoor: {text}");
}
