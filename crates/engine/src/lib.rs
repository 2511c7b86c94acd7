//! The proxy: sessions, transports, wiring of inspection, policy and store.
//!
//! One event loop on one thread. What blocks or takes long (the database, looking at files before a start, inspecting
//! large messages) happens on threads of its own.
//!
//! Architecture invariants: knows no Tauri and no windows; never starts a process; a message that was not changed goes on
//! as the bytes that came.

mod agent;
mod authority;
mod broker;
mod classifier;
mod commands;
mod config;
mod confirmations;
mod connection;
mod egress;
mod endpoints;
mod engine;
pub mod errand;
mod io;
pub mod kept;
mod launches;
pub mod login;
mod logins;
mod managed;
mod pause;
mod recorder;
mod secrets;
mod session;
mod sys;
mod watching;
mod withheld;

use std::{io::Error as IoError, rc::Rc, sync::Arc, time::Duration};

use firedoor_clients::verify::Apart;
use firedoor_ipc::{
    Hello, PROTOCOL, Role,
    command::Reply,
    endpoint::{Endpoint, EndpointError},
    shim::ToShim,
};
use firedoor_launch::Profiles;
use firedoor_model::{EntryId, audit::What, paths::Paths};
use firedoor_store::{Store, StoreError};
use tokio::{sync::Semaphore, task::LocalSet};

pub use authority::{objection_to_this_process, screens_of_the_user};

use crate::{
    config::Config,
    connection::{Caller, Door},
    egress::Egress,
    engine::{Engine, Parts},
    managed::Managed,
    recorder::Recorder,
};

/// Most shims and commands at once.
const MAX_CONNECTIONS: usize = 512;

/// For a connection's first message.
const HELLO_LIMIT: Duration = Duration::from_secs(5);

