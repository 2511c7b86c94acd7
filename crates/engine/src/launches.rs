//! From a shim's first message to a running server.

mod install;
mod known;
mod planning;
pub(crate) mod remote;
mod started;

use std::{cell::LazyCell, ops::Deref, rc::Rc};

use firedoor_ipc::{
    process::{Peer, Process},
    shim::{ToEngine, ToShim},
};
use firedoor_launch::{Plan, Run, is_expected};
use firedoor_model::{
    EntryId, SecretRef,
    audit::What,
    launch::{LaunchRequest, Launched, Network},
};

use install::install;
use known::{Known, known};
use planning::{Planned, plan, user_grants};
use remote::{launch_remote, without_own_way};
use started::{Lasting, Running, Start, resume, start};

use crate::{
    agent::{self, Agent},
    broker,
    connection::{Incoming, Outgoing},
    endpoints,
    engine::Engine,
    secrets::{self, Filled},
    session,
};

/// Why no server was started. Everything here is said to the user.
#[derive(Debug, thiserror::Error)]
enum LaunchError {
    /// The shim has gone, or sent something else than agreed. There is nobody to tell.
    #[error("the shim ended before its server ran")]
    Shim,
    /// The plan says no, or something it needs failed.
    #[error("{0}")]
    Refused(String),
    /// The shim could not start it; it has told the client already.
    #[error("{0}")]
    Failed(String),
}

/// Serves one shim from its hello to its end.
pub async fn serve(
    engine: Rc<Engine>,
    peer: Peer,
    claimed: Option<Process>,
    mut incoming: Incoming,
    outgoing: Outgoing,
) {
    let Ok((first, fds)) = incoming.receive().await else { return };
    let behind = endpoints::client_of(peer.process, claimed);
    let at_endpoint = behind.is_some();
    // Looks at a dozen processes; a start does that while it is planned on another thread.
    let agent = LazyCell::new(|| {
        let client = match behind {
            Some(client) => agent::client_behind(client),
            None => agent::client_of(peer.process),
        };
        engine.authority.watch_client(client.process);
        engine.agent(&client)
    });
    let resuming = matches!(first, ToEngine::Resume { .. });
    let (entry, started) = match first {
        ToEngine::Launch(request) => {
            (request.entry.clone(), launch(&engine, &agent, peer.process, request, &mut incoming, &outgoing).await)
        }
        ToEngine::LaunchRemote(request) => (
            request.entry.clone(),
            launch_remote(&engine, &agent, (peer.process, at_endpoint), request, &mut incoming, &outgoing).await,
        ),
        ToEngine::Resume { entry, context, pid, level, exited } => {
            let running = Running { entry: entry.clone(), pid, level, ended: exited };
            (entry, resume(&engine, &agent, peer.process, running, &context, fds).await)
        }
        _ => return,
    };
    let agent = LazyCell::force(&agent);
    let event = |what| firedoor_model::audit::Event {
        at: engine.now(),
        entry: Some(entry.clone()),
        session: None,
        client: Some(agent.client.clone()),
        what,
    };
    match started {
        Ok(started) => {
            if let Err(e) = session::serve(&engine, started, incoming, outgoing).await {
                engine.recorder.record(event(What::Failed { reason: format!("the streams cannot be used: {e}") }));
            }
        }
        Err(e) => {
            engine.recorder.record(event(What::Refused { reason: e.to_string() }));
            // A shim that has gone needs no reason; one whose server runs already cannot refuse, and ends it.
            let _ = match e {
                LaunchError::Refused(_) if resuming => outgoing.send(&ToShim::Stop).await,
                LaunchError::Refused(text) => outgoing.send(&ToShim::Refuse { text }).await,
                LaunchError::Shim | LaunchError::Failed(_) => Ok(()),
            };
            engine.release_agent(agent);
        }
    }
}

