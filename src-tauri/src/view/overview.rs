//! Home: the engine's state, running servers, and what is configured.

use firedoor_clients::{ClientFound, Clients, EntryFound, FileFound, Scan, State};
use firedoor_ipc::command::{Session, Status};
use firedoor_model::question::Question;
use serde::Serialize;

use super::{FindingView, RowView, app_name, name, sentence, shown_entry};
use crate::known::{Engine, Heard};

/// The state in one piece.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct OverviewView {
    /// The engine.
    pub engine: EngineView,
    /// Questions that can be answered.
    pub questions: Vec<SummaryView>,
    /// The last call that was refused.
    pub last_block: Option<RowView>,
}

/// The engine.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum EngineView {
    Starting,
    Up {
        version: String,
        pid: u32,
        /// Whether it runs inside this app.
        own: bool,
        mode: String,
        sessions: Vec<SessionView>,
        problems: Vec<String>,
    },
    Down {
        reason: String,
    },
}

/// One running server.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct SessionView {
    pub entry: String,
    pub app: String,
    pub server: String,
    pub client: String,
    pub level: String,
    pub profile: String,
    pub pid: u32,
    #[cfg_attr(test, ts(type = "number"))]
    pub since: u64,
    #[cfg_attr(test, ts(type = "number"))]
    pub calls: u64,
}

/// One question in short.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct SummaryView {
    pub reference: String,
    pub app: String,
    pub server: String,
    pub tool: String,
    pub findings: Vec<FindingView>,
    #[cfg_attr(test, ts(type = "number"))]
    pub held_until: u64,
    #[cfg_attr(test, ts(type = "number"))]
    pub open_until: u64,
}

impl SummaryView {
    /// For showing.
    pub fn new(question: &Question, clients: &Clients) -> Self {
        Self {
            reference: name(&question.id.0),
            app: app_name(clients, &question.entry),
            server: name(question.entry.server()),
            tool: name(question.tool.raw()),
            findings: question.findings.iter().map(|f| FindingView::new(f, clients)).collect(),
            held_until: question.held_until.0,
            open_until: question.open_until.0,
        }
    }
}

impl OverviewView {
    /// For showing.
    pub fn new(heard: &Heard, last_block: Option<RowView>, clients: &Clients) -> Self {
        Self {
            engine: EngineView::new(&heard.engine, clients),
            questions: heard.questions.iter().map(|q| SummaryView::new(q, clients)).collect(),
            last_block,
        }
    }
}

impl EngineView {
    fn new(engine: &Engine, clients: &Clients) -> Self {
        match engine {
            Engine::Starting => Self::Starting,
            Engine::Down(reason) => Self::Down { reason: sentence(reason) },
            Engine::Up(Status { version, pid, mode, sessions, problems, .. }) => Self::Up {
                version: name(version),
                pid: *pid,
                own: *pid == std::process::id(),
                mode: mode.to_string(),
                sessions: sessions.iter().map(|s| SessionView::new(s, clients)).collect(),
                problems: problems.iter().map(|p| sentence(p)).collect(),
            },
        }
    }
}

impl SessionView {
    fn new(session: &Session, clients: &Clients) -> Self {
        Self {
            entry: shown_entry(&session.entry),
            app: app_name(clients, &session.entry),
            server: name(session.entry.server()),
            client: name(session.client.raw()),
            level: sentence(&session.level),
            profile: name(&session.profile),
            pid: session.pid,
            since: session.since.0,
            calls: session.calls,
        }
    }
}

/// One client and its files.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct FoundClientView {
    pub id: String,
    pub name: String,
    pub files: Vec<FoundFileView>,
}

/// One file.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct FoundFileView {
    pub path: String,
    pub scope: String,
    pub entries: Vec<FoundEntryView>,
    pub warnings: Vec<String>,
    pub problem: Option<String>,
}

/// One server.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct FoundEntryView {
    pub entry: String,
    pub server: String,
    pub scope: String,
    pub command: Option<String>,
    pub state: StateView,
    /// Why it is in this state, where that needs words.
    pub reason: Option<String>,
    pub can_protect: bool,
    pub can_restore: bool,
    pub warnings: Vec<String>,
}

/// How an entry stands.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "snake_case")]
pub enum StateView {
    Unprotected,
    Protected,
    Misrouted,
    NotYet,
    WrappedByOther,
}

impl FoundClientView {
    /// For showing.
    pub fn all(scan: &Scan) -> Vec<Self> {
        scan.clients.iter().map(Self::new).collect()
    }

    fn new(client: &ClientFound) -> Self {
        let files = client.files.iter().map(FoundFileView::new).collect();
        Self { id: name(&client.id), name: name(&client.name), files }
    }
}

impl FoundFileView {
    fn new(file: &FileFound) -> Self {
        let left = file.unsupported.as_ref().map(|left| format!("left alone: {}. {}", left.reason, left.step));
        Self {
            path: sentence(&file.path.to_string_lossy()),
            scope: sentence(&file.scope),
            entries: file.entries.iter().map(FoundEntryView::new).collect(),
            warnings: file.warnings.iter().chain(&left).map(|w| sentence(w)).collect(),
            problem: file.problem.as_ref().map(|p| sentence(&p.message)),
        }
    }
}

impl FoundEntryView {
    fn new(entry: &EntryFound) -> Self {
        let (state, reason) = match &entry.state {
            State::Unprotected => (StateView::Unprotected, None),
            State::Protected => (StateView::Protected, None),
            State::Misrouted { reason } => (StateView::Misrouted, Some(sentence(reason))),
            State::NotYet { reason } => (StateView::NotYet, Some(sentence(reason))),
            State::WrappedByOther { by } => (StateView::WrappedByOther, Some(sentence(by))),
        };
        let line = |command: &firedoor_model::Untrusted| {
            let words = std::iter::once(command).chain(&entry.args).map(|w| w.visible(200));
            sentence(&words.collect::<Vec<_>>().join(" "))
        };
        Self {
            entry: shown_entry(&entry.id),
            server: name(entry.id.server()),
            scope: sentence(entry.id.scope()),
            command: entry.command.as_ref().map(line),
            state,
            reason,
            can_protect: entry.state.can_protect(),
            can_restore: entry.state.can_restore(),
            warnings: entry.warnings.iter().map(|w| sentence(w)).collect(),
        }
    }
}
