//! One server and its client: the streams between them, and what is known about them.
//!
//! Architecture invariant: a message that is not changed goes on as the bytes that came.

mod address;
mod attempts;
pub mod connections;
pub mod definitions;
mod denied;
mod downstream;
mod edit;
mod habits;
mod harmless;
pub mod held;
mod inspected;
pub mod ledger;
mod life;
mod logs;
mod malformed;
mod observed;
mod oversize;
mod owed;
mod pending;
mod refusals;
mod renewals;
mod rounds;
mod ruling;
mod streams;
mod tasks;
mod upstream;
mod writing;

pub use habits::known_habits;
pub use life::{Started, serve};
pub use pending::Asked;
pub use ruling::recordable;
pub use streams::Streams;

use std::{
    cell::{Cell, OnceCell, RefCell},
    collections::HashMap,
    rc::Rc,
    sync::Arc,
};

use firedoor_ipc::command::{EntryGrants, Start};
use firedoor_model::{Digest, EntryId, Habit, Millis, audit, launch::Launched, observation::Basis};

use crate::{agent::Agent, connection::Outgoing, io::Outlet};
use connections::HeldConnection;
use definitions::Tool;
use held::HeldLine;
use ledger::Ledger;
use owed::Owed;
use pending::Pending;
use refusals::Refusals;
use renewals::Renewals;
use tasks::Tasks;
use tokio::{sync::Notify, task::AbortHandle};

/// A message of at least this many bytes is inspected on another thread, so that other servers do not wait for it.
const LARGE: usize = 256 << 10;

/// One session.
pub struct Session {
    /// Its number within this run of the engine.
    pub id: u64,
    /// The server's entry.
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
    /// What the user had granted when it was started, if that is known.
    pub granted: Option<EntryGrants>,
    /// What it was seen to do, when it is observed.
    pub record: RefCell<Option<observed::Growing>>,
    /// What it said that it was refused.
    refusals: Refusals,
    /// How often its login was renewed.
    renewals: Renewals,
    /// The sandbox level really in force.
    pub level: String,
    /// The server's process.
    pub pid: u32,
    /// When it started.
    pub since: Millis,
    /// Tool calls so far.
    pub calls: Cell<u64>,
    /// Tools as the server described them.
    pub tools: RefCell<HashMap<String, Tool>>,
    /// What its tools were called with in earlier sessions.
    habits: HashMap<String, Arc<Habit>>,
    /// The shim.
    pub shim: Outgoing,
    to_server: Outlet,
    to_client: Outlet,
    ledger: Rc<Ledger>,
    /// Our own answers to the server that it has not read.
    owed: Owed,
    /// Requests that were answered in the server's place: its own answer, if it comes, is dropped.
    abandoned: RefCell<Pending>,
    pending: RefCell<Pending>,
    tasks: Tasks,
    /// Lines that wait for the user, by the desk's number.
    held: RefCell<Vec<Rc<HeldLine>>>,
    /// Connections that wait for the user.
    connections: RefCell<Vec<Rc<HeldConnection>>>,
    /// Fewer lines are held.
    unheld: Notify,
    /// What reads from either side.
    readers: OnceCell<[AbortHandle; 2]>,
    /// Whether the client opened with `initialize` (revisions up to 2025-11-25): such clients take notifications.
    legacy: Cell<bool>,
}

impl Session {
    /// Remembers requests that go to the server now.
    fn remember(&self, asked: Vec<(String, Asked)>) {
        let mut pending = self.pending.borrow_mut();
        for (id, asked) in asked {
            self.abandoned.borrow_mut().take(&id);
            pending.insert(&id, asked);
        }
    }

    /// Reads nothing any more, for good: somebody else will. What was read and not passed on is left to whoever takes the
    /// session over, as when this engine dies.
    pub fn stop_reading(&self) {
        self.readers.get().into_iter().flatten().for_each(AbortHandle::abort);
    }

    /// Waits until the client has what was said to it.
    pub async fn said(&self) {
        self.to_client.written().await;
    }

    /// An audit event about this session.
    pub fn event(&self, at: Millis, what: audit::What) -> audit::Event {
        audit::Event {
            at,
            entry: Some(self.entry.clone()),
            session: Some(self.id),
            client: Some(self.agent.client.clone()),
            what,
        }
    }

    /// Drops held lines that were settled.
    pub fn forget_settled(&self) {
        self.held.borrow_mut().retain(|held| !held.settled.get());
        self.unheld.notify_waiters();
    }

    /// How it was started, for showing.
    pub fn start(&self) -> Start {
        Start {
            at: self.since,
            level: self.level.clone(),
            profile: self.profile.clone(),
            launch: self.launch,
            launched: self.launched.clone(),
            basis: self.basis.clone(),
        }
    }

    /// The user accepted a tool's definition: it may be called, and the client may look again.
    pub fn accepted(&self, name: &str, digest: Digest) {
        if let Some(tool) = self.tools.borrow_mut().get_mut(name) {
            tool.quarantined = false;
            tool.digest = digest;
        }
        if self.legacy.get() {
            self.tell_client(b"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\"}\n");
        }
    }
}
