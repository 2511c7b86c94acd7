//! From the hand-over of the descriptors to the end of the session.

use std::{
    cell::{Cell, RefCell},
    collections::HashMap,
    io,
    os::fd::OwnedFd,
    rc::Rc,
    time::Duration,
};

use firedoor_ipc::shim::{Ended, ToEngine, ToShim};
use firedoor_model::{Digest, EntryId, audit::What};
use tokio::task::JoinHandle;

use super::{Session, definitions::Tool, downstream, pending::Pending, upstream};
use crate::{
    agent::Agent,
    connection::{Incoming, Outgoing},
    engine::Engine,
    io::{Inlet, Outlet},
};

/// After the client closed both sides, a server has this long to end by itself before it is asked to.
const FAREWELL: Duration = Duration::from_secs(2);

/// What a session starts with.
pub struct Started {
    /// The entry.
    pub entry: EntryId,
    /// The client.
    pub agent: Rc<Agent>,
    /// What was started.
    pub launch: Digest,
    /// The profile that gave its grants.
    pub profile: String,
    /// The sandbox level really in force.
    pub level: String,
    /// The server's process.
    pub pid: u32,
    /// Tools that were seen in earlier sessions.
    pub tools: HashMap<String, Tool>,
    /// Client's stdin and stdout, server's stdin and stdout.
    pub streams: [OwnedFd; 4],
}

/// Runs a session to its end.
pub async fn serve(
    engine: &Rc<Engine>,
    started: Started,
    mut incoming: Incoming,
    outgoing: Outgoing,
) -> io::Result<()> {
    let [client_in, client_out, server_in, server_out] = started.streams;
    let (from_client, from_server) = (Inlet::new(client_in)?, Inlet::new(server_out)?);
    let session = Rc::new(Session {
        id: engine.next_id(),
        entry: started.entry,
        agent: started.agent,
        launch: started.launch,
        profile: started.profile,
        level: started.level,
        pid: started.pid,
        since: engine.now(),
        calls: Cell::new(0),
        tools: RefCell::new(started.tools),
        to_server: Outlet::new(server_in)?,
        to_client: Outlet::new(client_out)?,
        pending: RefCell::new(Pending::default()),
        held: RefCell::default(),
        legacy: Cell::new(false),
    });
    engine.sessions.borrow_mut().insert(session.id, session.clone());
    engine.changed();
    let what = What::Started { launch: session.launch, level: session.level.clone() };
    engine.recorder.record(session.event(engine.now(), what));

    let up = tokio::task::spawn_local(upstream::run(session.clone(), engine.clone(), from_client));
    let down = tokio::task::spawn_local(downstream::run(session.clone(), engine.clone(), from_server));
    let (stop_up, stop_down) = (up.abort_handle(), down.abort_handle());
    let status = attend(engine, &session, up, down, &mut incoming, &outgoing).await;
    stop_up.abort();
    stop_down.abort();

    engine.sessions.borrow_mut().remove(&session.id);
    engine.changed();
    for held in session.held.take() {
        engine.withdraw(&held);
    }
    engine.recorder.record(session.event(engine.now(), What::Ended { status }));
    engine.release_agent(&session.agent);
    Ok(())
}

/// Waits for what ends the streams, tells the shim, and gives the server's end in words.
async fn attend(
    engine: &Rc<Engine>,
    session: &Rc<Session>,
    mut up: JoinHandle<()>,
    mut down: JoinHandle<()>,
    incoming: &mut Incoming,
    outgoing: &Outgoing,
) -> String {
    let mut ended: Option<Ended> = None;
    let (mut up_done, mut down_done, mut leaving) = (false, false, false);
    let farewell = tokio::time::sleep(FAREWELL);
    tokio::pin!(farewell);
    loop {
        if down_done && ended.is_some() {
            session.to_client.drained().await;
            session.to_client.finish().await;
            // The shim exits and closes; if it has gone already there is nobody to tell.
            let _ = outgoing.send(&ToShim::Drained).await;
            incoming.closed().await;
            break;
        }
        let told = tokio::select! {
            message = incoming.receive::<ToEngine>() => match message {
                Ok((ToEngine::Exited(how), _)) => {
                    ended = Some(how);
                    Ok(())
                }
                Ok(_) => Ok(()),
                // The shim has gone, and its guardian ends the server.
                Err(_) => break,
            },
            _ = &mut up, if !up_done => {
                up_done = true;
                session.to_server.finish().await;
                outgoing.send(&ToShim::CloseServerStdin).await
            }
            _ = &mut down, if !down_done => {
                down_done = true;
                if ended.is_none() {
                    session.to_client.finish().await;
                    outgoing.send(&ToShim::CloseClientStdout).await
                } else {
                    Ok(())
                }
            }
            () = session.to_client.broken(), if !leaving && up_done => {
                leaving = true;
                farewell.as_mut().reset(tokio::time::Instant::now() + FAREWELL);
                Ok(())
            }
            () = &mut farewell, if leaving && ended.is_none() => {
                // Once is enough: the shim kills what does not end.
                farewell.as_mut().reset(tokio::time::Instant::now() + Duration::from_secs(3600));
                outgoing.send(&ToShim::Stop).await
            }
        };
        if told.is_err() {
            break;
        }
    }
    match ended {
        Some(Ended::Code(code)) => format!("exit code {code}"),
        Some(Ended::Signal(signal)) => format!("signal {signal}"),
        None => {
            engine.wake.notify_one();
            "the shim ended first".to_owned()
        }
    }
}
