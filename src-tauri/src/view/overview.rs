//! Home: the engine's state, running servers, and what is configured.

use firedoor_clients::{ClientFound, Clients, EntryFound, FileFound, Finding, Scan, State};
use firedoor_ipc::command::{Offer, Session, Status, Withheld};
use firedoor_model::{EntryId, notice::Noticed, question::Question};
use serde::Serialize;

use super::{FindingView, RowView, app_name, finding::SeverityView, name, sentence, server, shown_entry};
use crate::known::{Engine, Heard};

/// The state in one piece.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct OverviewView {
    /// The engine.
    pub engine: EngineView,
    /// Whether this desktop shows tray icons.
    pub tray: bool,
    /// Questions that can be answered.
    pub questions: Vec<SummaryView>,
    /// Definitions that are kept from agents until the user has decided.
    pub withheld: Vec<WithheldView>,
    /// Servers that have appeared, changed or lost Firedoor, and that could be protected.
    pub offers: Vec<OfferView>,
    /// The last call that was refused.
    pub last_block: Option<RowView>,
    /// What this system does not do yet, one sentence each.
    pub missing: Vec<String>,
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
        /// Until when nothing is asked, when there is a pause.
        #[cfg_attr(test, ts(type = "number | null"))]
        paused_until: Option<u64>,
        /// Servers about which nothing is asked any more, because nobody answered.
        quieted: Vec<String>,
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

/// One server that could be protected.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct OfferView {
    pub entry: String,
    pub app: String,
    pub server: String,
    /// Whether it was protected, and its client has put it back.
    pub dropped: bool,
    /// Whether it is new, and not only another one than before.
    pub new: bool,
    pub path: String,
    pub command: String,
}

/// One definition that is kept from agents.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct WithheldView {
    pub entry: String,
    pub app: String,
    pub server: String,
    /// `tool`, `prompt` …
    pub kind: String,
    pub name: String,
}

impl WithheldView {
    fn new(withheld: &Withheld, clients: &Clients) -> Self {
        Self {
            entry: shown_entry(&withheld.entry),
            app: app_name(clients, &withheld.entry),
            server: name(withheld.entry.server()),
            kind: name(&withheld.kind),
            name: name(withheld.name.raw()),
        }
    }
}

impl OfferView {
    fn new(offer: &Offer) -> Self {
        Self {
            entry: shown_entry(&offer.entry),
            app: name(&offer.client),
            server: name(offer.entry.server()),
            dropped: offer.noticed == Noticed::Dropped,
            new: offer.noticed == Noticed::Appeared,
            path: sentence(offer.path.raw()),
            command: sentence(offer.command.raw()),
        }
    }
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
    /// For showing, with the questions that could not be shown.
    pub fn new(heard: &Heard, unseen: &[String], tray: bool, last_block: Option<RowView>, clients: &Clients) -> Self {
        let mut engine = EngineView::new(&heard.engine, clients);
        if let EngineView::Up { problems, .. } = &mut engine {
            problems.extend(unseen.iter().map(|why| sentence(why)));
        }
        Self {
            engine,
            tray,
            questions: heard.waiting.questions.iter().map(|q| SummaryView::new(q, clients)).collect(),
            withheld: heard.waiting.withheld.iter().map(|w| WithheldView::new(w, clients)).collect(),
            offers: match &heard.engine {
                Engine::Up(status) => status.offers.iter().map(OfferView::new).collect(),
                Engine::Starting | Engine::Down(_) => Vec::new(),
            },
            last_block,
            missing: Vec::new(),
        }
    }
}

