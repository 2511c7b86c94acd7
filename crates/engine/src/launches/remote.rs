//! Starts of what stands in for servers that are reached over HTTP, and the logins that go with them.

use std::rc::Rc;

use firedoor_clients::{Clients, Env};
use firedoor_ipc::{process::Process, shim::ToShim};
use firedoor_launch::{Context, RemoteRun};
use firedoor_model::{Digest, audit::What, launch::Launched, paths::sibling, remote::RemoteRequest};

use super::{
    LaunchError,
    known::known,
    named,
    planning::{unplanned, user_grants},
    record_notes,
    started::{Lasting, Start, start},
};
use crate::{
    agent::Agent,
    broker,
    connection::{Incoming, Outgoing},
    engine::Engine,
    logins,
    secrets::{self, Filled},
    session,
};

/// Lets the shim, which may work for an endpoint, start what stands in for a server that is reached over HTTP.
pub(super) async fn launch_remote(
    engine: &Rc<Engine>,
    agent: &Rc<Agent>,
    (shim, at_endpoint): (Process, bool),
    mut request: RemoteRequest,
    incoming: &mut Incoming,
    outgoing: &Outgoing,
) -> Result<session::Started, LaunchError> {
    let refused = |e: &dyn std::fmt::Display| LaunchError::Refused(e.to_string());
    let Filled { secrets, .. } = secrets::fill_in(engine, &mut request, &[]).await.map_err(|e| refused(&e))?;
    // Behind the keychain, which may have waited for a person.
    if let Some(route) = broker::routes(engine, &request.entry).await.map_err(|e| refused(&e))?.pop() {
        return Err(refused(&broker::BrokerError::Remote { entry: request.entry.quoted(), secret: route.secret }));
    }
    let mut secrets = named(secrets);
    let mut own_way = without_own_way(engine, &mut request).await?;
    let program =
        sibling("firedoor-remote").map_err(|e| LaunchError::Refused(format!("cannot find Firedoor itself: {e}")))?;
    let (user, granted) = user_grants(engine, &request.entry).await;
    let login = logins::header(engine, &request, &user.hosts, None).await;
    let (paths, profiles, limit) =
        (engine.paths.clone(), engine.profiles.clone(), engine.config.limits.message_bytes());
    let (entry, now) = (request.entry.clone(), engine.now());
    let work = move || {
        let context = Context::new(&paths, &profiles, &user, now);
        firedoor_launch::remote(&request, &context, &program, limit)
    };
    let run = tokio::task::spawn_blocking(work).await.map_err(|_| unplanned())?;
    let RemoteRun { step, mut instructions, what, digest, basis, mut notes } =
        run.map_err(|e| LaunchError::Refused(e.to_string()))?;
    notes.append(&mut own_way);
    instructions.at_endpoint = at_endpoint;
    match login {
        Ok(header) => {
            instructions.signed_in = header.is_some();
            secrets.extend(header.iter().map(|(_, value)| (LOGIN.into(), value.clone())));
            instructions.headers.extend(header);
        }
        Err(e) => notes.push(e.to_string()),
    }
    let launched = Launched { what, limits: step.confinement.limits, ..Launched::default() };
    let lasting = Lasting { launch: digest, profile: "remote".into(), basis, launched, granted: Some(granted) };
    let remote = Some(instructions);
    let known = known(engine, &entry).await?;
    let start_it = Start { shim, entry, step, lasting, known, remote, broker: None, secrets, notes };
    start(engine, agent, start_it, incoming, outgoing).await
}

/// Takes away what the entry itself says about the way to its server: proxies, and whose certificates to trust there. Whoever
/// wrote the entry, a project for example, would see what the user's logins and secrets are sent with.
pub(super) async fn without_own_way(
    engine: &Rc<Engine>,
    request: &mut RemoteRequest,
) -> Result<Vec<String>, LaunchError> {
    let names: Vec<String> = request.env.iter().filter_map(|(name, _)| name.to_str()).map(str::to_owned).collect();
    let mut names: Vec<String> = names.into_iter().filter(|name| firedoor_launch::is_about_the_network(name)).collect();
    names.sort();
    if names.is_empty() {
        return Ok(Vec::new());
    }
    let (paths, given) = (engine.paths.clone(), request.clone());
    let work = move || -> Result<Vec<String>, String> {
        let lookup = |name: &str| given.env.iter().find(|(n, _)| n == name).map(|(_, value)| value.clone());
        let env = Env::new(paths, &given.cwd, lookup);
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let clients = Clients::load().map_err(|e| e.to_string())?;
        Ok(clients.set_by_entry(&env, &given.entry, &names).into_iter().map(str::to_owned).collect())
    };
    let own = tokio::task::spawn_blocking(work).await.map_err(|_| unplanned())?.map_err(LaunchError::Refused)?;
    request.env.retain(|(name, _)| !own.iter().any(|own| name == own.as_str()));
    Ok(match own.is_empty() {
        true => Vec::new(),
        false => vec![format!(
            "not used, because the entry sets them itself: {}. Set them for its client where they are right",
            own.join(", ")
        )],
    })
}

/// Gets another token for a server that refuses the one it was given.
pub async fn renew_login(
    engine: &Rc<Engine>,
    agent: &Rc<Agent>,
    mut request: RemoteRequest,
    refused: Digest,
    outgoing: Outgoing,
) {
    let (user, _) = user_grants(engine, &request.entry).await;
    let header = match without_own_way(engine, &mut request).await {
        Ok(_) => logins::header(engine, &request, &user.hosts, Some(refused)).await.map_err(|e| e.to_string()),
        Err(e) => Err(e.to_string()),
    };
    let value = match header {
        Ok(header) => header.map(|(_, value)| value),
        Err(e) => {
            record_notes(engine, &request.entry, &[e]);
            None
        }
    };
    if value.is_none() {
        let reason = format!("its server wants a login: run `firedoor login {}`", request.entry.quoted());
        let event = engine.event(What::Failed { reason });
        engine.recorder.record(firedoor_model::audit::Event { entry: Some(request.entry.clone()), ..event });
    }
    if let Some(value) = &value {
        let secret = [(LOGIN, value.as_str())];
        engine.inspector.kept_secrets(&mut *agent.memory.lock().await, &request.entry, secret, engine.now());
    }
    // A shim that has gone needs none.
    let _ = outgoing.send(&ToShim::LoginRenewed { refused, value }).await;
}

/// What the token of a login is called where it is remembered. It has no reference.
const LOGIN: &str = "login";
