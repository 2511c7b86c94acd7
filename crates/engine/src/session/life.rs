//! From the hand-over of the descriptors to the end of the session.

use std::{
    cell::{Cell, OnceCell, RefCell},
    collections::HashMap,
    io,
    rc::Rc,
    sync::Arc,
    time::Duration,
};

use firedoor_ipc::{
    command::EntryGrants,
    shim::{Ended, ToEngine, ToShim},
    wire::WireError,
};
use firedoor_model::{Digest, EntryId, Habit, audit::What, launch::Launched, observation::Basis};
use tokio::{
    sync::Notify,
    task::{JoinError, JoinHandle},
};

use super::{
    Session, attempts,
    definitions::Tool,
    downstream,
    held::Request,
    ledger::{Claimed, Record, State},
    owed::Owed,
    pending::{Asked, MAX_PENDING, Pending},
    refusals::Refusals,
    renewals::Renewals,
    streams::{self, Streams},
    tasks::Tasks,
    upstream,
};
use crate::{
    agent::Agent,
    broker,
    connection::{Incoming, Outgoing},
    engine::Engine,
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
    /// What its sandbox opens.
    pub basis: Basis,
    /// What it is, for showing.
    pub launched: Launched,
    /// What the user had granted; not known of servers that an earlier version started.
    pub granted: Option<EntryGrants>,
    /// The sandbox level really in force.
    pub level: String,
    /// The server's process.
    pub pid: u32,
    /// Tools that were seen in earlier sessions.
    pub tools: HashMap<String, Tool>,
    /// What its tools were called with in earlier sessions.
    pub habits: HashMap<String, Arc<Habit>>,
    /// The descriptors.
    pub streams: Streams,
    /// Another engine had the session before.
    pub resumed: bool,
    /// How the server ended, if it has.
    pub ended: Option<Ended>,
}

/// Runs a session to its end.
pub async fn serve(
    engine: &Rc<Engine>,
    started: Started,
    mut incoming: Incoming,
    outgoing: Outgoing,
) -> io::Result<()> {
    let opened = match streams::open(started.streams, started.resumed) {
        Ok(opened) => opened,
        Err(e) => {
            let _ = outgoing.send(&ToShim::Stop).await;
            return Err(e);
        }
    };
    let session = Rc::new(Session {
        id: engine.next_id(),
        entry: started.entry,
        agent: started.agent,
        launch: started.launch,
        profile: started.profile,
        basis: started.basis,
        launched: started.launched,
        granted: started.granted,
        record: RefCell::default(),
        refusals: Refusals::default(),
        renewals: Renewals::default(),
        level: started.level,
        pid: started.pid,
        since: engine.now(),
        calls: Cell::new(0),
        tools: RefCell::new(started.tools),
        habits: started.habits,
        shim: outgoing.clone(),
        to_server: opened.to_server,
        to_client: opened.to_client,
        ledger: opened.ledger,
        owed: Owed::default(),
        abandoned: RefCell::default(),
        pending: RefCell::new(Pending::default()),
        tasks: Tasks::default(),
        held: RefCell::default(),
        connections: RefCell::default(),
        unheld: Notify::new(),
        readers: OnceCell::new(),
        legacy: Cell::new(opened.state.legacy),
    });
    engine.sessions.borrow_mut().insert(session.id, session.clone());
    engine.remember_start(&session);
    engine.changed();
    let what = if started.resumed {
        session.agent.forgotten.set(true);
        session.take_over(opened.state);
        What::Resumed
    } else {
        What::Started { launch: session.launch, level: session.level.clone() }
    };
    engine.recorder.record(session.event(engine.now(), what));

    let up = tokio::task::spawn_local(upstream::run(session.clone(), engine.clone(), opened.from_client));
    let down = tokio::task::spawn_local(downstream::run(session.clone(), engine.clone(), opened.from_server));
    let _ = session.readers.set([up.abort_handle(), down.abort_handle()]);
    let status = attend(engine, &session, started.ended, (up, down), &mut incoming, &outgoing).await;
    session.stop_reading();

    session.keep_observation(engine).await;
    session.keep_habits(engine).await;
    engine.sessions.borrow_mut().remove(&session.id);
    engine.changed();
    session.withdraw_held(engine);
    session.withdraw_connections(engine);
    engine.recorder.record(session.event(engine.now(), What::Ended { status }));
    engine.release_agent(&session.agent);
    Ok(())
}

impl Session {
    /// A direction that failed inside us must not look like one that has ended: the server is stopped.
    async fn survived(
        &self,
        engine: &Rc<Engine>,
        result: Result<(), JoinError>,
        outgoing: &Outgoing,
    ) -> Result<(), WireError> {
        match result {
            Err(e) if e.is_panic() => {
                engine.recorder.record(self.failed(engine, "an error inside Firedoor ended this session"));
                outgoing.send(&ToShim::Stop).await
            }
            _ => Ok(()),
        }
    }

    /// Nobody is left to hear what becomes of what is held.
    fn withdraw_held(&self, engine: &Engine) {
        for held in self.held.take() {
            engine.withdraw(&held);
        }
        self.unheld.notify_waiters();
    }