impl EngineView {
    fn new(engine: &Engine, clients: &Clients) -> Self {
        match engine {
            Engine::Starting => Self::Starting,
            Engine::Down(reason) => Self::Down { reason: sentence(reason) },
            Engine::Up(Status { version, pid, mode, paused_until, quieted, sessions, problems, .. }) => Self::Up {
                version: name(version),
                pid: *pid,
                own: *pid == std::process::id(),
                mode: mode.to_string(),
                paused_until: paused_until.map(|at| at.0),
                quieted: quieted.iter().map(|e| server(clients, e)).collect(),
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
    /// What there is to know about it, the worst first.
    pub findings: Vec<ScanFindingView>,
    /// The names of its secrets in the keychain.
    pub secrets: Vec<String>,
}

/// One thing to know about a server, from its configuration.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct ScanFindingView {
    /// Such as `W001`; `docs/scan-codes.md` explains it.
    pub code: String,
    pub severity: SeverityView,
    pub message: String,
    pub remedy: String,
}

/// Most findings shown of one server; `firedoor scan` lists all.
const MOST_FINDINGS: usize = 20;

impl ScanFindingView {
    fn of(id: &EntryId, all: &[Finding]) -> Vec<Self> {
        let mut own: Vec<&Finding> = all.iter().filter(|f| f.entry.as_ref() == Some(id)).collect();
        own.sort_by_key(|f| std::cmp::Reverse(f.severity));
        let view = |f: &&Finding| Self {
            code: f.code.number().to_owned(),
            severity: f.severity.into(),
            message: sentence(&f.message),
            remedy: sentence(f.remedy),
        };
        own.iter().take(MOST_FINDINGS).map(view).collect()
    }
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
        scan.clients.iter().map(|client| Self::new(client, &scan.findings)).collect()
    }

    fn new(client: &ClientFound, findings: &[Finding]) -> Self {
        let files = client.files.iter().map(|file| FoundFileView::new(file, findings)).collect();
        Self { id: name(&client.id), name: name(&client.name), files }
    }
}

impl FoundFileView {
    fn new(file: &FileFound, findings: &[Finding]) -> Self {
        let left = file.unsupported.as_ref().map(|left| format!("left alone: {}. {}", left.reason, left.step));
        Self {
            path: sentence(&file.path.to_string_lossy()),
            scope: sentence(&file.scope),
            entries: file.entries.iter().map(|entry| FoundEntryView::new(entry, findings)).collect(),
            warnings: file.warnings.iter().chain(&left).map(|w| sentence(w)).collect(),
            problem: file.problem.as_ref().map(|p| sentence(&p.message)),
        }
    }
}

impl FoundEntryView {
    fn new(entry: &EntryFound, findings: &[Finding]) -> Self {
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
            findings: ScanFindingView::of(&entry.id, findings),
            secrets: entry.secrets.iter().map(|secret| name(secret.name())).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use firedoor_clients::Env;
    use firedoor_model::paths::Paths;

    use super::*;

    #[test]
    fn a_server_comes_with_what_there_is_to_know_about_it_the_worst_first() {
        let home = tempfile::tempdir().unwrap();
        std::fs::create_dir(home.path().join(".cursor")).unwrap();
        let text = r#"{"mcpServers":{"a":{"command":"sudo","args":["npx","-y","x"]},"b":{"command":"/bin/true"}}}"#;
        std::fs::write(home.path().join(".cursor/mcp.json"), text).unwrap();
        let paths = Paths::from_env(|name| (name == "HOME").then(|| home.path().into())).unwrap();
        let scan = Clients::load().unwrap().scan(&Env::new(paths, home.path(), |_| None));
        let found = FoundClientView::all(&scan);
        let entries = &found[0].files[0].entries;
        let of = |at: usize| entries[at].findings.as_slice();
        assert!(of(0).len() > 1 && of(0).iter().all(|f| f.code.starts_with('W') && !f.remedy.is_empty()));
        let worst = scan.findings.iter().map(|f| f.severity).max().unwrap();
        assert_eq!(of(0)[0].severity, worst.into());
    }

    #[test]
    fn an_offer_hides_nothing() {
        let offer = Offer {
            entry: "cursor/user/f\u{202e}s".parse().unwrap(),
            client: "Cursor".into(),
            path: "/h/\u{200b}x".into(),
            project: None,
            noticed: Noticed::Dropped,
            command: "n\u{202e}px".into(),
            since: firedoor_model::Millis(0),
            under_way: false,
        };
        let view = OfferView::new(&offer);
        assert_eq!((view.server.as_str(), view.path.as_str()), ("f⟨U+202E⟩s", "/h/⟨U+200B⟩x"));
        assert!(view.dropped && !view.new && view.command == "n⟨U+202E⟩px");
    }
}
