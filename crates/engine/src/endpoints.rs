//! Addresses at which clients that start no programs reach a server. Another program listens there (`firedoor-remote
//! --endpoints`), so that the engine speaks no HTTP and an engine that dies takes no connection with it. For each session
//! it starts a shim, as a client would.

use std::{
    cell::{Cell, RefCell},
    collections::BTreeMap,
    path::PathBuf,
    process::{Command, Stdio},
    rc::Rc,
    time::Duration,
};

use firedoor_clients::{Clients, Configured, Env};
use firedoor_ipc::{
    command::{EndpointView, Reply},
    process::{self, Process},
    wire::WireError,
};
use firedoor_model::{
    Ability, EntryId, Untrusted,
    endpoint::{Endpoint, Served, Target},
    paths::sibling,
};
use tokio::sync::watch;

use crate::{
    commands::settings::{Outcome, note, text},
    connection::{Incoming, Outgoing},
    engine::Engine,
    sys,
};

/// The program that listens.
const PROGRAM: &str = "firedoor-remote";

/// What makes it listen.
const LISTEN: &str = "--endpoints";

/// For an endpoint to listen, from when it was made.
const PATIENCE: Duration = Duration::from_secs(10);

/// For the program that listens, to take the word that the engine ends.
const FAREWELL: Duration = Duration::from_millis(200);

/// A program that listens and has died is started again after this long.
const AGAIN: Duration = Duration::from_secs(1);

/// Bytes of randomness in a path.
const KEY: usize = 20;

/// What became of an endpoint.
#[derive(Clone)]
enum State {
    Listens,
    Failed(String),
}

/// All of them.
pub struct Endpoints {
    table: RefCell<Vec<Endpoint>>,
    states: RefCell<BTreeMap<EntryId, State>>,
    /// Programs that are connected to serve them: one, but for moments.
    listeners: Cell<usize>,
    changes: watch::Sender<u64>,
}

impl Endpoints {
    /// With what the database keeps.
    pub fn new(table: Vec<Endpoint>) -> Self {
        Self {
            table: RefCell::new(table),
            states: RefCell::default(),
            listeners: Cell::new(0),
            changes: watch::Sender::new(0),
        }
    }

    fn changed(&self) {
        self.changes.send_modify(|count| *count += 1);
    }

    /// The endpoint of an entry.
    pub fn of(&self, entry: &EntryId) -> Option<Endpoint> {
        self.table.borrow().iter().find(|e| e.entry == *entry).cloned()
    }

