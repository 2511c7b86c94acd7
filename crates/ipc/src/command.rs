//! Commands to the engine, from the command line and from the desktop.

mod waiting;

use std::path::PathBuf;

use firedoor_model::{
    EntryId, Finding, Millis, Mode, Untrusted, audit,
    broker::Route,
    endpoint::{Endpoint, Target},
    keychain::FileKey,
    launch::{Grant, Launched},
    network::HostGrant,
    notice::Noticed,
    observation::{Basis, Record},
    question::{Choice, Duration, Question, Ref, Scope},
    rule::{Draft, Match, Origin, Rule, Use},
};
use serde::{Deserialize, Serialize};

pub use waiting::{Confirmation, Withheld};

/// Longest pause, in minutes. Whoever wants to be asked about nothing for longer says so with mode Watch.
pub const MAX_PAUSE: u32 = 60;

/// One command. Each is answered by one [`Reply`], except [`Request::Log`], [`Request::Attend`] and
/// [`Request::ServeEndpoints`], which stream. Before the answer to one that weakens protection there may be a
/// [`Reply::Waits`].
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "command", rename_all = "snake_case")]
pub enum Request {
    /// What the engine is doing. Answered by [`Reply::Status`].
    Status,
    /// Open questions, which count as shown from now on. Answered by [`Reply::Questions`].
    Pending,
    /// The sender is a desktop, which shows a person what waits. Answered by [`Reply::Questions`], [`Reply::Confirmations`] and
    /// [`Reply::Status`], now and after every change, until the connection closes. Meanwhile commands of other processes that
    /// weaken protection wait for [`Request::Confirm`]. That is one desktop at a time, and none that may not weaken protection
    /// itself: others hear of no confirmations. Does not count as showing the questions.
    Attend,
    /// The person at the desktop says whether a command that weakens protection is carried out. Only the process that attends
    /// may say so.
    Confirm {
        /// Which, of [`Confirmation::id`].
        id: u64,
        /// Yes or no.
        allow: bool,
    },
    /// Answer one question.
    Answer {
        /// Which.
        id: Ref,
        /// What.
        choice: Choice,
        /// For how long.
        duration: Duration,
        /// For which calls, when it is an allow for longer than once.
        #[serde(default)]
        scope: Scope,
        /// The same answer to these, which were shown together with it.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        also: Vec<Ref>,
    },
    /// The user was shown these questions.
    Shown {
        /// Which.
        ids: Vec<Ref>,
    },
    /// The user was shown these questions in one prompt and put it off. After three prompts of one server nothing is asked
    /// about it any more in this session, and what would be asked is refused.
    Later {
        /// Which.
        ids: Vec<Ref>,
    },
    /// The audit log. Answered by [`Reply::Event`]s and, without `follow`, [`Reply::Done`].
    Log(LogQuery),
    /// Check the audit chain. Answered by [`Reply::Verified`].
    VerifyLog,
    /// All rules. Answered by [`Reply::Rules`].
    Rules,
    /// Add rules. An allow rule weakens protection.
    AddRules {
        /// Which, at least one.
        rules: Vec<WantedRule>,
    },
    /// Remove a rule. Removing a block rule weakens protection.
    RemoveRule {
        /// Its number.
        id: i64,
    },
    /// Put a rule back that was removed in this run of the engine.
    RestoreRule {
        /// The number that it had.
        id: i64,
    },
    /// Add a rule about what a row of the log tells: its tool, and what was found. An allow rule says that this was
    /// found by mistake, and weakens protection.
    RuleFromRow {
        /// The row's number.
        seq: u64,
        /// Allow or block.
        effect: Choice,
    },
    /// Rules that would have answered earlier questions as the user did. Answered by [`Reply::Suggestions`].
    Suggestions,
    /// Add a rule that was suggested.
    AcceptSuggestion {
        /// Which.
        id: firedoor_model::Digest,
    },
    /// Rows of the log, newest first, a bounded piece at a time. Answered by [`Reply::Page`].
    Page(PageQuery),
    /// Tool calls by server and time. Answered by [`Reply::Counts`].
    Counts {
        /// From this time on.
        since: Millis,
        /// Length of one span of time, in milliseconds.
        step: u64,
    },
    /// Settings, with a new one or not. Answered by [`Reply::Settings`].
    Settings {
        /// For how many days the log is kept. Fewer weakens protection.
        log_days: Option<u32>,
        /// Whether servers that appear are protected without a question. Switching it off weakens protection.
        #[serde(default)]
        protect_new: Option<bool>,
    },
    /// Pinned definitions. Answered by [`Reply::Pins`].
    Pins {
        /// Of this entry only.
        entry: Option<EntryId>,
    },
    /// Accept changed definitions.
    AcceptPins {
        /// Of this entry.
        entry: EntryId,
        /// Only this tool.
        tool: Option<Untrusted>,
        /// Only if its definition is still this one, which the user has seen.
        #[serde(default)]
        seen: Option<firedoor_model::Digest>,
    },
    /// The user has seen what changed of a definition, and it stays kept from agents: it is not asked about again.
    KeepWithheld {
        /// Of this entry.
        entry: EntryId,
        /// The definition with this hash ([`Withheld::seen`]).
        seen: firedoor_model::Digest,
    },
    /// What the user granted to entries. Answered by [`Reply::Grants`].
    Grants {
        /// Of this entry only.
        entry: Option<EntryId>,
    },
    /// Grant an entry more.
    AddGrants {
        /// Which entry.
        entry: EntryId,
        /// Paths.
        grants: Vec<Grant>,
        /// Environment names.
        env: Vec<String>,
        /// Hosts.
        #[serde(default)]
        hosts: Vec<HostGrant>,
        /// Paths of Unix sockets.
        #[serde(default)]
        sockets: Vec<PathBuf>,
    },
    /// Take grants away.
    RemoveGrants {
        /// Which entry.
        entry: EntryId,
        /// Paths, whatever their access.
        paths: Vec<PathBuf>,
        /// Environment names.
        env: Vec<String>,
        /// Hosts.
        #[serde(default)]
        hosts: Vec<HostGrant>,
        /// Paths of Unix sockets.
        #[serde(default)]
        sockets: Vec<PathBuf>,
    },
    /// Whether an entry's next start is to be observed. Weakens nothing: its sandbox holds as always.
    Observe {
        /// Which entry.
        entry: EntryId,
        /// On or off.
        on: bool,
    },
    /// What was seen of an entry's last observed run, or of the one that goes on. Answered by [`Reply::Observation`].
    Observation {
        /// Which entry.
        entry: EntryId,
    },
    /// How an entry's server was last started in this run of the engine. Answered by [`Reply::Server`].
    Server {
        /// Which entry.
        entry: EntryId,
    },
    /// End a running server with everything that it started. Its client may start it again.
    Stop {
        /// The entry, whose servers all end.
        entry: EntryId,
    },
    /// Addresses at which clients that start no programs reach a server. Answered by [`Reply::Endpoints`].
    Endpoints,
    /// Makes such an address, or puts another server behind the one that the entry has. Answered by
    /// [`Reply::Endpoints`] with this one, once it listens or cannot. Weakens protection: it decides what gets the entry's
    /// secrets.
    AddEndpoint {
        /// Whose server.
        entry: EntryId,
        /// The server.
        target: Target,
    },
    /// Removes such an address.
    RemoveEndpoint {
        /// Whose.
        entry: EntryId,
    },
    /// From the program that listens there: what to serve, now and after every change. Answered by [`Reply::Serve`] until
    /// the engine ends, which [`Reply::Done`] says when it is meant to.
    ServeEndpoints,
    /// From the program that listens there: what became of one.
    EndpointState {
        /// Which.
        entry: EntryId,
        /// Where it listens, or was to listen.
        port: u16,
        /// Why it does not listen.
        problem: Option<String>,
    },
    /// Secrets in broker mode. Answered by [`Reply::Routes`].
    Routes,
    /// Puts a secret of an entry into broker mode, from its server's next start. Weakens protection: it decides which host gets
    /// the secret.
    AddRoute {
        /// Whose secret.
        entry: EntryId,
        /// Which, and where it goes.
        route: Route,
    },
    /// Takes a secret out of broker mode. Weakens protection: the server gets it.
    RemoveRoute {
        /// Whose secret.
        entry: EntryId,
        /// Its name.
        secret: String,
    },
    /// Whether the engine can open the file that secrets are kept in; with a key it can from now on, until it ends. Weakens
    /// nothing: whoever has the key can open the file. The engine never gives it to anybody. Answered by [`Reply::Opens`].
    Unlock {
        /// What opens it.
        key: Option<FileKey>,
    },
    /// Forget what opens that file. Answered by [`Reply::Opens`].
    Lock,
    /// The mode, or a new one. Answered by [`Reply::Mode`].
    Mode {
        /// The new mode. `watch` weakens protection.
        set: Option<Mode>,
    },
    /// Ask nothing for a while: what would be asked about is let through and recorded. Weakens protection.
    Pause {
        /// For how long, 1 to [`MAX_PAUSE`].
        minutes: u32,
    },
    /// Ask again.
    Resume,
    /// Do not offer to protect this server any more, until it changes. Weakens protection: nobody else would notice.
    Ignore {
        /// Which entry.
        entry: EntryId,
    },
    /// Switch Firedoor off: the engine ends, and shims answer their clients that it is off until it is started again.
    Quit,
    /// May the sender do what weakens protection outside the engine (restore files)? Answered by [`Reply::Done`] or
    /// [`Reply::Refused`].
    Authorize {
        /// What, in words, for the audit.
        action: String,
    },
}

