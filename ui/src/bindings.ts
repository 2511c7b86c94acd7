// Written from src-tauri/src/view by its test `bindings`. Do not edit.

export type AboutView = { version: string, parts: Array<PartView>, };

export type ActionView = "protect" | "restore";

export type ActivityView = { 
/**
 * Newest first.
 */
rows: Array<RowView>, 
/**
 * Where the next, older piece begins; absent at the log's beginning.
 */
next: number | null, };

export type AnswerView = { choice: ChoiceView, duration: DurationView, scope: ScopeView, 
/**
 * Whether to end the server, too, when it is blocked.
 */
stop: boolean, };

export type ArgumentView = { 
/**
 * Its name; absent when the arguments are not an object.
 */
name: string | null, 
/**
 * Its value: a text as it is, anything else as JSON.
 */
text: string, };

export type AskedView = { 
/**
 * What an answer must bring along.
 */
nonce: string, 
/**
 * Its place among those that wait, counted from 1.
 */
place: number, 
/**
 * How many wait.
 */
of: number, matter: MatterView, };

export type CallView = { 
/**
 * When it arrived, in milliseconds since 1970.
 */
asked: number, 
/**
 * Its arguments in one line, shortened.
 */
brief: string, 
/**
 * Length of all arguments in bytes.
 */
bytes: number, };

export type ChangeView = { 
/**
 * What accepting must bring along: digest of what is shown.
 */
seen: string, 
/**
 * Changed back, but not before an agent may have read it.
 */
back: boolean, fields: Array<FieldView>, };

export type ChangedView = { 
/**
 * The client's name.
 */
app: string, 
/**
 * The server's name.
 */
server: string, definitions: Array<DefinitionView>, 
/**
 * Why they are kept back.
 */
findings: Array<FindingView>, };

export type CheckedView = { entry: string, app: string, server: string, result: ResultView, 
/**
 * Tools listed through Firedoor.
 */
tools: number | null, reason: string | null, };

export type ChoiceView = "allow" | "block";

export type CommandView = { 
/**
 * What it would do.
 */
action: string, 
/**
 * As it was typed.
 */
command: string, 
/**
 * The process that asks and those above it, nearest first.
 */
asked_by: Array<string>, 
/**
 * Since when it waits, in milliseconds since 1970.
 */
asked: number, 
/**
 * Until when.
 */
until: number, };

export type ConfidenceView = "possible" | "likely" | "certain";

export type CountView = { at: number, app: string, server: string, outcome: OutcomeView, calls: number, };

export type CountsView = { since: number, 
/**
 * Length of one span, in milliseconds.
 */
step: number, counts: Array<CountView>, };

export type DefinitionView = { pin: PinView, 
/**
 * Whether it was held back at its first sight: nothing was there before.
 */
new: boolean, 
/**
 * Since when it is another one, in milliseconds since 1970.
 */
since: number, };

export type DurationView = "once" | "session" | "always";

export type EngineView = { "state": "starting" } | { "state": "up", version: string, pid: number, 
/**
 * Whether it runs inside this app.
 */
own: boolean, mode: string, 
/**
 * Until when nothing is asked, when there is a pause.
 */
paused_until: number | null, 
/**
 * Servers about which nothing is asked any more, because nobody answered.
 */
quieted: Array<string>, sessions: Array<SessionView>, problems: Array<string>, } | { "state": "down", reason: string, };

export type EvidenceView = { 
/**
 * Which end of a flow.
 */
role: RoleView, 
/**
 * The client's name.
 */
app: string | null, 
/**
 * The server's name.
 */
server: string | null, 
/**
 * The tool's name.
 */
tool: string | null, 
/**
 * JSON pointer into the message.
 */
pointer: string, 
/**
 * The matched text, secrets masked.
 */
excerpt: string, 
/**
 * How the text was changed on its way.
 */
transform: string | null, 
/**
 * How long ago the source was seen, in seconds.
 */
age_s: number | null, };

export type ExportView = "log" | "rules";

export type FieldView = { name: string, 
/**
 * Absent where the field was not there, or its text was too long to keep.
 */
before: string | null, after: string | null, };

export type FileDoneView = { path: string, changed: number, 
/**
 * Whether it is byte for byte what it was before Firedoor.
 */
original: boolean, error: string | null, };

export type FilePlanView = { app: string, path: string, servers: Array<string>, 
/**
 * Unified diff, secrets left out.
 */
diff: string, };