    /// Waits a moment until the program that listens has heard that the engine ends on purpose.
    pub async fn told_off(&self) {
        let deadline = tokio::time::Instant::now() + FAREWELL;
        while self.listeners.get() > 0 && tokio::time::Instant::now() < deadline {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// Nobody listens any more. What did not listen before is known still.
    fn fell_silent(&self) {
        self.states.borrow_mut().retain(|_, state| matches!(state, State::Failed(_)));
        self.changed();
    }

    fn view(&self, endpoint: &Endpoint) -> EndpointView {
        let state = self.states.borrow().get(&endpoint.entry).cloned();
        EndpointView {
            entry: endpoint.entry.clone(),
            address: endpoint.address(),
            server: Untrusted::new(endpoint.target.to_string()),
            url: match &endpoint.target.server {
                Served::Remote { url, .. } => Some(url.clone()),
                Served::Program { .. } => None,
            },
            authorized: match &endpoint.target.server {
                Served::Remote { headers, .. } => {
                    headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("authorization"))
                }
                Served::Program { .. } => false,
            },
            listens: matches!(state, Some(State::Listens)),
            problem: match state {
                Some(State::Failed(why)) => Some(why),
                Some(State::Listens) | None => None,
            },
        }
    }

    /// What does not work.
    pub fn problems(&self) -> Vec<String> {
        let states = self.states.borrow();
        let failed = |(entry, state): (&EntryId, &State)| match state {
            State::Failed(why) => Some(format!("{entry} cannot be reached at its address: {why}")),
            State::Listens => None,
        };
        states.iter().filter_map(failed).collect()
    }
}

/// What an entry is configured to be, in its client's file, or as an endpoint that no file has.
pub fn configured(clients: &Clients, env: &Env<'_>, entry: &EntryId, own: Option<&Target>) -> Option<Configured> {
    clients.configured(env, entry).or_else(|| own.map(Configured::of))
}

/// The environment names that an endpoint's server was given by name.
pub fn declared(target: &Target) -> Vec<String> {
    match &target.server {
        Served::Program { env, .. } => env.iter().map(|(name, _)| name.clone()).collect(),
        Served::Remote { .. } => Vec::new(),
    }
}

/// Whether a process is the program that listens.
fn listens(process: Process) -> bool {
    let alive = process::stat(process.pid).is_ok_and(|stat| stat.process == process);
    let own = program();
    alive && own.is_some() && process::executable(process.pid) == own
}

/// The client that a shim of that program works for. What any other parent claims is nothing.
pub fn client_of(shim: Process, claimed: Option<Process>) -> Option<Process> {
    let claimed = claimed?;
    let parent = process::ancestry(shim.pid).get(1)?.process;
    let lives = process::stat(claimed.pid).is_ok_and(|stat| stat.process == claimed);
    (lives && listens(parent)).then_some(claimed)
}

fn program() -> Option<PathBuf> {
    sibling(PROGRAM).ok()
}

/// Starts the program, which ends by itself where another serves them already.
pub async fn start(engine: &Rc<Engine>) {
    if Ability::Listening.here().is_err()
        || engine.endpoints.table.borrow().is_empty()
        || engine.endpoints.listeners.get() > 0
    {
        return;
    }
    let work = || {
        let program = program().ok_or("Firedoor's own directory is not known")?;
        // It must not end with an engine that is stopped from a terminal.
        let mut command = Command::new(&program);
        command.arg(LISTEN).current_dir(sys::ROOT).stdin(Stdio::null()).stdout(Stdio::null());
        sys::apart(&mut command);
        let mut child = command.spawn().map_err(|e| format!("{}: {e}", program.display()))?;
        // Whatever becomes of it, it must not stay behind as a dead entry in the process table.
        std::thread::spawn(move || child.wait());
        Ok::<(), String>(())
    };
    let started = tokio::task::spawn_blocking(work).await.unwrap_or_else(|e| Err(e.to_string()));
    if let Err(e) = started {
        engine.problem(format!("the program that listens at endpoints cannot be started: {e}"));
    }
}

/// Serves the program that listens. One that dies alone is followed by another.
pub async fn serve(
    engine: &Rc<Engine>,
    peer: Process,
    incoming: &mut Incoming,
    outgoing: &Outgoing,
) -> Result<(), WireError> {
    if !listens(peer) {
        return outgoing.send(&Reply::Refused { text: "only Firedoor's own program serves endpoints".into() }).await;
    }
    struct Count<'e>(&'e Cell<usize>);
    impl Drop for Count<'_> {
        fn drop(&mut self) {
            self.0.set(self.0.get() - 1);
        }
    }
    let all = &engine.endpoints;
    all.listeners.set(all.listeners.get() + 1);
    let count = Count(&all.listeners);
    let streamed = stream(engine, incoming, outgoing).await;
    drop(count);
    if all.listeners.get() == 0 && !*engine.ending.borrow() {
        all.fell_silent();
        engine.changed();
        let engine = engine.clone();
        tokio::task::spawn_local(async move {
            tokio::time::sleep(AGAIN).await;
            start(&engine).await;
        });
    }
    streamed
}

/// Streams the table to the program that listens.
async fn stream(engine: &Rc<Engine>, incoming: &mut Incoming, outgoing: &Outgoing) -> Result<(), WireError> {
    let all = &engine.endpoints;
    let mut changes = all.changes.subscribe();
    let mut ending = engine.ending.subscribe();
    loop {
        changes.mark_unchanged();
        let (endpoints, max_message) = (all.table.borrow().clone(), engine.config.limits.message_bytes());
        outgoing.send(&Reply::Serve { endpoints, max_message }).await?;
        tokio::select! {
            changed = changes.changed() => if changed.is_err() {
                return Err(WireError::Closed);
            },
            _ = ending.wait_for(|ends| *ends) => {
                outgoing.send(&Reply::Done { text: String::new() }).await?;
                return Err(WireError::Closed);
            }
            () = incoming.closed() => return Err(WireError::Closed),
        }
    }
}