/// Which audit rows.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct LogQuery {
    /// Only rows of entries whose server name or id is this.
    pub server: Option<String>,
    /// Only rows at or after this time.
    pub since: Option<Millis>,
    /// Go on with new rows as they are written.
    pub follow: bool,
}

/// Which piece of the log.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct PageQuery {
    /// Which rows.
    pub filter: audit::Filter,
    /// Below this number; the newest when absent.
    pub before: Option<u64>,
    /// Above this number.
    pub after: u64,
    /// At most so many.
    pub limit: u32,
}

/// An answer.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "reply", rename_all = "snake_case")]
pub enum Reply {
    /// It is done.
    Done {
        /// What was done, for people.
        text: String,
    },
    /// It could not be done.
    Failed {
        /// Why, and the remedy.
        text: String,
    },
    /// It may not be done by this process.
    Refused {
        /// Why, and who may.
        text: String,
    },
    /// See [`Request::Status`].
    Status(Status),
    /// See [`Request::Pending`].
    Questions {
        /// Oldest first.
        questions: Vec<Question>,
    },
    /// See [`Request::Attend`].
    Confirmations {
        /// Oldest first.
        confirmations: Vec<Confirmation>,
    },
    /// The answer comes when a person has confirmed the command on the desktop, or has not.
    Waits {
        /// Where and how long, for people.
        text: String,
    },
    /// See [`Request::Log`].
    Event(Row),
    /// See [`Request::VerifyLog`].
    Verified {
        /// Rows read.
        rows: u64,
        /// The first bad row and what is wrong with it.
        bad: Option<(u64, String)>,
    },
    /// See [`Request::Rules`].
    Rules {
        /// In order of creation, managed ones first.
        rules: Vec<Rule>,
        /// How often each was used, by number.
        #[serde(default)]
        uses: Vec<(i64, Use)>,
    },
    /// See [`Request::Suggestions`].
    Suggestions {
        /// The most useful first.
        suggestions: Vec<Suggestion>,
        /// Questions that were answered in the time looked at.
        questions: u32,
    },
    /// See [`Request::Page`].
    Page {
        /// Newest first.
        rows: Vec<Row>,
        /// Where the next piece begins; absent at the log's beginning.
        next: Option<u64>,
    },
    /// See [`Request::Counts`].
    Counts {
        /// By time.
        counts: Vec<Count>,
    },
    /// See [`Request::Settings`].
    Settings(Settings),
    /// See [`Request::Pins`].
    Pins {
        /// By entry and name.
        pins: Vec<Pin>,
    },
    /// See [`Request::Grants`].
    Grants {
        /// By entry.
        grants: Vec<EntryGrants>,
    },
    /// See [`Request::Observation`].
    Observation(Box<Observation>),
    /// See [`Request::Server`].
    Server(Box<Server>),
    /// See [`Request::Mode`].
    Mode {
        /// The mode in force.
        mode: Mode,
    },
    /// See [`Request::Endpoints`].
    Endpoints {
        /// By entry.
        endpoints: Vec<EndpointView>,
    },
    /// See [`Request::Routes`].
    Routes {
        /// By entry.
        routes: Vec<(EntryId, Route)>,
    },
    /// See [`Request::Unlock`].
    Opens {
        /// Whether it can.
        opens: bool,
    },
    /// See [`Request::ServeEndpoints`].
    Serve {
        /// All of them.
        endpoints: Vec<Endpoint>,
        /// Largest message, in bytes.
        max_message: usize,
    },
}