export type FindingView = { 
/**
 * Such as `flow/secret`.
 */
detector: string, 
/**
 * How bad.
 */
severity: SeverityView, 
/**
 * How sure.
 */
confidence: ConfidenceView, 
/**
 * One sentence of ours.
 */
summary: string, 
/**
 * What would make it go away.
 */
remedy: string | null, 
/**
 * Where it was seen.
 */
evidence: Array<EvidenceView>, };

export type FoundClientView = { id: string, name: string, files: Array<FoundFileView>, };

export type FoundEntryView = { entry: string, server: string, scope: string, command: string | null, state: StateView, 
/**
 * Why it is in this state, where that needs words.
 */
reason: string | null, can_protect: boolean, can_restore: boolean, warnings: Array<string>, 
/**
 * What there is to know about it, the worst first.
 */
findings: Array<ScanFindingView>, 
/**
 * The names of its secrets in the keychain.
 */
secrets: Array<string>, };

export type FoundFileView = { path: string, scope: string, entries: Array<FoundEntryView>, warnings: Array<string>, problem: string | null, };

export type GrantKind = "read" | "write" | "host" | "socket" | "env";

export type GrantView = { kind: GrantKind, text: string, };

export type LeftView = { app: string, server: string, reason: string, };

export type LevelView = "full" | "offline" | "partial" | "seatbelt" | "unknown";

export type LimitKind = "memory" | "processes" | "files" | "file_size" | "cpu";

export type LimitView = { what: LimitKind, most: string, };

export type ManagedView = { file: string, mode: ModeView | null, rules: number, };

export type MatterView = { "kind": "call" } & QuestionView | { "kind": "command" } & CommandView | { "kind": "changed" } & ChangedView | { "kind": "servers" } & ServersView;

export type ModeView = "watch" | "balanced" | "strict";

export type NewRule = { effect: ChoiceView, 
/**
 * As it is shown.
 */
entry: string | null, tool: string | null, detector: string | null, 
/**
 * For so many days.
 */
days: number | null, };

export type NewServerView = { server: string, 
/**
 * What it starts or reaches.
 */
command: string, };

export type NewsView = "appeared" | "changed" | "dropped";

export type ObservationView = { at: number, running: boolean, read: number, written: number, started: number, connected: Array<string>, refused: Array<string>, 
/**
 * The file's name, without its ending.
 */
name: string, profile: string, warnings: Array<string>, };

export type OfferView = { entry: string, app: string, server: string, 
/**
 * Whether it was protected, and its client has put it back.
 */
dropped: boolean, 
/**
 * Whether it is new, and not only another one than before.
 */
new: boolean, path: string, command: string, };

export type OriginView = "user" | "answer" | "log" | "suggestion" | "managed";

export type OutcomeView = "allowed" | "recorded" | "asked" | "blocked" | "answered" | "server" | "changed" | "failed";

export type OverviewView = { 
/**
 * The engine.
 */
engine: EngineView, 
/**
 * Whether this desktop shows tray icons.
 */
tray: boolean, 
/**
 * Questions that can be answered.
 */
questions: Array<SummaryView>, 
/**
 * Definitions that are kept from agents until the user has decided.
 */
withheld: Array<WithheldView>, 
/**
 * Servers that have appeared, changed or lost Firedoor, and that could be protected.
 */
offers: Array<OfferView>, 
/**
 * The last call that was refused.
 */
last_block: RowView | null, 
/**
 * What this system does not do yet, one sentence each.
 */
missing: Array<string>, };

export type PartView = { name: string, version: string, 
/**
 * An SPDX expression.
 */
licence: string, };

export type PinView = { 
/**
 * `tool`, `prompt` …
 */
kind: string, name: string, first_seen: number, 
/**
 * The change that waits.
 */
change: ChangeView | null, };

export type PlanView = { 
/**
 * What carrying it out must bring along.
 */
nonce: string, action: ActionView, files: Array<FilePlanView>, left: Array<LeftView>, problems: Array<string>, };

export type ProgressView = { "step": "file" } & FileDoneView | { "step": "checking", entry: string, app: string, server: string, } | { "step": "checked" } & CheckedView;