async fn launch(
    engine: &Rc<Engine>,
    agent: &impl Deref<Target = Rc<Agent>>,
    shim: Process,
    request: LaunchRequest,
    incoming: &mut Incoming,
    outgoing: &Outgoing,
) -> Result<session::Started, LaunchError> {
    let refused = |e: &dyn std::fmt::Display| LaunchError::Refused(e.to_string());
    let mut prepared = prepare(engine, agent, request.clone()).await?;
    if let Planned { plan: Plan::Install(step), token, .. } = prepared.planned {
        install(engine, &request.entry, &step, token, incoming, outgoing).await?;
        // That may have taken minutes, in which the user may have said something else of all this.
        prepared = prepare(engine, agent, request).await?;
    }
    let Prepared { request, filled: Filled { brokered, secrets }, planned, known } = prepared;
    let Plan::Run(run) = planned.plan else {
        return Err(LaunchError::Refused("the install step left the server uninstalled; try again".into()));
    };
    let Run { mut step, identity, profile, basis, named_env, dropped_env, mut notes } = *run;
    let Some(identity) = identity else {
        return Err(LaunchError::Refused("it is not known what the server is".into()));
    };
    if let Network::Hosts(hosts) = &mut step.confinement.network {
        hosts.ask = true;
    }
    // All of them stay with the start, for whoever asks.
    let told: Vec<&str> = dropped_env.iter().map(String::as_str).filter(|name| !is_expected(name)).collect();
    if !told.is_empty() {
        notes.push(format!("environment variables that are not passed on: {}", told.join(", ")));
    }
    let broker = match brokered.is_empty() {
        true => None,
        false => {
            broker::withhold(&mut step, &brokered, &mut notes).map_err(|e| refused(&e))?;
            let certificates = engine.config.broker.certificates.as_deref();
            let mut way = broker::way(&request, certificates, &mut notes);
            notes.append(&mut without_own_way(engine, &mut way).await?);
            let (user, _) = user_grants(engine, &request.entry).await;
            let interception = broker::interception(engine, &request.entry, &step, &brokered, &mut notes);
            Some(broker::start(engine, way, brokered, interception, user).await.map_err(|e| refused(&e))?)
        }
    };
    let entry = request.entry;
    let launched =
        Launched { what: identity.what.to_string(), named_env, dropped_env, limits: step.confinement.limits };
    let lasting = Lasting { launch: identity.digest, profile, basis, launched, granted: Some(planned.granted) };
    let secrets = named(secrets);
    let start_it = Start { shim, entry, step, lasting, known, remote: None, broker, secrets, notes };
    start(engine, agent, start_it, incoming, outgoing).await
}

/// A start as the user has it now.
struct Prepared {
    /// With its secrets.
    request: LaunchRequest,
    filled: Filled,
    planned: Planned,
    known: Known,
}

/// How often secrets are filled in anew because the user has meanwhile said something else of them.
const MAX_ANEW: usize = 3;

/// Reads what the user has said of an entry, fills in its secrets and makes the plan.
async fn prepare(
    engine: &Rc<Engine>,
    agent: &impl Deref<Target = Rc<Agent>>,
    request: LaunchRequest,
) -> Result<Prepared, LaunchError> {
    let refused = |e: &dyn std::fmt::Display| LaunchError::Refused(e.to_string());
    // Asked of the database together: each wait for its thread delays the server.
    let (routes, user) = tokio::join!(broker::routes(engine, &request.entry), user_grants(engine, &request.entry));
    let (mut routes, mut user) = (routes.map_err(|e| refused(&e))?, user);
    let waits = secrets::wants(&request);
    if waits {
        // Whoever waits there with a shell must be known for a client's by then.
        let _ = agent.deref();
    }
    let mut anew = 0;
    let (request, filled) = loop {
        let mut given = request.clone();
        // Before the plan: they may stand in options of an install. Its environment has none.
        let filled = secrets::fill_in(engine, &mut given, &routes).await.map_err(|e| refused(&e))?;
        if !waits {
            break (given, filled);
        }
        // The keychain may have waited for a person, who may have put one of them into broker mode.
        let now = tokio::join!(broker::routes(engine, &request.entry), user_grants(engine, &request.entry));
        user = now.1;
        let before = std::mem::replace(&mut routes, now.0.map_err(|e| refused(&e))?);
        if routes == before {
            break (given, filled);
        }
        anew += 1;
        if anew == MAX_ANEW {
            return Err(refused(&"its routes of broker mode change all the time; start it again"));
        }
    };
    let who = async { agent.deref() };
    let (planned, known, _) = tokio::join!(plan(engine, &request, user), known(engine, &request.entry), who);
    let (planned, known) = (planned?, known?);
    Ok(Prepared { request, filled, planned, known })
}

/// Secrets by what people know them by.
fn named(secrets: Vec<(SecretRef, String)>) -> Vec<(String, String)> {
    secrets.into_iter().map(|(reference, value)| (reference.to_string(), value)).collect()
}

/// Puts what the user should know about a plan into the log.
fn record_notes(engine: &Engine, entry: &EntryId, notes: &[String]) {
    for text in notes {
        let event = engine.event(What::Command { text: text.clone() });
        engine.recorder.record(firedoor_model::audit::Event { entry: Some(entry.clone()), ..event });
    }
}