/// An address at which clients reach a server.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct EndpointView {
    /// Whose server.
    pub entry: EntryId,
    /// The address; absent until a port was found.
    pub address: Option<String>,
    /// What it starts, or where it is.
    pub server: Untrusted,
    /// The server's own address, of one that is reached over HTTP.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// Whether it is given an `Authorization` header of its own.
    #[serde(default)]
    pub authorized: bool,
    /// Whether it listens there now.
    pub listens: bool,
    /// Why it does not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

/// A rule to add.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WantedRule {
    /// Allow or block.
    pub effect: Choice,
    /// To what.
    pub matches: Match,
    /// When it ends, if it does.
    pub expires: Option<Millis>,
}

impl WantedRule {
    /// As the store takes it.
    pub fn draft(self, created: Millis) -> Draft {
        let Self { effect, matches, expires } = self;
        Draft { effect, matches, origin: Origin::User, created, expires }
    }
}

/// A rule that is suggested.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Suggestion {
    /// What accepting it names.
    pub id: firedoor_model::Digest,
    /// The rule, with number 0.
    pub rule: Rule,
    /// Questions that it would have answered.
    pub questions: u32,
}

/// Tool calls of one server in one span of time that went the same way.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Count {
    /// The beginning of the span.
    pub at: Millis,
    /// The server.
    pub entry: EntryId,
    /// Which way.
    pub outcome: audit::Outcome,
    /// How many.
    pub calls: u64,
}

