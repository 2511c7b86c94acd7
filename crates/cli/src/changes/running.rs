//! What the running engine has to do with changes: it listens for entries that keep an address, and says who may weaken
//! protection.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    path::PathBuf,
};

use firedoor_clients::{Clients, Env, SHIM, verify::Outcome};
use firedoor_ipc::command::{Reply, Request};
use firedoor_model::{
    EntryId, Untrusted,
    endpoint::{Served, Target},
    remote::Transport,
};
use serde::Serialize;

use crate::{
    endpoints,
    engine::{Engine, paths, sibling, unexpected},
    failure::Failure,
    keychain, output,
};

/// What entries are to start. Without it every server would be gone.
pub fn shim() -> Result<PathBuf, Failure> {
    let shim = sibling(SHIM)?;
    if shim.is_file() {
        return Ok(shim);
    }
    Err(Failure::environment(format!("nothing was changed: there is no {}: install Firedoor anew", shim.display())))
}

/// An address of Firedoor's for each entry, at which it listens from now on; what was there before stays.
pub fn addresses(
    clients: &Clients,
    env: &Env<'_>,
    chosen: &BTreeSet<EntryId>,
    dry_run: bool,
) -> Result<BTreeMap<EntryId, String>, Failure> {
    let mut found = BTreeMap::new();
    for entry in chosen {
        let url = clients
            .endpoint_for(env, entry)
            .map_err(|why| Failure::refused(format!("{}: {why}", Untrusted::new(entry.to_string()).visible(200))))?;
        found.insert(entry.clone(), url);
    }
    if dry_run {
        return Ok(found.into_keys().map(|entry| (entry, "http://127.0.0.1:0/new".to_owned())).collect());
    }
    let mut engine = Engine::running_or_started()?;
    let at = |(entry, url): (EntryId, String)| {
        // Where its project is, so that the engine finds its configuration.
        let project =
            entry.scope().split_once(':').map(|(_, path)| PathBuf::from(path)).filter(|path| path.is_absolute());
        let server = Served::Remote { url, transport: Transport::Auto, headers: Vec::new(), pass: true };
        let cwd = project.unwrap_or_else(|| PathBuf::from("/"));
        let made = endpoints::made(&mut engine, entry.clone(), Target { server, cwd })?;
        match (made.address, made.problem) {
            (Some(address), None) => Ok((entry, address)),
            (_, problem) => Err(Failure::refused(problem.unwrap_or_else(|| "Firedoor does not listen".into()))),
        }
    };
    found.into_iter().map(at).collect()
}

/// Lets the engine open the file as well, if it cannot: it starts servers for what was just protected.
pub fn share() -> Result<(), Failure> {
    let Some(key) = keychain::key() else { return Ok(()) };
    let mut engine = Engine::running_or_started()?;
    match engine.ask(&Request::Unlock { key: Some(key) })? {
        Reply::Opens { .. } => Ok(()),
        _ => Err(unexpected()),
    }
}

/// An entry that answers, and of whose tools agents do not get all.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct HeldBack {
    entry: EntryId,
    tools: usize,
}

impl fmt::Display for HeldBack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let entry = Untrusted::new(self.entry.to_string()).visible(200);
        let tools = match self.tools {
            1 => "1 tool is".to_owned(),
            more => format!("{more} tools are"),
        };
        write!(f, "{entry}: {tools} held back from agents until you accept what changed: `firedoor pins diff {entry}`")
    }
}

/// What agents do not get of the entries that stayed protected. The check is shown all tools, because it compares them.
pub fn held_back(outcomes: &[Outcome]) -> Vec<HeldBack> {
    let protected: Vec<&EntryId> = outcomes.iter().filter(|o| !o.rolled_back()).map(|o| &o.entry).collect();
    if protected.is_empty() {
        return Vec::new();
    }
    let asked = || -> Result<Vec<HeldBack>, Failure> {
        let Some(mut engine) = Engine::running()? else { return Ok(Vec::new()) };
        let mut all = Vec::new();
        for entry in protected {
            let Reply::Pins { pins } = engine.ask(&Request::Pins { entry: Some(entry.clone()) })? else {
                return Err(unexpected());
            };
            let tools = pins.iter().filter(|pin| pin.kind == "tool" && pin.seen.is_some()).count();
            all.extend((tools > 0).then(|| HeldBack { entry: entry.clone(), tools }));
        }
        Ok(all)
    };
    asked().unwrap_or_else(|e| {
        output::remark(&format!("Whether tools are held back cannot be said ({}): see `firedoor pins diff`", e.text));
        Vec::new()
    })
}

/// Stops listening for entries that were given back. Where no engine runs nothing listens, and the next one must not begin to.
pub fn stop_listening(entries: &[EntryId]) -> Result<(), Failure> {
    let Some(mut engine) = Engine::running()? else { return super::forget_endpoints(entries) };
    for endpoint in endpoints::all(&mut engine)?.into_iter().filter(|endpoint| entries.contains(&endpoint.entry)) {
        engine.ask(&Request::RemoveEndpoint { entry: endpoint.entry })?;
    }
    Ok(())
}

/// Makes sure that this process may do what weakens protection.
pub fn authorize(action: &str) -> Result<(), Failure> {
    match Engine::running()? {
        Some(mut engine) => engine.ask(&Request::Authorize { action: action.into() }).map(drop),
        // With the engine dead it must still work; but XDG_RUNTIME_DIR may only point away from it.
        None => match firedoor_engine::objection_to_this_process(&paths()?) {
            Some(reason) => Err(Failure::refused(format!("{action} is refused to this process: {reason}"))),
            None => Ok(()),
        },
    }
}
