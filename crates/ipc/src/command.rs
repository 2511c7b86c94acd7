//! Commands to the engine, from the command line and from the desktop.

mod log;
mod rules;
mod server;
mod settings;
mod status;
mod waiting;

use std::path::PathBuf;

use firedoor_model::{
    EntryId, Millis, Mode, Untrusted,
    broker::Route,
    endpoint::{Endpoint, Target},
    keychain::FileKey,
    launch::Grant,
    network::HostGrant,
    question::{Choice, Duration, Question, Ref, Scope},
    rule::{Rule, Use},
};
use serde::{Deserialize, Serialize};

pub use log::{Count, LogQuery, PageQuery, Row};
pub use rules::{Suggestion, WantedRule};
pub use server::{EndpointView, EntryGrants, Observation, Pin, Server, Start};
pub use settings::{Managed, Settings};
pub use status::{Offer, Session, Status};
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