export type QuestionView = { 
/**
 * How the log and the command line call it.
 */
reference: string, 
/**
 * The client's name.
 */
app: string, 
/**
 * The client's process.
 */
process: string, 
/**
 * The server's name.
 */
server: string, 
/**
 * The tool called; host and port when a connection waits.
 */
tool: string, 
/**
 * When a connection of the server waits and no call: the program that makes it.
 */
program: string | null, 
/**
 * Where it would go, when the arguments name exactly one address.
 */
host: string | null, 
/**
 * Whether an allow holds for exactly this call only, whatever is chosen.
 */
exact: boolean, 
/**
 * The calls that it is about, when they are several.
 */
calls: Array<CallView>, 
/**
 * Why.
 */
findings: Array<FindingView>, 
/**
 * What the call says, shortened.
 */
arguments: Array<ArgumentView>, 
/**
 * Whether "Show all" shows more.
 */
shortened: boolean, 
/**
 * Length of all arguments in bytes.
 */
bytes: number, 
/**
 * When the call arrived, in milliseconds since 1970.
 */
asked: number, 
/**
 * Until when the call is held.
 */
held_until: number, 
/**
 * Until when it can be answered.
 */
open_until: number, };

export type ReachView = { 
/**
 * Places that may be written, besides its private directories.
 */
write: Array<string>, 
/**
 * Places below the home that may be read.
 */
read: Array<string>, 
/**
 * How many other places may be read: interpreter, libraries, certificates.
 */
system: number, hosts: Array<string>, sockets: Array<string>, 
/**
 * Whether it may listen on the loopback interface.
 */
listen: boolean, 
/**
 * Variables that somebody named.
 */
env: Array<string>, 
/**
 * Variables that are not passed on.
 */
dropped: Array<string>, limits: Array<LimitView>, };

export type ResultView = "same" | "answers" | "unverified" | "rolled_back" | "stuck";

export type RoleView = "source" | "sink" | "place";

export type RowView = { 
/**
 * Its number.
 */
seq: number, 
/**
 * When, in milliseconds since 1970.
 */
at: number, 
/**
 * The client's name.
 */
app: string | null, 
/**
 * The server's name.
 */
server: string | null, 
/**
 * The client's process.
 */
process: string | null, 
/**
 * Its number.
 */
pid: number | null, 
/**
 * The client's id.
 */
client: string | null, 
/**
 * What happened.
 */
what: WhatView, 
/**
 * The folder that could be granted so that what was refused works.
 */
folder: string | null, };

export type RowsQuery = { 
/**
 * Below this number.
 */
before?: number, 
/**
 * Above this number.
 */
after?: number, 
/**
 * The server's name, as it is shown.
 */
server?: string, 
/**
 * The client's id.
 */
client?: string, 
/**
 * The client's process.
 */
process?: number, outcome?: OutcomeView, text?: string, since?: number, until?: number, };

export type RuleView = { id: number, effect: ChoiceView, 
/**
 * The client's name, when it is about one entry.
 */
app: string | null, server: string | null, 
/**
 * The client's executable or script.
 */
client: string | null, tool: string | null, detector: string | null, 
/**
 * One exact call only.
 */
exact: boolean, 
/**
 * Calls only that name this address.
 */
address: string | null, 
/**
 * Only while the server is what it was.
 */
bound: boolean, origin: OriginView, created: number, expires: number | null, hits: number, last: number | null, };

export type RulesView = { rules: Array<RuleView>, suggestions: Array<SuggestionView>, 
/**
 * Questions that were answered in the time that suggestions come from.
 */
questions: number, };

export type ScanFindingView = { 
/**
 * Such as `W001`; `docs/scan-codes.md` explains it.
 */
code: string, severity: SeverityView, message: string, remedy: string, };

export type ScopeView = "call" | "tool";

export type SecretView = { 
/**
 * What the window names it by.
 */
id: string, name: string, 
/**
 * The server it was moved out of.
 */
of: string, used_by: Array<UserView>, 
/**
 * Whether the keychain has it; `null` when it cannot say.
 */
kept: boolean | null, };

export type SecretsView = { secrets: Array<SecretView>, 
/**
 * Why the keychain cannot say what it has.
 */
problem: string | null, };

