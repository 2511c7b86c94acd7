//! From a shim's first message to a running server.

use std::{
    cell::LazyCell,
    collections::{BTreeSet, HashMap},
    ops::Deref,
    rc::Rc,
    sync::Arc,
};

use firedoor_clients::{Clients, Env};
use firedoor_ipc::{
    command,
    process::{self, Peer, Process},
    shim::{Ended, ToEngine, ToShim},
    wire::Descriptor,
};
use firedoor_launch::{Context, InstallStep, Plan, ProxyAddress, RemoteRun, Run, UserGrants};
use firedoor_model::{
    Ability, Digest, EntryId, Habit, SecretRef,
    audit::What,
    launch::{LaunchRequest, Launched, Network, Step},
    observation::{Basis, Record},
    paths::sibling,
    remote::{Instructions, RemoteRequest},
};
use firedoor_store::{Observation, Store};
use serde::{Deserialize, Serialize};

use crate::{
    agent::{self, Agent},
    broker,
    connection::{Incoming, Outgoing},
    egress::{Egress, Target},
    endpoints,
    engine::Engine,
    logins,
    secrets::{self, Filled},
    session::{
        self, Streams,
        definitions::{Tool, known_tools},
        known_habits,
    },
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

/// What a shim must tell the next engine about a server that runs.
#[derive(Serialize, Deserialize)]
struct Lasting {
    launch: Digest,
    profile: String,
    /// What its sandbox opens. Absent in the words of an engine before this one.
    #[serde(default)]
    basis: Basis,
    #[serde(default)]
    launched: Launched,
    /// What the user had granted.
    #[serde(default)]
    granted: Option<command::EntryGrants>,
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

struct Running {
    entry: EntryId,
    pid: u32,
    level: String,
    ended: Option<Ended>,
}

/// Takes a running server over from an engine that died.
async fn resume(
    engine: &Rc<Engine>,
    agent: &Rc<Agent>,
    shim: Process,
    running: Running,
    context: &str,
    fds: Vec<Descriptor>,
) -> Result<session::Started, LaunchError> {
    let lasting: Lasting = serde_json::from_str(context).map_err(|_| LaunchError::Shim)?;
    let streams = Streams::take(fds).ok_or(LaunchError::Shim)?;
    // The number of one that has ended may be another's.
    if running.ended.is_none() {
        watch_server(engine, shim, running.pid)?;
    }
    let (tools, habits) = tokio::join!(tools(engine, &running.entry), known_habits(engine, &running.entry));
    Ok(session::Started {
        tools: tools?,
        habits,
        entry: running.entry,
        agent: agent.clone(),
        launch: lasting.launch,
        profile: lasting.profile,
        basis: lasting.basis,
        launched: lasting.launched,
        granted: lasting.granted,
        level: running.level,
        pid: running.pid,
        streams,
        resumed: true,
        ended: running.ended,
    })
}

/// Remembers a server's process. What descends from it may give no commands, so it has to be one that the shim started, not
/// any that the shim names. One that has ended already needs no remembering.
fn watch_server(engine: &Engine, shim: Process, pid: u32) -> Result<(), LaunchError> {
    match process::descendant(pid, shim) {
        Some((server, true)) => engine.authority.watch_server(server),
        Some((_, false)) => return Err(LaunchError::Shim),
        None => {}
    }
    Ok(())
}

/// The tools that earlier sessions pinned. Without them a changed tool would look like a new one.
async fn tools(engine: &Rc<Engine>, entry: &EntryId) -> Result<HashMap<String, Tool>, LaunchError> {
    let of = entry.clone();
    let pins = engine.recorder.at_once(move |store| store.pins(Some(&of))).await;
    let refused = |e| LaunchError::Refused(format!("what {entry} offered before cannot be read: {e}"));
    Ok(known_tools(engine, &pins.map_err(refused)?))
}

async fn launch(
    engine: &Rc<Engine>,
    agent: &impl Deref<Target = Rc<Agent>>,
    shim: Process,
    mut request: LaunchRequest,
    incoming: &mut Incoming,
    outgoing: &Outgoing,
) -> Result<session::Started, LaunchError> {
    let refused = |e: &dyn std::fmt::Display| LaunchError::Refused(e.to_string());
    // Asked of the database together: each wait for its thread delays the server.
    let (routes, user) = tokio::join!(broker::routes(engine, &request.entry), user_grants(engine, &request.entry));
    let routes = routes.map_err(|e| refused(&e))?;
    if secrets::wants(&request) {
        // Whoever waits there with a shell must be known for a client's by then.
        let _ = agent.deref();
    }
    let Filled { brokered, secrets } =
        secrets::fill_in(engine, &mut request, &routes).await.map_err(|e| refused(&e))?;
    let who = async { agent.deref() };
    let (planned, known, agent) = tokio::join!(plan(engine, &request, user), known(engine, &request.entry), who);
    let (mut planned, mut known) = (planned?, known?);
    if let Planned { plan: Plan::Install(step), token, .. } = planned {
        install(engine, &request.entry, &step, token, incoming, outgoing).await?;
        // That may have taken minutes.
        let user = user_grants(engine, &request.entry).await;
        planned = plan(engine, &request, user).await?;
        known = self::known(engine, &request.entry).await?;
    }
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
    if !dropped_env.is_empty() {
        notes.push(format!("environment variables that are not passed on: {}", dropped_env.join(", ")));
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

/// Lets the shim, which may work for an endpoint, start what stands in for a server that is reached over HTTP.
async fn launch_remote(
    engine: &Rc<Engine>,
    agent: &Rc<Agent>,
    (shim, at_endpoint): (Process, bool),
    mut request: RemoteRequest,
    incoming: &mut Incoming,
    outgoing: &Outgoing,
) -> Result<session::Started, LaunchError> {
    let refused = |e: &dyn std::fmt::Display| LaunchError::Refused(e.to_string());
    if let Some(route) = broker::routes(engine, &request.entry).await.map_err(|e| refused(&e))?.pop() {
        return Err(refused(&broker::BrokerError::Remote { entry: request.entry.quoted(), secret: route.secret }));
    }
    let Filled { secrets, .. } = secrets::fill_in(engine, &mut request, &[]).await.map_err(|e| refused(&e))?;
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
async fn without_own_way(engine: &Rc<Engine>, request: &mut RemoteRequest) -> Result<Vec<String>, LaunchError> {
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

/// Secrets by what people know them by.
fn named(secrets: Vec<(SecretRef, String)>) -> Vec<(String, String)> {
    secrets.into_iter().map(|(reference, value)| (reference.to_string(), value)).collect()
}

/// What the shim is to start.
struct Start {
    shim: Process,
    entry: EntryId,
    step: Step,
    lasting: Lasting,
    known: Known,
    remote: Option<Instructions>,
    broker: Option<Box<firedoor_model::broker::Start>>,
    /// What came out of the keychain for it, by name.
    secrets: Vec<(String, String)>,
    /// What the user should know about it.
    notes: Vec<String>,
}

/// Lets the shim start it.
async fn start(
    engine: &Rc<Engine>,
    agent: &Rc<Agent>,
    Start { shim, entry, step, lasting, known, remote, broker, secrets, notes }: Start,
    incoming: &mut Incoming,
    outgoing: &Outgoing,
) -> Result<session::Started, LaunchError> {
    let Known { tools, habits, observe } = known;
    let context = serde_json::to_string(&lasting).map_err(|e| LaunchError::Refused(e.to_string()))?;
    record_notes(engine, &entry, &notes);
    // What is secret in it must not turn up in what other servers are told.
    let mut given = step.env.clone();
    given.extend(remote.iter().flat_map(|r| &r.headers).map(|(name, value)| (name.into(), value.into())));
    outgoing.send(&ToShim::Run { step, context, observe, remote, broker }).await.map_err(|_| LaunchError::Shim)?;
    match incoming.receive().await {
        Ok((ToEngine::Started { pid, level }, fds)) => {
            let streams = Streams::take(fds).ok_or(LaunchError::Shim)?;
            watch_server(engine, shim, pid)?;
            if observe {
                begin_observing(engine, &entry, &lasting.basis).await;
            }
            let variables = given.iter().filter_map(|(name, value)| Some((name.to_str()?, value.to_str()?)));
            let secrets = secrets.iter().map(|(name, value)| (name.as_str(), value.as_str()));
            let (mut memory, now) = (agent.memory.lock().await, engine.now());
            engine.inspector.kept_secrets(&mut memory, &entry, secrets, now);
            engine.inspector.environment(&mut memory, &entry, variables, now);
            drop(memory);
            Ok(session::Started {
                basis: lasting.basis,
                launched: lasting.launched,
                granted: lasting.granted,
                entry,
                agent: agent.clone(),
                launch: lasting.launch,
                profile: lasting.profile,
                level,
                pid,
                tools,
                habits,
                streams,
                resumed: false,
                ended: None,
            })
        }
        Ok((ToEngine::Failed { detail }, _)) => Err(LaunchError::Failed(detail)),
        Ok(_) | Err(_) => Err(LaunchError::Shim),
    }
}

/// What earlier sessions of an entry and the user have left for its next one.
struct Known {
    tools: HashMap<String, Tool>,
    habits: HashMap<String, Arc<Habit>>,
    observe: bool,
}

async fn known(engine: &Rc<Engine>, entry: &EntryId) -> Result<Known, LaunchError> {
    let (tools, habits, observe) =
        tokio::join!(tools(engine, entry), known_habits(engine, entry), to_observe(engine, entry));
    Ok(Known { tools: tools?, habits, observe })
}

/// Whether the user wants to see what this start of an entry does.
async fn to_observe(engine: &Rc<Engine>, entry: &EntryId) -> bool {
    // A home may come from a system that can.
    if Ability::Observing.here().is_err() {
        return false;
    }
    let now = engine.now();
    match engine.recorder.at_once(move |store| store.to_observe(now)).await {
        Ok(entries) => entries.contains(entry),
        // It runs as it always does.
        Err(e) => {
            engine.problem(format!("what is to be observed cannot be read: {e}"));
            false
        }
    }
}

/// One run is observed, not every one.
async fn begin_observing(engine: &Rc<Engine>, entry: &EntryId, basis: &Basis) {
    let of = entry.clone();
    let begun = Observation { at: engine.now(), record: Record::default(), basis: basis.clone() };
    let begin = move |store: &mut Store| {
        store.observe_next(&of, None)?;
        store.set_observed(&of, &begun)
    };
    if let Err(e) = engine.recorder.with(begin).await {
        engine.problem(format!("the observation of {entry} cannot be written down: {e}"));
    }
    let event = engine.event(What::Command { text: "observed during this run".into() });
    engine.recorder.record(firedoor_model::audit::Event { entry: Some(entry.clone()), ..event });
}

struct Planned {
    plan: Plan,
    /// The token that the plan's install step presents to the proxy.
    token: String,
    /// What the user had granted.
    granted: command::EntryGrants,
}

/// The thread that plans has ended without a plan.
fn unplanned() -> LaunchError {
    LaunchError::Refused("planning the start failed inside Firedoor; see engine.log".into())
}

/// What the user granted an entry.
async fn user_grants(engine: &Rc<Engine>, entry: &EntryId) -> (UserGrants, command::EntryGrants) {
    let of = entry.clone();
    let user = match engine.recorder.at_once(move |store| store.grants(&of)).await {
        Ok(granted) => UserGrants {
            grants: granted.grants,
            env: granted.env.into_iter().collect(),
            hosts: granted.hosts,
            sockets: granted.sockets,
        },
        // Fewer grants are safe, and the server may run without them.
        Err(e) => {
            engine.problem(format!("grants cannot be read: {e}"));
            UserGrants::default()
        }
    };
    let granted = command::EntryGrants {
        entry: entry.clone(),
        grants: user.grants.clone(),
        env: user.env.iter().cloned().collect(),
        hosts: user.hosts.clone(),
        sockets: user.sockets.clone(),
    };
    (user, granted)
}

/// Makes the plan, on another thread: it looks at many files.
async fn plan(
    engine: &Rc<Engine>,
    request: &LaunchRequest,
    (user, granted): (UserGrants, command::EntryGrants),
) -> Result<Planned, LaunchError> {
    let refused = |e: &dyn std::fmt::Display| LaunchError::Refused(e.to_string());
    let token = Egress::token().map_err(|e| refused(&e))?;
    let proxy = ProxyAddress { address: engine.egress.address(), user: "install".into(), token: token.clone() };
    let (paths, profiles, request, now) =
        (engine.paths.clone(), engine.profiles.clone(), request.clone(), engine.now());
    let own = engine.endpoints.of(&request.entry);
    let work = move || {
        let own = own.map(|own| endpoints::declared(&own.target).into_iter().collect());
        let declared = declared_env(&request, &paths).or(own);
        let context = Context {
            declared_env: declared.as_ref(),
            proxy: Some(proxy),
            ..Context::new(&paths, &profiles, &user, now)
        };
        firedoor_launch::plan(&request, &context)
    };
    let plan = tokio::task::spawn_blocking(work).await.map_err(|_| unplanned())?.map_err(|e| refused(&e))?;
    Ok(Planned { plan, token, granted })
}

/// The environment names that the entry declares in its client's configuration.
fn declared_env(request: &LaunchRequest, paths: &firedoor_model::paths::Paths) -> Option<BTreeSet<String>> {
    let lookup = |name: &str| request.env.iter().find(|(n, _)| n == name).map(|(_, value)| value.clone());
    let env = Env::new(paths.clone(), &request.cwd, lookup);
    let entry: &EntryId = &request.entry;
    Clients::load().ok()?.declared_env(&env, entry)
}

/// Lets the shim run an install step that reaches its registry and nothing else.
async fn install(
    engine: &Rc<Engine>,
    entry: &EntryId,
    step: &InstallStep,
    token: String,
    incoming: &mut Incoming,
    outgoing: &Outgoing,
) -> Result<(), LaunchError> {
    record_notes(engine, entry, &step.notes);
    let targets =
        step.hosts.iter().map(|(host, port)| Target { host: host.to_ascii_lowercase(), port: *port }).collect();
    // Ends with this function.
    let _pass = engine.egress.admit(token, targets);
    let message = ToShim::Install { step: step.step.clone(), limit: step.timeout };
    outgoing.send(&message).await.map_err(|_| LaunchError::Shim)?;
    let unrecorded = |e: firedoor_launch::PlanError| LaunchError::Refused(e.to_string());
    match incoming.receive().await {
        Ok((ToEngine::Installed { ok: true, .. }, _)) => step.done(engine.now()).map_err(unrecorded),
        Ok((ToEngine::Installed { ok: false, detail }, _)) => {
            step.failed(engine.now()).map_err(unrecorded)?;
            // A refresh may fail, as it does without a network: what is installed runs.
            if !step.required {
                return Ok(());
            }
            let hosts: Vec<_> = step.hosts.iter().map(|(host, port)| format!("{host}:{port}")).collect();
            Err(LaunchError::Refused(format!(
                "{} could not be installed: {detail}. Its installer ran in a sandbox that reaches only {}",
                step.package,
                hosts.join(", ")
            )))
        }
        Ok(_) | Err(_) => {
            // The next start begins anew in any case.
            let _ = step.failed(engine.now());
            Err(LaunchError::Shim)
        }
    }
}

/// Puts what the user should know about a plan into the log.
fn record_notes(engine: &Engine, entry: &EntryId, notes: &[String]) {
    for text in notes {
        let event = engine.event(What::Command { text: text.clone() });
        engine.recorder.record(firedoor_model::audit::Event { entry: Some(entry.clone()), ..event });
    }
}