/// Why the engine cannot run.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// The socket.
    #[error(transparent)]
    Endpoint(#[from] EndpointError),
    /// The database.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Something of the operating system.
    #[error("cannot {0}: {1}")]
    System(&'static str, #[source] IoError),
    /// The administrator's policy.
    #[error(transparent)]
    Managed(#[from] managed::ManagedError),
    /// It would trust nobody.
    #[error("the engine cannot run here: {0}")]
    Blind(&'static str),
    /// No random numbers.
    #[error("the system gives no random numbers: {0}")]
    Random(#[from] getrandom::Error),
}

/// Protects entries, and sees whether they answer, in a process of its own: the engine starts none.
pub type Protect = fn(&[EntryId]) -> Result<Apart, String>;

/// Runs the engine until it is asked to end (SIGTERM, SIGINT; on Windows Ctrl+C and its kin). `protect` is called where the user wants new servers protected without being
/// asked; `ready` when the engine listens.
pub fn run(paths: Paths, protect: Protect, ready: impl FnOnce()) -> Result<(), EngineError> {
    if let Some(reason) = authority::blindness(&paths) {
        return Err(EngineError::Blind(reason));
    }
    let endpoint = Endpoint::bind(&paths)?;
    let opened = Store::open(&paths.database(), engine::now())?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .max_blocking_threads(16)
        .build()
        .map_err(|e| EngineError::System("start the event loop", e))?;
    let local = LocalSet::new();
    let mut endpoint = endpoint;
    let served = local.block_on(&runtime, serve(paths, &mut endpoint, opened, protect, ready));
    // What still runs on other threads, be it looking at a file on a dead network drive, must not keep us here.
    runtime.shutdown_timeout(Duration::from_secs(1));
    served
}

async fn serve(
    paths: Paths,
    endpoint: &mut Endpoint,
    opened: firedoor_store::Opened,
    protect: Protect,
    ready: impl FnOnce(),
) -> Result<(), EngineError> {
    let system = |what| move |e| EngineError::System(what, e);
    let mut problems = Vec::new();
    let (config, problem) = Config::load(&paths.config);
    problems.extend(problem);
    let (profiles, faults) = Profiles::load(&paths.config.join("profiles"));
    problems.extend(faults.iter().map(ToString::to_string));
    if let Some(aside) = &opened.set_aside {
        problems.push(format!(
            "the database was damaged and was kept as {}; rules, pins and grants in it are not in force",
            aside.display()
        ));
    }
    let (rules, mode, log_days) = (opened.store.rules()?, opened.store.mode()?, opened.store.log_days()?);
    let (declined, protect_new) = (opened.store.declined()?, opened.store.protect_new()?);
    let endpoints = opened.store.endpoints()?;
    // Root's, so that no program of the user's can write it.
    let managed = sys::managed().map_err(system("find the administrator's policy"))?;
    let managed = Managed::load(&managed, 0, engine::now())?;
    let mut seed = [0; 32];
    getrandom::fill(&mut seed)?;
    let recorder = Recorder::start(opened.store).map_err(system("start the database's thread"))?;
    let egress = Egress::start().await.map_err(system("listen for install steps"))?;
    let listener = endpoint.take_listener().ok_or_else(|| system("use the socket")(IoError::other("it is in use")))?;
    let mut door = Door::open(listener).map_err(system("use the socket"))?;
    let mut ends = sys::Ends::new().map_err(system("wait for signals"))?;

    let parts = Parts {
        paths,
        config,
        profiles: Arc::new(profiles),
        recorder,
        egress,
        seed,
        rules,
        mode,
        managed,
        log_days,
        protect_new,
        declined,
        endpoints,
        problems,
    };
    let engine = Engine::new(parts);
    for problem in engine.problems() {
        engine.recorder.record(engine.event(What::Failed { reason: problem }));
    }
    tokio::task::spawn_local(engine.clone().run_clocks());
    tokio::task::spawn_local(engine.clone().run_retention());
    tokio::task::spawn_local(watching::run(engine.clone(), protect));
    tokio::task::spawn_local(engine.clone().run_uses());
    tokio::task::spawn_local(classifier::run(engine.clone()));
    ready();
    let own = engine.clone();
    tokio::task::spawn_local(async move { endpoints::start(&own).await });
    let slots = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    loop {
        tokio::select! {
            caller = door.next() => match caller {
                Ok(caller) => match Arc::clone(&slots).try_acquire_owned() {
                    Ok(slot) => {
                        let greeting = greet(engine.clone(), caller);
                        tokio::task::spawn_local(async move {
                            greeting.await;
                            drop(slot);
                        });
                    }
                    // Dropping the socket tells the other side; whoever holds them all runs as the same user.
                    Err(_) => engine.problem(format!("more than {MAX_CONNECTIONS} connections at once")),
                },
                // Out of descriptors: wait for some to come back.
                Err(_) => tokio::time::sleep(Duration::from_millis(100)).await,
            },
            () = ends.asked() => break,
            () = engine.end.notified() => break,
        }
    }
    // This is no crash: shims must not start another engine, but wait for one. They must not find this one again either.
    drop(door);
    endpoint.hide();
    engine.say_off().await;
    engine.write_uses().await;
    engine.recorder.close().await;
    Ok(())
}

/// Checks who connects and what for.
async fn greet(engine: Rc<Engine>, caller: Caller) {
    let Some((peer, mut incoming, outgoing)) = caller.enter() else { return };
    let Ok(Ok((hello, _))) = tokio::time::timeout(HELLO_LIMIT, incoming.receive::<Hello>()).await else { return };
    let other = format!(
        "the running engine is Firedoor {} and speaks another protocol: stop it (process {}) and try again",
        env!("CARGO_PKG_VERSION"),
        std::process::id()
    );
    // Whether the other side still listens makes no difference here.
    let _ = match (hello.role, hello.protocol == PROTOCOL) {
        (Role::Shim, true) => {
            launches::serve(engine, peer, hello.client, incoming, outgoing).await;
            Ok(())
        }
        (Role::Command, true) => {
            commands::serve(engine, peer, incoming, outgoing).await;
            Ok(())
        }
        (Role::Shim, false) => outgoing.send(&ToShim::Refuse { text: other }).await,
        (Role::Command, false) => outgoing.send(&Reply::Failed { text: other }).await,
    };
}
