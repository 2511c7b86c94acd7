//! `firedoor status`.

use std::process::ExitCode;

use firedoor_ipc::command::{Reply, Request};

use crate::{
    engine::{Engine, unexpected},
    failure::Failure,
    log, output, questions, withheld,
};

/// Shows what the engine is doing. Starts nothing.
pub fn run(json: bool) -> Result<ExitCode, Failure> {
    let Some(mut engine) = Engine::running()? else {
        return Err(Failure::environment("no Firedoor engine is running; it starts with the first protected server"));
    };
    let Reply::Status(status) = engine.ask(&Request::Status)? else { return Err(unexpected()) };
    if json {
        output::json(&status)?;
        return Ok(ExitCode::SUCCESS);
    }
    output::line(&format!("Firedoor {}, process {}, mode {}", status.version, status.pid, status.mode));
    let servers = output::counted(status.sessions.len(), "server", "servers");
    let questions = output::counted(status.pending, "open question", "open questions");
    output::line(&format!("{servers} running, {questions}"));
    if let Some(until) = status.paused_until {
        let left = until.since(log::now()).div_ceil(60_000);
        output::line(&format!("questions are paused for {left} min more: `firedoor resume` ends that"));
    }
    for session in &status.sessions {
        output::line(&format!(
            "  {}  for {}  process {}  profile {}  {}",
            firedoor_model::Untrusted::new(session.entry.to_string()).visible(200),
            session.client.visible(80),
            session.pid,
            session.profile,
            output::counted(session.calls, "call", "calls")
        ));
        let observed = if session.observed { ", observed during this run" } else { "" };
        output::line(&format!("    sandbox: {}{observed}", session.level));
    }
    for entry in &status.observe_next {
        let entry = firedoor_model::Untrusted::new(entry.to_string()).visible(200);
        output::line(&format!("observed at its next start: {entry}"));
    }
    if let Some(directories) = status.watched {
        let directories = output::counted(directories, "directory", "directories");
        output::line(&format!("{directories} watched for new and changed servers"));
    }
    withheld::in_words(&status.withheld).iter().for_each(|held| output::line(held));
    for offer in &status.offers {
        output::line(&questions::offered(offer));
    }
    for problem in &status.problems {
        output::line(&format!("problem: {problem}"));
    }
    Ok(ExitCode::SUCCESS)
}
