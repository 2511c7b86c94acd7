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

/// What is checked. The user guide has a row for each, with the same remedy ("When something is in the way").
#[derive(Clone, Copy)]
enum Subject {
    Sandbox,
    Shim,
    Engine,
    Secrets,
    Broker,
    Configurations,
}

impl Subject {
    /// All of them, in the order in which they are shown. What is not among them is not checked.
    const ALL: [Self; 6] = [Self::Sandbox, Self::Shim, Self::Engine, Self::Secrets, Self::Broker, Self::Configurations];

    /// Its name, and what to do when something is wrong with it.
    fn row(self) -> (&'static str, &'static str) {
        match self {
            Self::Sandbox => (
                "sandbox",
                "Give this machine what is missing; on Linux that is a kernel from 5.13 on with Landlock and seccomp. Until then \
                 protected servers do not start: `firedoor restore --all` lets clients start them without Firedoor.",
            ),
            Self::Shim => (
                "shim",
                "Install Firedoor again, with all its programs in one directory. Until then protected servers do not start.",
            ),
            Self::Engine => (
                "engine",
                "Mend what the line names. Then end the process that `firedoor status` shows, and start the next engine with \
                 `firedoor daemon --background` or the app: until then what has passed may still be shown.",
            ),
            Self::Secrets => (
                "secrets",
                "Where the file of secrets is locked, `firedoor secrets unlock` opens it for the engine; otherwise put right what \
                 the line names. Until then servers that need a secret do not start.",
            ),
            Self::Broker => (
                "broker mode",
                "Give the missing secret again (`firedoor secrets set SECRET`): its server does not start without it. Where nothing \
                 uses it any more, `firedoor broker remove ENTRY SECRET` forgets it.",
            ),
            Self::Configurations => (
                "configurations",
                "Correct the file where the line says. An entry that it names is repaired by `firedoor protect ENTRY`, or given back \
                 by `firedoor restore ENTRY`.",
            ),
        }
    }
}

/// What was found out about one of them.
struct Found {
    ok: bool,
    detail: String,
}

#[derive(Serialize)]
struct Check {
    what: &'static str,
    ok: bool,
    detail: String,
    /// What to do; absent where nothing has to be done.
    #[serde(skip_serializing_if = "Option::is_none")]
    remedy: Option<&'static str>,
}

impl Check {
    fn new(subject: Subject, Found { ok, detail }: Found) -> Self {
        let (what, remedy) = subject.row();
        Self { what, ok, detail, remedy: (!ok).then_some(remedy) }
    }
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
    let (mut checks, mut brokered) = (Vec::new(), Vec::new());
    for subject in Subject::ALL {
        let found = match subject {
            Subject::Sandbox => vec![sandbox()],
            Subject::Shim => vec![shim()?],
            Subject::Engine => vec![engine()],
            Subject::Secrets => vec![secrets()],
            Subject::Broker => match routed() {
                Ok(all) => {
                    brokered = all;
                    brokered.chunk_by(|one, other| one.entry == other.entry).map(withheld).collect()
                }
                Err(detail) => vec![Found { ok: false, detail }],
            },
            Subject::Configurations => vec![configurations()?],
        };
        checks.extend(found.into_iter().map(|found| Check::new(subject, found)));
    }
    if json {
        output::json(&serde_json::json!({ "checks": checks, "broker": brokered }))?;
    } else {
        for check in &checks {
            output::line(&format!("{:<4} {}: {}", if check.ok { "ok" } else { "BAD" }, check.what, check.detail));
            check.remedy.iter().for_each(|remedy| output::line(&format!("     {remedy}")));
        }
    }
    Ok(if checks.iter().all(|c| c.ok) { ExitCode::SUCCESS } else { ExitCode::from(1) })
}

fn sandbox() -> Found {
    let report = firedoor_sandbox::doctor();
    let mut detail = report.summary;
    for missing in report.missing {
        detail.push_str("; missing: ");
        detail.push_str(&missing);
    }
    Found { ok: report.level != Level::Refused, detail }
}

fn shim() -> Result<Found, Failure> {
    let shim = sibling(firedoor_clients::SHIM)?;
    let ok = shim.is_file();
    let detail = if ok { shim.display().to_string() } else { format!("{} is missing", shim.display()) };
    Ok(Found { ok, detail })
}

/// What the engine says, if one runs.
fn asked_engine(request: &Request) -> Result<Option<Reply>, Failure> {
    Engine::running().and_then(|engine| engine.map(|mut e| e.ask(request)).transpose())
}

