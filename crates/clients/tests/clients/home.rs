//! A scratch home with the clients' files in it.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
    process::Command,
    sync::Arc,
};

use firedoor_clients::{Applied, Clients, EntryFound, Env, FileError, FileResult, Selection, State, System, select};
use firedoor_model::{EntryId, keychain::MemoryKeychain, paths::Paths};
use tempfile::TempDir;

pub struct Home {
    pub scratch: TempDir,
    pub clients: &'static Clients,
    pub vars: BTreeMap<String, String>,
    pub system: System,
    pub keychain: Option<Arc<MemoryKeychain>>,
}

impl Home {
    pub fn new() -> Self {
        let scratch = tempfile::tempdir().unwrap();
        let (clients, vars, system) = (Clients::load().unwrap(), BTreeMap::new(), System::Linux);
        let home = Self { scratch, clients, vars, system, keychain: None };
        for dir in ["home", "work", "bin"] {
            fs::create_dir(home.at(dir)).unwrap();
        }
        fs::write(home.shim(), "").unwrap();
        home
    }

    pub fn at(&self, path: &str) -> PathBuf {
        // The scratch directory itself may be behind a link (macOS: /tmp).
        self.scratch.path().canonicalize().unwrap().join(path)
    }

    pub fn write(&self, path: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.at(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, bytes).unwrap();
        path
    }

    pub fn shim(&self) -> PathBuf {
        self.at("bin/firedoor-shim")
    }

    pub fn env(&self) -> Env<'_> {
        let home = self.at("home");
        let look = move |name: &str| match name {
            "HOME" => Some(home.clone().into_os_string()),
            _ => self.vars.get(name).map(Into::into),
        };
        let env = Env::new(Paths::from_env(&look).unwrap(), self.at("work"), look)
            .with_shim(&self.shim())
            .with_system(self.system);
        match &self.keychain {
            Some(keychain) => env.with_keychain(keychain.clone()),
            None => env,
        }
    }

    pub fn entries(&self) -> Vec<EntryFound> {
        let scan = self.clients.scan(&self.env());
        scan.clients.into_iter().flat_map(|c| c.files).flat_map(|f| f.entries).collect()
    }

    pub fn states(&self) -> BTreeMap<String, String> {
        let shown = |s: &State| match s {
            State::Unprotected => "unprotected".to_owned(),
            State::Protected => "protected".to_owned(),
            State::Misrouted { reason } => format!("misrouted: {reason}"),
            State::NotYet { reason } => reason.clone(),
            State::WrappedByOther { by } => format!("wrapped by {by}"),
        };
        self.entries().iter().map(|e| (e.id.server().to_owned(), shown(&e.state))).collect()
    }

    pub fn problem(&self) -> String {
        let scan = self.clients.scan(&self.env());
        let all: Vec<_> = scan.clients.iter().flat_map(|c| &c.files).filter_map(|f| f.problem.as_ref()).collect();
        all.first().map(|p| p.message.replace(self.at("").to_str().unwrap(), "/")).unwrap_or_default()
    }

    pub fn choose(&self, selections: &[&str]) -> BTreeSet<EntryId> {
        let all: Vec<Selection> = match selections {
            [] => vec![Selection::All],
            some => some.iter().map(|s| s.parse().unwrap()).collect(),
        };
        select(self.clients, &self.clients.scan(&self.env()), &all).unwrap()
    }

    pub fn protect(&self, selections: &[&str]) -> Vec<FileResult> {
        let chosen = self.choose(selections);
        let plan = self.clients.plan_protect(&self.env(), &chosen, &self.shim()).unwrap();
        self.clients.apply(&self.env(), &plan)
    }

    /// The same, with an address of Firedoor's.
    pub fn protect_at(&self, selections: &[&str], address: &str) -> Vec<FileResult> {
        let chosen = self.choose(selections);
        let addresses = chosen.iter().map(|id| (id.clone(), address.to_owned())).collect();
        let plan = self.clients.plan_protect_at(&self.env(), &chosen, &self.shim(), addresses).unwrap();
        self.clients.apply(&self.env(), &plan)
    }

    pub fn restore(&self, selections: &[&str]) -> Vec<FileResult> {
        let plan = self.clients.plan_restore(&self.env(), &self.choose(selections));
        self.clients.apply(&self.env(), &plan)
    }

    /// The script that gives files back without Firedoor, and asks.
    pub fn asking_script(&self) -> Command {
        let mut script = Command::new("sh");
        script.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/../../installers/restore.sh"));
        script.env_remove("XDG_STATE_HOME").env("HOME", self.at("home"));
        script
    }

    /// The same, without asking.
    pub fn script(&self) -> Command {
        let mut script = self.asking_script();
        script.arg("--yes");
        script
    }

    pub fn forget(&self) {
        fs::remove_dir_all(self.at("home/.local/state/firedoor")).unwrap();
    }
}

pub fn one(results: Vec<FileResult>) -> Result<Applied, FileError> {
    let mut results = results;
    assert_eq!(results.len(), 1, "{results:?}");
    results.remove(0).result
}

pub fn read(path: &Path) -> String {
    String::from_utf8(fs::read(path).unwrap()).unwrap()
}
