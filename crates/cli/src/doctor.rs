//! `firedoor doctor`.

use std::process::ExitCode;

use firedoor_clients::{Clients, State};
use firedoor_ipc::command::{Reply, Request};
use firedoor_sandbox::Level;
use serde::Serialize;

use crate::{
    engine::{Engine, sibling},
    failure::Failure,
    output, scan,
};

#[derive(Serialize)]
struct Check {
    what: &'static str,
    ok: bool,
    detail: String,
}

/// Checks sandbox, programs, engine and configurations.
pub fn run(json: bool) -> Result<ExitCode, Failure> {
    let checks = [sandbox(), programs()?, engine(), keychain(), configurations()?];
    if json {
        output::json(&serde_json::json!({ "checks": checks }))?;
    } else {
        for check in &checks {
            output::line(&format!("{:<4} {}: {}", if check.ok { "ok" } else { "BAD" }, check.what, check.detail));
        }
    }
    Ok(if checks.iter().all(|c| c.ok) { ExitCode::SUCCESS } else { ExitCode::from(1) })
}

fn sandbox() -> Check {
    let report = firedoor_sandbox::doctor();
    let mut detail = report.summary;
    for missing in report.missing {
        detail.push_str("; missing: ");
        detail.push_str(&missing);
    }
    Check { what: "sandbox", ok: report.level != Level::Refused, detail }
}

fn programs() -> Result<Check, Failure> {
    let shim = sibling(firedoor_clients::SHIM)?;
    let ok = shim.is_file();
    let detail = if ok { shim.display().to_string() } else { format!("{} is missing: reinstall", shim.display()) };
    Ok(Check { what: "shim", ok, detail })
}

fn engine() -> Check {
    let status = Engine::running().and_then(|engine| engine.map(|mut e| e.ask(&Request::Status)).transpose());
    let (ok, detail) = match status {
        Ok(None) => (true, "not running; it starts with the first protected server".into()),
        Ok(Some(Reply::Status(status))) if status.problems.is_empty() => {
            (true, format!("process {}, {} servers", status.pid, status.sessions.len()))
        }
        Ok(Some(Reply::Status(status))) => (false, status.problems.join("; ")),
        Ok(Some(_)) => (false, "gave an unexpected answer: restart it".into()),
        Err(e) => (false, e.text),
    };
    Check { what: "engine", ok, detail }
}

/// Having none is no fault: secrets then stay in the configurations, and `scan` names them.
fn keychain() -> Check {
    let detail = match crate::keychain::keychain().items() {
        Ok(_) => "answers; protecting moves secrets into it".into(),
        Err(e) => format!("secrets stay in the configurations: {e}"),
    };
    Check { what: "keychain", ok: true, detail }
}

fn configurations() -> Result<Check, Failure> {
    let found = Clients::load()?.scan(&scan::surroundings(Vec::new())?);
    let mut problems = Vec::new();
    let mut open = 0;
    for file in found.clients.iter().flat_map(|c| &c.files) {
        problems.extend(file.problem.iter().map(|p| p.message.clone()));
        for entry in &file.entries {
            match &entry.state {
                State::Unprotected => open += 1,
                State::Misrouted { reason } => problems.push(format!("{}: {reason}", entry.id)),
                State::Protected | State::NotYet { .. } | State::WrappedByOther { .. } => {}
            }
        }
    }
    let detail = match (problems.is_empty(), open) {
        (true, 0) => "every server that can be protected is".into(),
        (true, n) => format!("{n} servers are not protected: `firedoor protect --all` protects them"),
        (false, _) => problems.join("; "),
    };
    Ok(Check { what: "configurations", ok: problems.is_empty(), detail })
}