fn engine() -> Found {
    let (ok, detail) = match asked_engine(&Request::Status) {
        Ok(None) => (true, "not running; it starts with the first protected server".into()),
        Ok(Some(Reply::Status(status))) if status.problems.is_empty() => {
            (true, format!("process {}, {} servers", status.pid, status.sessions.len()))
        }
        Ok(Some(Reply::Status(status))) => (false, status.problems.join("; ")),
        Ok(Some(_)) => (false, "it gave an unexpected answer".into()),
        Err(e) => (false, e.text),
    };
    Found { ok, detail }
}

/// Having none is no fault: secrets then stay in the configurations, and `scan` names them.
fn secrets() -> Found {
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
            match asked_engine(&Request::Unlock { key: None }) {
                Ok(Some(Reply::Opens { opens: true })) => {
                    (true, format!("secrets are kept in {path}, and the engine has what opens it"))
                }
                Ok(None) => (
                    true,
                    format!(
                        "secrets are kept in {path}, and no engine runs that could open it: `firedoor secrets unlock` starts \
                         one and gives it the passphrase"
                    ),
                ),
                Ok(Some(_)) => (false, format!("secrets are kept in {path}, which is locked for the engine")),
                Err(e) => (false, e.text),
            }
        }
        Err(e) => (false, e.text),
    };
    Found { ok, detail }
}

/// What is in broker mode, entry by entry.
fn routed() -> Result<Vec<Brokered>, String> {
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
fn withheld(all: &[Brokered]) -> Found {
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
        detail.push_str(&format!(": `firedoor secrets set {reference}`"));
    }
    Found { ok: all.iter().all(|one| one.kept != Some(false)), detail }
}

fn configurations() -> Result<Found, Failure> {
    let found = Clients::load()?.scan(&scan::surroundings(Vec::new())?);
    let mut problems = Vec::new();
    let (mut open, mut fixed) = (0, 0);
    for file in found.clients.iter().flat_map(|c| &c.files) {
        problems.extend(file.problem.iter().map(|p| p.message.clone()));
        for entry in &file.entries {
            match &entry.state {
                State::Unprotected if file.fixed => fixed += 1,
                State::Unprotected => open += 1,
                State::Misrouted { reason } => problems.push(format!("{}: {reason}", entry.id)),
                State::Protected | State::NotYet { .. } | State::WrappedByOther { .. } => {}
            }
        }
    }
    let detail = if problems.is_empty() { unprotected(open, fixed) } else { problems.join("; ") };
    Ok(Found { ok: problems.is_empty(), detail })
}

/// What is said of servers that are not protected: how many could be, and how many stand in files that cannot be changed.
fn unprotected(open: usize, fixed: usize) -> String {
    let are = |many: usize| output::counted(many, "server is", "servers are");
    let mut said = match open {
        0 => "every server that can be protected is".to_owned(),
        1 => format!("{} not protected: `firedoor protect --all` protects it", are(1)),
        many => format!("{} not protected: `firedoor protect --all` protects them", are(many)),
    };
    if fixed > 0 {
        said.push_str(&format!("; {} in files that cannot be changed: `firedoor scan` says why", are(fixed)));
    }
    said
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_protected_is_not_promised() {
        for (open, fixed, want) in [
            (0, 0, "every server that can be protected is"),
            (1, 0, "1 server is not protected: `firedoor protect --all` protects it"),
            (
                0,
                2,
                "every server that can be protected is; 2 servers are in files that cannot be changed: `firedoor scan` says why",
            ),
            (
                3,
                1,
                "3 servers are not protected: `firedoor protect --all` protects them; 1 server is in files that cannot be changed: \
                 `firedoor scan` says why",
            ),
        ] {
            assert_eq!(unprotected(open, fixed), want);
        }
    }

    #[test]
    fn the_guide_has_a_row_for_each_check_with_the_same_remedy() {
        let section: Vec<&str> = include_str!("../../../docs/user-guide.md")
            .lines()
            .skip_while(|line| *line != "## When something is in the way")
            .skip(1)
            .take_while(|line| !line.starts_with("## "))
            .collect();
        for (name, remedy) in Subject::ALL.map(Subject::row) {
            let row = section.iter().find(|line| line.starts_with(&format!("| `{name}` |")));
            let row = row.unwrap_or_else(|| panic!("docs/user-guide.md has no row that begins with `{name}`"));
            assert!(row.contains(remedy), "docs/user-guide.md lacks {remedy:?} in the row of `{name}`");
        }
    }
}