    /// Waits until no line is held.
    async fn nothing_held(&self) {
        loop {
            let changed = self.unheld.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            if self.held.borrow().is_empty() {
                return;
            }
            changed.await;
        }
    }

    /// Goes on where an engine that died stopped.
    fn take_over(self: &Rc<Self>, state: State) {
        // An empty line ends one that may have been cut off, and says nothing otherwise.
        if state.torn {
            self.tell_client(b"\n");
            self.ledger.write(Record::Torn(false));
        }
        // One that could not be written has lost all.
        if state.requests.len() >= MAX_PENDING || (state.up, state.down) == (0, 0) {
            self.pending.borrow_mut().may_be_more();
        }
        for (id, claimed) in state.requests {
            let Claimed::Open { tool_call, modern } = claimed else {
                self.pending.borrow_mut().insert(&id, claimed.asked().unwrap_or_default());
                continue;
            };
            let text = "Firedoor's engine was restarted while it dealt with this request, and it is not known whether \
                        the server got it. It will not be sent again by itself.";
            self.abandoned.borrow_mut().insert(&id, Asked::default());
            let answer = Request { id: id.clone(), tool_call, modern }.refusal(text) + "\n";
            self.send_down(answer.as_bytes(), vec![Record::Answered(vec![id])]);
        }
    }
}

/// Reading stops when the engine is switched off. Neither side has ended then, so neither is closed: nothing more is done here.
async fn unless_stopped(result: &Result<(), JoinError>) {
    if result.as_ref().is_err_and(JoinError::is_cancelled) {
        std::future::pending().await
    }
}

/// Waits for what ends the streams, tells the shim, and gives the server's end in words.
async fn attend(
    engine: &Rc<Engine>,
    session: &Rc<Session>,
    mut ended: Option<Ended>,
    (mut up, mut down): (JoinHandle<()>, JoinHandle<()>),
    incoming: &mut Incoming,
    outgoing: &Outgoing,
) -> String {
    // Each end is reached in steps: the reader has ended, the writer has closed, the shim knows.
    let (mut up_done, mut up_closing, mut up_told) = (false, false, false);
    let (mut down_done, mut down_told) = (false, false);
    let mut leaving = false;
    let farewell = tokio::time::sleep(FAREWELL);
    tokio::pin!(farewell);
    loop {
        if down_done && ended.is_some() {
            session.to_client.finish().await;
            // The shim exits and closes; if it has gone already there is nobody to tell.
            let _ = outgoing.send(&ToShim::Drained).await;
            incoming.closed().await;
            break;
        }
        // Neither side says anything any more, or nobody reads what the server says.
        let deserted = up_done && down_done && ended.is_none();
        if deserted && !leaving {
            leaving = true;
            farewell.as_mut().reset(tokio::time::Instant::now() + FAREWELL);
        }
        let told = tokio::select! {
            message = incoming.receive::<ToEngine>() => match message {
                Ok((ToEngine::Exited(how), _)) => {
                    session.withdraw_connections(engine);
                    ended = Some(how);
                    Ok(())
                }
                Ok((ToEngine::Observing, fds)) => {
                    session.observe(engine, fds).await;
                    Ok(())
                }
                Ok((ToEngine::Attempted(attempt), _)) => {
                    attempts::record(engine, session, attempt);
                    Ok(())
                }
                Ok((ToEngine::Brokered(notice), _)) => {
                    broker::record(engine, session, notice);
                    Ok(())
                }
                Ok((ToEngine::Asked(question), _)) => {
                    session.asked(engine, question).await;
                    Ok(())
                }
                Ok((ToEngine::Withdrawn { id }, _)) => {
                    session.question_withdrawn(engine, id);
                    Ok(())
                }
                Ok((ToEngine::RenewLogin { request, refused }, _)) if request.entry == session.entry => {
                    session.renew_login(engine, request, refused, outgoing).await
                }
                Ok(_) => Ok(()),
                // The shim has gone, and its guardian ends the server.
                Err(_) => break,
            },
            result = &mut up, if !up_done => {
                up_done = true;
                unless_stopped(&result).await;
                session.survived(engine, result, outgoing).await
            }
            // What is held may still go to the server.
            () = session.nothing_held(), if up_done && !up_closing => {
                up_closing = true;
                session.to_server.close();
                Ok(())
            }
            () = session.to_server.finished(), if up_closing && !up_told => {
                up_told = true;
                outgoing.send(&ToShim::CloseServerStdin).await
            }
            result = &mut down, if !down_done => {
                down_done = true;
                unless_stopped(&result).await;
                session.to_client.close();
                session.survived(engine, result, outgoing).await
            }
            () = session.to_client.finished(), if down_done && !down_told && ended.is_none() => {
                down_told = true;
                outgoing.send(&ToShim::CloseClientStdout).await
            }
            () = session.to_client.broken(), if !leaving && up_done => {
                leaving = true;
                session.withdraw_held(engine);
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
