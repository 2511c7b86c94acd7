//! The engine's state, shared by everything that runs on its one event loop.

mod clocks;
pub(crate) mod held;
mod uses;

use std::{
    cell::{Cell, RefCell},
    collections::{BTreeMap, HashMap},
    rc::Rc,
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use firedoor_clients::watch::Watching;
use firedoor_inspect::Inspector;
use firedoor_ipc::{
    command::{Start, Withheld},
    process::Process,
    shim::ToShim,
};
use firedoor_launch::Profiles;
use firedoor_model::{
    Confidence, Digest, EntryId, Finding, Millis, Mode, Severity,
    audit::{Event, What},
    endpoint::Endpoint,
    paths::Paths,
    question::Ref,
    rule::{Rule, Use},
};
use firedoor_policy::{Desk, HeldId, Refusal, SessionId};
use firedoor_store::{Keys, PinKey, Secrets};
use tokio::sync::{Notify, watch};

use held::Held;

use crate::{
    agent::{Agent, Client},
    authority::Authority,
    classifier::Classifier,
    config::Config,
    confirmations::Confirmations,
    egress::Egress,
    endpoints::Endpoints,
    logins::Logins,
    managed::Managed,
    pause::Pause,
    recorder::Recorder,
    session::Session,
    watching::{self, Offers},
};

/// For one use of the keychain. Clients wait about a minute for a server.
const KEYCHAIN: Duration = Duration::from_secs(10);

/// Entries whose last start is remembered.
const MAX_STARTS: usize = 512;

/// Problems shown at most.
const MAX_PROBLEMS: usize = 32;

/// The engine.
pub struct Engine {
    pub paths: Paths,
    pub config: Config,
    /// Shared with the threads that plan, so that what ships is read once.
    pub profiles: Arc<Profiles>,
    pub inspector: Arc<Inspector>,
    /// The user's own, where there is one.
    pub classifier: Option<Classifier>,
    pub recorder: Rc<Recorder>,
    pub egress: Rc<Egress>,
    pub authority: Authority,
    pub desk: RefCell<Desk>,
    /// Every rule in force, those of the administrator first.
    pub rules: RefCell<Vec<Rule>>,
    /// Rules that the user removed in this run, and may put back.
    pub removed: RefCell<Vec<Rule>>,
    /// Uses of rules that are not written down yet.
    uses: RefCell<BTreeMap<i64, Use>>,
    /// What an administrator has settled.
    pub managed: Managed,
    /// For how many days audit rows are kept.
    pub log_days: Cell<u32>,
    /// That has changed.
    pub retain: Notify,
    pub mode: Cell<Mode>,
    /// While it lasts, nothing is asked.
    pub pause: Cell<Option<Pause>>,
    pub sessions: RefCell<BTreeMap<u64, Rc<Session>>>,
    pub agents: RefCell<HashMap<Process, Rc<Agent>>>,
    /// How each entry's server was last started.
    pub starts: RefCell<BTreeMap<EntryId, Start>>,
    pub held: RefCell<HashMap<HeldId, Held>>,
    /// Servers that could be protected.
    pub offers: RefCell<Offers>,
    /// Definitions that are kept from agents, and about which the user has not decided yet.
    pub withheld: RefCell<BTreeMap<PinKey, Withheld>>,
    /// Changed definitions as they were last given out to be looked at.
    pub looked_at: RefCell<BTreeMap<PinKey, Digest>>,
    /// What waits to be confirmed on the desktop.
    pub confirmations: RefCell<Confirmations>,
    /// Whether servers that appear are protected without a question.
    pub protect_new: Cell<bool>,
    /// How far configurations are watched; `None` while they are not.
    pub watching: RefCell<Option<Watching>>,
    /// Logins that are being renewed.
    pub logins: Logins,
    /// What opens the file of secrets, where they are kept in one.
    pub keys: Keys,
    /// The desk's next deadline may have changed.
    pub wake: Notify,
    /// The engine is to end.
    pub end: Notify,
    /// It ends, and this is meant.
    pub ending: watch::Sender<bool>,
    /// Addresses at which clients reach servers.
    pub endpoints: Endpoints,
    /// Counts changes of what [`firedoor_ipc::command::Request::Attend`] shows.
    pub changes: watch::Sender<u64>,
    pub since: Millis,
    problems: RefCell<Vec<String>>,
    last_id: Cell<u64>,
}

/// What an engine starts with.
pub struct Parts {
    pub paths: Paths,
    pub config: Config,
    pub profiles: Arc<Profiles>,
    pub recorder: Rc<Recorder>,
    pub egress: Rc<Egress>,
    pub seed: [u8; 32],
    pub rules: Vec<Rule>,
    pub mode: Mode,
    pub managed: Managed,
    pub log_days: Option<u32>,
    pub protect_new: Option<bool>,
    /// Entries that are not offered, and the hash of their command line.
    pub declined: BTreeMap<EntryId, (Digest, Millis)>,
    pub endpoints: Vec<Endpoint>,
    pub problems: Vec<String>,
}

impl Engine {
    pub fn new(parts: Parts) -> Rc<Self> {
        Rc::new(Self {
            authority: Authority::new(&parts.paths),
            log_days: Cell::new(parts.log_days.unwrap_or(parts.config.limits.log_days)),
            protect_new: Cell::new(parts.protect_new.unwrap_or(parts.config.watch.protect)),
            classifier: parts.config.classifier.clone().map(Classifier::new),
            paths: parts.paths,
            config: parts.config,
            profiles: parts.profiles,
            inspector: Arc::new(Inspector::new()),
            recorder: parts.recorder,
            egress: parts.egress,
            desk: RefCell::new(Desk::new(parts.seed)),
            rules: RefCell::new(parts.managed.rules.iter().cloned().chain(parts.rules).collect()),
            removed: RefCell::default(),
            uses: RefCell::default(),
            mode: Cell::new(parts.managed.at_least(parts.mode)),
            pause: Cell::default(),
            managed: parts.managed,
            retain: Notify::new(),
            sessions: RefCell::default(),
            agents: RefCell::default(),
            starts: RefCell::default(),
            held: RefCell::default(),
            offers: RefCell::new(Offers::new(parts.declined)),
            withheld: RefCell::default(),
            looked_at: RefCell::default(),
            confirmations: RefCell::default(),
            watching: RefCell::default(),
            logins: Logins::default(),
            keys: Keys::default(),
            wake: Notify::new(),
            end: Notify::new(),
            ending: watch::Sender::new(false),
            endpoints: Endpoints::new(parts.endpoints),
            changes: watch::Sender::new(0),
            since: now(),
            problems: RefCell::new(parts.problems),
            last_id: Cell::new(0),
        })
    }

    /// Now.
    pub fn now(&self) -> Millis {
        now()
    }

    /// Tells watchers that questions, sessions, mode or problems have changed.
    pub fn changed(&self) {
        self.changes.send_modify(|count| *count += 1);
    }

    /// What keeps the user's secrets. It is used on other threads: the keychain may be asking its user for a password.
    pub fn secrets(&self) -> Secrets {
        Secrets::new(&self.paths, KEYCHAIN, self.keys.clone())
    }

    /// A number that is not used again in this run.
    pub fn next_id(&self) -> u64 {
        self.last_id.set(self.last_id.get() + 1);
        self.last_id.get()
    }

    /// A reference for a decision that is no question.
    pub fn reference(&self) -> Ref {
        self.desk.borrow_mut().reference()
    }

    /// Writes a row before going on. A refusal takes effect also when it cannot be written: the row is kept and the
    /// failure shown.
    pub async fn commit(&self, event: Event) {
        if let Err(e) = self.recorder.commit(event).await {
            self.problem(e.to_string());
        }
    }

    /// Shows that something does not work as it should.
    pub fn problem(&self, text: String) {
        let mut problems = self.problems.borrow_mut();
        if !problems.contains(&text) && problems.len() < MAX_PROBLEMS {
            problems.push(text);
            self.changed();
        }
    }

    /// What does not work as it should.
    pub fn problems(&self) -> Vec<String> {
        let mut all = self.problems.borrow().clone();
        all.extend(self.recorder.problem());
        all.extend(self.endpoints.problems());
        all.extend(self.classifier.as_ref().and_then(Classifier::problem));
        all.extend(self.watching.borrow().as_ref().and_then(watching::problem));
        all
    }

    /// Keeps how a server was started, for showing it also when it has ended.
    pub fn remember_start(&self, session: &Session) {
        let mut starts = self.starts.borrow_mut();
        if starts.len() < MAX_STARTS || starts.contains_key(&session.entry) {
            starts.insert(session.entry.clone(), session.start());
        }
    }

    /// The agent that a client process is, known or new.
    pub fn agent(&self, client: &Client) -> Rc<Agent> {
        let mut agents = self.agents.borrow_mut();
        let new = || Agent::new(SessionId(self.next_id()), client);
        agents.entry(client.process).or_insert_with(new).clone()
    }

    /// A session of this agent has ended. While the client lives its agent remembers: it may start the server again.
    pub fn release_agent(&self, agent: &Rc<Agent>) {
        let others = self.sessions.borrow().values().any(|s| Rc::ptr_eq(&s.agent, agent));
        if !others && !agent.lives() {
            self.agents.borrow_mut().remove(&agent.process);
            let events = self.desk.borrow_mut().session_ended(agent.id);
            self.act(events);
        }
    }

    /// Tells all shims that this end is meant. From then on they answer the clients: so nothing is read here any more, what
    /// waits for the user is refused, and what is said already is written first.
    pub async fn say_off(&self) {
        self.ending.send_replace(true);
        let sessions: Vec<_> = self.sessions.borrow().values().cloned().collect();
        for session in &sessions {
            session.stop_reading();
        }
        let held = self.desk.borrow().held();
        for (reference, held) in held {
            self.refuse_held(&held, &Refusal::Off, &reference);
        }
        self.endpoints.told_off().await;
        let mut telling = tokio::task::JoinSet::new();
        for session in sessions {
            telling.spawn_local(async move {
                // A client that does not read, and a shim that does not take it, hold nobody up: the connection closes.
                let _ = tokio::time::timeout(Duration::from_millis(200), session.said()).await;
                let _ = tokio::time::timeout(Duration::from_millis(200), session.shim.send(&ToShim::Off)).await;
            });
        }
        while telling.join_next().await.is_some() {}
    }

    /// An audit event about the engine itself.
    pub fn event(&self, what: What) -> Event {
        Event { at: now(), entry: None, session: None, client: None, what }
    }
}

/// What stands for the findings of an inspection that was lost: it refuses.
pub fn lost() -> Finding {
    Finding {
        detector: "engine/failed".into(),
        severity: Severity::Critical,
        confidence: Confidence::Certain,
        summary: "The message could not be inspected.".into(),
        evidence: Vec::new(),
    }
}

/// The system's clock.
pub fn now() -> Millis {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Millis(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use firedoor_model::Verdict;

    use super::*;

    #[test]
    fn a_lost_inspection_refuses() {
        assert_eq!(firedoor_policy::verdict_for_record(&[lost()]), Verdict::Block);
    }
}
