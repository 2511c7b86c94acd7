//! A server that runs, and what its session begins with: one that the shim starts now, or one that an engine before this one left.

use std::rc::Rc;

use firedoor_ipc::{
    command,
    process::{self, Process},
    shim::{Ended, ToEngine, ToShim},
    wire::Descriptor,
};
use firedoor_model::{
    Digest, EntryId,
    audit::What,
    launch::{Launched, Step},
    observation::{Basis, Record},
    remote::Instructions,
};
use firedoor_store::{Observation, Store};
use serde::{Deserialize, Serialize};

use super::{
    LaunchError,
    known::{Known, tools},
    record_notes,
};
use crate::{
    agent::Agent,
    connection::{Incoming, Outgoing},
    engine::Engine,
    session::{self, Streams, known_habits},
};

/// What a shim must tell the next engine about a server that runs.
#[derive(Serialize, Deserialize)]
pub(super) struct Lasting {
    pub launch: Digest,
    pub profile: String,
    /// What its sandbox opens. Absent in the words of an engine before this one.
    #[serde(default)]
    pub basis: Basis,
    #[serde(default)]
    pub launched: Launched,
    /// What the user had granted.
    #[serde(default)]
    pub granted: Option<command::EntryGrants>,
}

pub(super) struct Running {
    pub entry: EntryId,
    pub pid: u32,
    pub level: String,
    pub ended: Option<Ended>,
}

/// Takes a running server over from an engine that died.
pub(super) async fn resume(
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

/// What the shim is to start.
pub(super) struct Start {
    pub shim: Process,
    pub entry: EntryId,
    pub step: Step,
    pub lasting: Lasting,
    pub known: Known,
    pub remote: Option<Instructions>,
    pub broker: Option<Box<firedoor_model::broker::Start>>,
    /// What came out of the keychain for it, by name.
    pub secrets: Vec<(String, String)>,
    /// What the user should know about it.
    pub notes: Vec<String>,
}

/// Lets the shim start it.
pub(super) async fn start(
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