/// Takes a word of the program that listens.
pub async fn told(engine: &Rc<Engine>, peer: Process, entry: EntryId, port: u16, problem: Option<String>) -> Outcome {
    if !listens(peer) {
        return Err("only Firedoor's own program serves endpoints".into());
    }
    let Some(known) = engine.endpoints.of(&entry) else { return Err(format!("{entry} has no endpoint")) };
    let listens = problem.is_none();
    if listens && known.port == 0 {
        let of = entry.clone();
        engine.recorder.with(move |store| store.set_endpoint_port(&of, port)).await.map_err(text)?;
        let mut table = engine.endpoints.table.borrow_mut();
        if let Some(known) = table.iter_mut().find(|e| e.entry == entry) {
            known.port = port;
        }
    }
    let state = problem.map_or(State::Listens, State::Failed);
    engine.endpoints.states.borrow_mut().insert(entry, state);
    engine.endpoints.changed();
    engine.changed();
    Ok(Reply::Done { text: String::new() })
}

pub fn list(engine: &Engine) -> Reply {
    let endpoints = engine.endpoints.table.borrow().iter().map(|e| engine.endpoints.view(e)).collect();
    Reply::Endpoints { endpoints }
}

/// Makes an endpoint, and waits until it listens.
pub async fn add(engine: &Rc<Engine>, entry: EntryId, target: Target) -> Outcome {
    Ability::Listening.here().map_err(text)?;
    let mut key = [0; KEY];
    getrandom::fill(&mut key).map_err(|e| format!("the system gives no random numbers: {e}"))?;
    let key = data_encoding::BASE32_NOPAD.encode(&key).to_ascii_lowercase();
    let endpoint = match engine.endpoints.of(&entry) {
        Some(known) => Endpoint { target, ..known },
        None => Endpoint { entry: entry.clone(), port: 0, key, target },
    };
    note(engine, Some(&entry), format!("{entry} reached at an address of its own: {}", endpoint.target)).await?;
    let kept = endpoint.clone();
    engine.recorder.with(move |store| store.put_endpoint(&kept)).await.map_err(text)?;
    {
        let mut table = engine.endpoints.table.borrow_mut();
        table.retain(|e| e.entry != entry);
        table.push(endpoint);
        table.sort_by(|a, b| a.entry.cmp(&b.entry));
    }
    engine.endpoints.states.borrow_mut().remove(&entry);
    engine.endpoints.changed();
    start(engine).await;
    let mut changes = engine.endpoints.changes.subscribe();
    let settled =
        async { while !engine.endpoints.states.borrow().contains_key(&entry) && changes.changed().await.is_ok() {} };
    let in_time = tokio::time::timeout(PATIENCE, settled).await.is_ok();
    let endpoint = engine.endpoints.of(&entry).ok_or_else(|| format!("{entry} was removed meanwhile"))?;
    let mut view = engine.endpoints.view(&endpoint);
    if !in_time {
        view.problem = Some("the program that listens did not say anything in time: see engine.log".into());
    }
    Ok(Reply::Endpoints { endpoints: vec![view] })
}

pub async fn remove(engine: &Rc<Engine>, entry: EntryId) -> Outcome {
    note(engine, Some(&entry), format!("{entry} no longer reached at an address of its own")).await?;
    let of = entry.clone();
    let removed = engine.recorder.with(move |store| store.remove_endpoint(&of)).await.map_err(text)?;
    engine.endpoints.table.borrow_mut().retain(|e| e.entry != entry);
    engine.endpoints.states.borrow_mut().remove(&entry);
    engine.endpoints.changed();
    engine.changed();
    match removed {
        true => Ok(Reply::Done { text: format!("{entry} has no address of its own any more") }),
        false => Err(format!("{entry} has no endpoint: see `firedoor endpoints list`")),
    }
}
