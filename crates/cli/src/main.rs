//! `firedoor`: the command line. Every command's exit code is 0 when it did what it says, 1 for a finding or a refusal,
//! 2 for a usage or environment error.

mod arguments;
#[cfg(unix)]
mod broker;
mod changes;
mod clock;
mod daemon;
mod doctor;
mod endpoints;
mod engine;
mod errand;
mod failure;
mod inspect;
mod invocation;
mod keychain;
mod log;
mod login;
#[cfg(unix)]
mod observe;
mod output;
mod questions;
mod sandbox;
mod sarif;
mod scan;
mod secrets;
mod settings;
#[cfg(unix)]
mod signals;
mod status;
#[cfg(unix)]
mod toolscan;
mod typed;
mod withheld;

use std::process::ExitCode;

use arguments::Command;
use failure::Failure;
use keychain::keychain;

fn main() -> ExitCode {
    // Usage errors end here, with exit code 2.
    let code = run(invocation::read().command).unwrap_or_else(failed);
    output::failure().map_or(code, failed)
}

fn failed(Failure { code, text }: Failure) -> ExitCode {
    output::error(&text);
    ExitCode::from(code)
}

fn run(command: Command) -> Result<ExitCode, Failure> {
    match command {
        Command::Scan(options) => scan::run(options),
        Command::Protect(options) => changes::protect(&options),
        Command::Restore(options) => changes::restore(&options),
        Command::Status { json } => status::run(json),
        Command::Doctor { json } => doctor::run(json),
        Command::Mode { mode, json } => settings::mode(mode, json),
        Command::Pause { minutes, json } => settings::pause(minutes, json),
        Command::Resume { json } => settings::resume(json),
        Command::Daemon { background, child } => daemon::run(background, child),
        Command::Pending { json } => questions::pending(json),
        Command::Ignore { entry, json } => questions::ignore(entry, json),
        Command::Answer { id, choice, duration, scope, json } => questions::answer(id, choice, duration, scope, json),
        Command::Log { json, command: Some(arguments::LogCommand::Verify { json: too }), .. } => {
            log::verify(json || too)
        }
        Command::Log { json, command: Some(arguments::LogCommand::Keep { days, json: too }), .. } => {
            settings::keep(days, json || too)
        }
        Command::Log { json, follow, server, since, details, command: None } => {
            log::show(log::Form::of(json, details), follow, server, since.as_deref())
        }
        Command::Rules { command } => settings::rules(command),
        Command::Pins { command } => settings::pins(command),
        Command::Grants { command } => settings::grants(command),
        Command::Stop { entry, json } => settings::stop(entry, json),
        Command::Sandbox { command } => sandbox::run(command),
        Command::Endpoints { command } => endpoints::run(command),
        Command::Secrets { command } => secrets::run(command),
        Command::Inspect => inspect::run(),
        Command::Login(options) => login::login(options),
        Command::Logout { entry } => login::logout(&entry),
        Command::Errand => errand::run(),
        Command::Broker { .. } | Command::Observe { .. } | Command::Wasm { .. } | Command::ScanTool(_) => {
            elsewhere(command)
        }
    }
}

/// What was not made for every system.
#[cfg(unix)]
fn elsewhere(command: Command) -> Result<ExitCode, Failure> {
    match command {
        Command::Broker { command } => broker::run(command),
        Command::Observe { entry, what, projects, json } => observe::run(entry, what, projects, json),
        Command::Wasm { command: arguments::sandbox::WasmCommand::Scan(options) } => toolscan::wasm(options),
        Command::ScanTool(options) => toolscan::native(options),
        everywhere => run(everywhere),
    }
}

/// It is said to be missing.
#[cfg(not(unix))]
fn elsewhere(_: Command) -> Result<ExitCode, Failure> {
    Err(firedoor_model::Unavailable("this command").into())
}
