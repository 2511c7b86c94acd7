//! What the app knows, shared between its threads.

use std::{
    collections::BTreeMap,
    path::PathBuf,
    sync::{Mutex, MutexGuard, PoisonError},
};

use firedoor_clients::{Clients, Scan, State};
use firedoor_ipc::command::Status;
use firedoor_model::{EntryId, paths::Paths};

use crate::{
    activity::Activity, asking::Asking, changes::Planned, sign_in::SignIns, view::AskedView, waiting::Waiting,
};

/// What was last heard of the engine.
#[derive(Clone, Debug, Default)]
pub enum Engine {
    /// Nothing yet.
    #[default]
    Starting,
    /// It answers.
    Up(Status),
    /// It does not, and why.
    Down(String),
}

/// Engine and what waits, which are heard together.
#[derive(Clone, Debug, Default)]
pub struct Heard {
    /// The engine.
    pub engine: Engine,
    /// What waits for the user.
    pub waiting: Waiting,
}

/// How many servers are configured, and how many of them run through Firedoor.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// All.
    pub servers: usize,
    /// Protected ones.
    pub protected: usize,
    /// Each client that has any.
    pub apps: Vec<App>,
}

/// One client's servers, counted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct App {
    /// Its id.
    pub id: String,
    /// Its name for people.
    pub name: String,
    /// Its servers.
    pub servers: usize,
    /// Protected ones.
    pub protected: usize,
}

/// Everything.
pub struct Known {
    /// The user's directories.
    pub paths: Paths,
    /// The catalog of clients.
    pub clients: &'static Clients,
    /// What the entries of a protected client start.
    pub shim: PathBuf,
    /// What was last heard.
    pub heard: Mutex<Heard>,
    /// Which question is on screen.
    pub asking: Mutex<Asking>,
    /// The latest rows of the audit log.
    pub activity: Mutex<Activity>,
    /// What the last scan found.
    pub counts: Mutex<Counts>,
    /// The changes that the main window showed last, and that wait for a click.
    pub planned: Mutex<Option<Planned>>,
    /// Those that the question on screen is about.
    pub proposed: Mutex<Option<Planned>>,
    /// What was wrong with a server when it was checked, and no notification could say. Home does.
    pub untold: Mutex<BTreeMap<EntryId, String>>,
    /// Logins at remote servers.
    pub sign_ins: SignIns,
    /// The question on screen: making it anew with every piece of news would read files and pins each time.
    pub on_screen: Mutex<Option<AskedView>>,
}

impl Known {
    /// At the start.
    pub fn new(paths: Paths, clients: &'static Clients, shim: PathBuf) -> Self {
        Self {
            paths,
            clients,
            shim,
            heard: Mutex::default(),
            asking: Mutex::default(),
            activity: Mutex::default(),
            counts: Mutex::default(),
            planned: Mutex::default(),
            proposed: Mutex::default(),
            untold: Mutex::default(),
            sign_ins: SignIns::default(),
            on_screen: Mutex::default(),
        }
    }
}

impl Known {
    /// Looks at every configuration file.
    pub fn scan(&self) -> Scan {
        let scan = self.clients.scan(&self.env());
        let apps = scan.clients.iter().map(|client| {
            let entries = || client.files.iter().flat_map(|f| &f.entries);
            let protected = entries().filter(|e| e.state == State::Protected).count();
            App { id: client.id.clone(), name: client.name.clone(), servers: entries().count(), protected }
        });
        let apps: Vec<App> = apps.filter(|app| app.servers > 0).collect();
        let (servers, protected) = apps.iter().fold((0, 0), |(s, p), app| (s + app.servers, p + app.protected));
        *lock(&self.counts) = Counts { servers, protected, apps };
        scan
    }
}

/// Locks. What is behind these locks is replaced as a whole, so a thread that panicked left nothing half done.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