/// Settings, and what an administrator has settled.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Settings {
    /// The mode in force.
    pub mode: Mode,
    /// For how many days the log is kept.
    pub log_days: u32,
    /// Size of the database, in bytes.
    pub log_bytes: u64,
    /// The oldest row that is kept.
    pub oldest: Option<Millis>,
    /// Whether servers that appear are protected without a question; not those of projects.
    #[serde(default)]
    pub protect_new: bool,
    /// The administrator's file, if there is one.
    pub managed: Option<Managed>,
}

/// What an administrator has settled.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Managed {
    /// The file.
    pub file: PathBuf,
    /// The mode is at least this strict.
    pub mode: Option<Mode>,
    /// Rules that it adds.
    pub rules: usize,
}

/// What the engine is doing.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Status {
    /// Firedoor's version.
    pub version: String,
    /// The engine's process.
    pub pid: u32,
    /// When it started.
    pub since: Millis,
    /// The mode in force.
    pub mode: Mode,
    /// Until when nothing is asked; absent when there is no pause.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paused_until: Option<Millis>,
    /// Servers about which nothing is asked any more in some session, because their questions were left unanswered: what
    /// would be asked is refused.
    #[serde(default)]
    pub quieted: Vec<EntryId>,
    /// Open questions.
    pub pending: usize,
    /// Running servers.
    pub sessions: Vec<Session>,
    /// Entries whose next start is observed.
    #[serde(default)]
    pub observe_next: Vec<EntryId>,
    /// Servers that have appeared, changed or lost Firedoor, and that could be protected. Oldest first.
    #[serde(default)]
    pub offers: Vec<Offer>,
    /// Definitions that are kept from agents and that the user has not decided about. Oldest first.
    #[serde(default)]
    pub withheld: Vec<Withheld>,
    /// How many directories are watched for changes of clients' configurations; none while they are not.
    #[serde(default)]
    pub watched: Option<usize>,
    /// What does not work as it should, one sentence each. Empty when all is well.
    pub problems: Vec<String>,
}