export type ServerView = { 
/**
 * How it was started, if the engine that runs has started it.
 */
start: StartView | null, 
/**
 * It runs with other grants than there are now.
 */
restart: boolean, 
/**
 * What the user granted.
 */
grants: Array<GrantView>, 
/**
 * Definitions, changed ones first.
 */
pins: Array<PinView>, 
/**
 * Definitions that are not listed here.
 */
more_pins: number, 
/**
 * Whether its next run is observed.
 */
observe_next: boolean, 
/**
 * What was seen of it.
 */
observation: ObservationView | null, 
/**
 * Whether somebody can log in at it.
 */
sign_in: SignInView | null, 
/**
 * What it uses now, if it runs.
 */
usage: UsageView | null, };

export type ServersView = { 
/**
 * The client's name.
 */
app: string, news: NewsView, 
/**
 * Their file.
 */
path: string, 
/**
 * Whether it belongs to a project, which others may share.
 */
project: boolean, servers: Array<NewServerView>, 
/**
 * What protecting them would change.
 */
files: Array<FilePlanView>, 
/**
 * Why some of them cannot be protected.
 */
left: Array<string>, };

export type SessionView = { entry: string, app: string, server: string, client: string, level: string, profile: string, pid: number, since: number, calls: number, };

export type SettingsView = { mode: ModeView, log_days: number, log_bytes: number, 
/**
 * The oldest row of the log.
 */
oldest: number | null, 
/**
 * Whether servers that appear are protected without a question.
 */
protect_new: boolean, managed: ManagedView | null, };

export type SeverityView = "low" | "medium" | "high" | "critical";

export type SignInView = { 
/**
 * When it last said that somebody has to, if nobody has done so since.
 */
wanted: number | null, };

export type StartView = { at: number, 
/**
 * The level in force.
 */
level: LevelView, 
/**
 * What that means, and why it is not more.
 */
why: string, profile: string, 
/**
 * Whether the profile is a file of the user's own.
 */
own_profile: boolean, 
/**
 * The package with its version, or the program.
 */
what: string, 
/**
 * First digits of the launch identity.
 */
launch: string, reach: ReachView, };

export type StateView = "unprotected" | "protected" | "misrouted" | "not_yet" | "wrapped_by_other";

export type SuggestionView = { 
/**
 * What accepting it names.
 */
id: string, rule: RuleView, 
/**
 * Questions that it would have answered.
 */
questions: number, };

export type SummaryView = { reference: string, app: string, server: string, tool: string, findings: Array<FindingView>, held_until: number, open_until: number, };

export type UsageView = { processes: number, 
/**
 * In bytes.
 */
memory: number, 
/**
 * So far, in milliseconds.
 */
processor_ms: number, };

export type UserView = { server: string, 
/**
 * The service that the secret is put in for, in broker mode; without one the server gets it.
 */
only_to: string | null, };

export type VerdictView = "allow" | "ask" | "block";

export type VerifiedView = { rows: number, 
/**
 * The first row that is wrong.
 */
bad: number | null, 
/**
 * What is wrong with it.
 */
why: string | null, };

export type View = { "at": "home" } | { "at": "activity" } | { "at": "servers" } | { "at": "rules" } | { "at": "settings" } | { "at": "pause" } | { "at": "protect", app: string | null, } | { "at": "restore", app: string | null, };

export type VisitView = { nonce: string, 
/**
 * Whose page it is.
 */
host: string, address: string, 
/**
 * Whether the way there is not encrypted.
 */
plain: boolean, };

export type WhatView = { "kind": "started", level: string, } | { "kind": "resumed" } | { "kind": "ended", status: string, } | { "kind": "refused", reason: string, } | { "kind": "judged", method: string, subject: string | null, verdict: VerdictView, reference: string | null, 
/**
 * The number of the rule that settled it, if one did.
 */
rule: number | null, findings: Array<FindingView>, } | { "kind": "answered", reference: string, allowed: boolean, duration: string, } | { "kind": "unanswered", reference: string, } | { "kind": "withdrawn", reference: string, } | { "kind": "expired", reference: string, } | { "kind": "noise", lines: number, bytes: number, } | { "kind": "pinned", subject: string, changed: Array<string>, } | { "kind": "command", text: string, } | { "kind": "denied", text: string, by: string, reason: string, } | { "kind": "noticed", text: string, 
/**
 * Whether something lost its protection, or cannot be looked at any more.
 */
loss: boolean, } | { "kind": "failed", reason: string, };

export type WholeArgumentsView = { 
/**
 * In the call's order.
 */
arguments: Array<ArgumentView>, };

export type WithheldView = { entry: string, app: string, server: string, 
/**
 * `tool`, `prompt` …
 */
kind: string, name: string, };
