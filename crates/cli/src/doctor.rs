//! `firedoor doctor`.

use std::process::ExitCode;

use firedoor_clients::{Clients, State};
use firedoor_engine::kept;
use firedoor_ipc::command::{Reply, Request};
use firedoor_model::{EntryId, Keychain as _, SecretRef, Untrusted, broker::Route, network::HostGrant};
use firedoor_sandbox::Level;
use firedoor_store::Place;
use serde::Serialize;

use crate::{
    engine::{Engine, paths, sibling},
    failure::Failure,
    keychain, output, scan,
};

/// What checks of broker mode are about.
const BROKER: &str = "broker mode";

#[derive(Serialize)]
struct Check {
    what: &'static str,
    ok: bool,
    detail: String,
}

/// A secret in broker mode, as programs read it.
#[derive(Serialize)]
struct Brokered {
    entry: EntryId,
    secret: String,
    host: String,
    intercept: bool,
    /// Whether it is kept; absent where that cannot be said.
    #[serde(skip_serializing_if = "Option::is_none")]
    kept: Option<bool>,
}

/// Checks sandbox, programs, engine, where secrets are kept, those in broker mode, and configurations.
pub fn run(json: bool) -> Result<ExitCode, Failure> {
    let mut checks = vec![sandbox(), programs()?, engine(), secrets()];
    let brokered = match brokered() {
        Ok(all) => all,
        Err(detail) => {
            checks.push(Check { what: BROKER, ok: false, detail });
            Vec::new()
        }
    };
    checks.extend(brokered.chunk_by(|one, other| one.entry == other.entry).map(withheld));
    checks.push(configurations()?);
    if json {
        output::json(&serde_json::json!({ "checks": checks, "broker": brokered }))?;
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

/// What the engine says, if one runs.
fn asked_engine(request: &Request) -> Result<Option<Reply>, Failure> {
    Engine::running().and_then(|engine| engine.map(|mut e| e.ask(request)).transpose())
}

fn engine() -> Check {
    let (ok, detail) = match asked_engine(&Request::Status) {
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
fn secrets() -> Check {
    let place = keychain::silent().and_then(|secrets| Ok((secrets.place()?, secrets)));
    let (ok, detail) = match place {
        Ok((Place::Keychain, secrets)) => match secrets.items() {
            Ok(_) => (true, "the keychain answers; protecting moves secrets into it".into()),
            Err(e) => (true, format!("secrets stay in the configurations: {e}")),
        },
        Ok((Place::File { path, identity: Some(identity) }, secrets)) => match secrets.open() {
            Ok(()) => {
                (true, format!("secrets are kept in {}, which opens with {}", path.display(), identity.display()))
            }
            Err(e) => (false, e.to_string()),
        },
        Ok((Place::File { path, identity: None }, _)) => {
            let path = path.display();
            let unlock = "`firedoor secrets unlock` gives it the passphrase";
            match asked_engine(&Request::Unlock { key: None }) {
                Ok(Some(Reply::Opens { opens: true })) => {
                    (true, format!("secrets are kept in {path}, and the engine has what opens it"))
                }
                Ok(None) => {
                    (true, format!("secrets are kept in {path}, and no engine runs that could open it: {unlock}"))
                }
                Ok(Some(_)) => (false, format!("secrets are kept in {path}, which is locked for the engine: {unlock}")),
                Err(e) => (false, e.text),
            }
        }
        Err(e) => (false, e.text),
    };
    Check { what: "secrets", ok, detail }
}

/// What is in broker mode, entry by entry.
fn brokered() -> Result<Vec<Brokered>, String> {
    let routes = kept::routes(&paths().map_err(|e| e.text)?.database()).map_err(|e| e.to_string())?;
    if routes.is_empty() {
        return Ok(Vec::new());
    }
    // What is wrong with the keychain has a line of its own.
    let kept = keychain::silent().ok().and_then(|secrets| kept::kept(&secrets).ok());
    let one = |(entry, route): (EntryId, Route)| {
        let reference = SecretRef::new(entry.clone(), &route.secret).ok();
        let kept = kept.as_ref().map(|kept| reference.is_some_and(|reference| kept.contains(&reference)));
        let host = firedoor_launch::host_of(&route.url).map(|host| HostGrant { host, port: None }.to_string());
        let host = host.unwrap_or_else(|| route.url.clone());
        Brokered { entry, secret: route.secret, host, intercept: route.intercept, kept }
    };
    Ok(routes.into_iter().flat_map(|(entry, all)| all.into_iter().map(move |r| (entry.clone(), r))).map(one).collect())
}

/// The secrets of one entry in broker mode. One that is not kept keeps its server from starting.
fn withheld(all: &[Brokered]) -> Check {
    let visible = |text: &str| Untrusted::new(text).visible(400);
    let each: Vec<String> = all
        .iter()
        .map(|Brokered { secret, host, intercept, kept, .. }| {
            let how = if *intercept { ", connections intercepted" } else { "" };
            let kept = match kept {
                Some(true) => format!("in {}", keychain::called()),
                Some(false) => format!("MISSING in {}", keychain::called()),
                None => "not known whether it is kept".into(),
            };
            format!("{} to {}{how}, {kept}", visible(secret), visible(host))
        })
        .collect();
    let entry = all.first().map(|one| &one.entry);
    let mut detail = format!("{}: {}", entry.map(|id| visible(&id.to_string())).unwrap_or_default(), each.join("; "));
    if let (Some(entry), Some(gone)) = (entry, all.iter().find(|one| one.kept == Some(false))) {
        let reference = SecretRef::new(entry.clone(), &gone.secret).map(|secret| secret.quoted()).unwrap_or_default();
        detail.push_str(&format!(
            ": the server is not started without it; give it again with `firedoor secrets set {reference}`"
        ));
    }
    Check { what: BROKER, ok: all.iter().all(|one| one.kept != Some(false)), detail }
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