/// A server that could be protected.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Offer {
    /// Which.
    pub entry: EntryId,
    /// The client's name for people, from the catalog.
    pub client: String,
    /// Which file.
    pub path: Untrusted,
    /// The project that the file belongs to, if it belongs to one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<Untrusted>,
    /// Why it is offered.
    pub noticed: Noticed,
    /// What it starts; what looks like a secret is left out.
    pub command: Untrusted,
    /// Since when.
    pub since: Millis,
    /// It is being protected without a question: nobody need be asked unless that fails.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub under_way: bool,
}

/// One running server.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Session {
    /// Number within this run of the engine.
    pub id: u64,
    /// The entry.
    pub entry: EntryId,
    /// The client process.
    pub client: Untrusted,
    /// The server's process.
    pub pid: u32,
    /// The sandbox level really in force.
    pub level: String,
    /// The profile that gave its grants.
    pub profile: String,
    /// When it started.
    pub since: Millis,
    /// Calls so far.
    pub calls: u64,
    /// Whether what it does is written down.
    #[serde(default)]
    pub observed: bool,
}

/// One entry's server.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Server {
    /// How it was started, newest last; absent when this engine has not started it.
    pub start: Option<Start>,
    /// What the user has granted is not what the running server was started with: it has to be started again.
    pub restart: bool,
}

/// How a server was started.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Start {
    /// When.
    pub at: Millis,
    /// The sandbox level really in force, and why not more: `full: …`, `offline: …` or `partial: …`.
    pub level: String,
    /// The profile that gave its grants.
    pub profile: String,
    /// Its identity, to which rules are bound.
    pub launch: firedoor_model::Digest,
    /// What it is.
    pub launched: Launched,
    /// What its sandbox opens.
    pub basis: Basis,
}

/// What was seen of an observed server.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Observation {
    /// When the run began.
    pub at: Millis,
    /// Whether it goes on.
    pub running: bool,
    /// What was seen.
    pub record: Record,
    /// What a proposal is measured by.
    pub basis: Basis,
}

/// One audit row.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Row {
    /// Its number.
    pub seq: u64,
    /// Its chained hash.
    pub hash: firedoor_model::Digest,
    /// What happened.
    #[serde(flatten)]
    pub event: audit::Event,
}

/// One pinned definition.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Pin {
    /// The server's entry.
    pub entry: EntryId,
    /// `tool`, `prompt`, `resource` or `instructions`.
    pub kind: String,
    /// Its name.
    pub name: Untrusted,
    /// When it was first seen.
    pub first_seen: Millis,
    /// Hash of the pinned definition.
    pub digest: firedoor_model::Digest,
    /// Fields that differ now, when it waits to be accepted.
    pub changed: Vec<String>,
    /// The pinned definition's text, if it was short enough to keep.
    pub accepted: Option<Untrusted>,
    /// The text that waits to be accepted.
    pub now: Option<Untrusted>,
    /// Hash of the definition that waits to be accepted.
    pub seen: Option<firedoor_model::Digest>,
}

/// What the user granted to one entry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EntryGrants {
    /// The entry.
    pub entry: EntryId,
    /// Paths.
    pub grants: Vec<Grant>,
    /// Environment names.
    pub env: Vec<String>,
    /// Hosts.
    pub hosts: Vec<HostGrant>,
    /// Paths of Unix sockets.
    pub sockets: Vec<PathBuf>,
}

/// One judged record of `firedoor inspect`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Judged {
    /// The record's id.
    pub id: String,
    /// What was found.
    pub findings: Vec<Explained>,
    /// What Balanced would do.
    pub verdict: firedoor_model::Verdict,
}

/// A finding for somebody who wants to know what to do about it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Explained {
    /// What was found.
    #[serde(flatten)]
    pub finding: Finding,
    /// What would make it go away.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remedy: Option<String>,
}

impl From<Finding> for Explained {
    fn from(finding: Finding) -> Self {
        Self { remedy: finding.remedy().map(str::to_owned), finding }
    }
}
