// Written from src-tauri/src/view by its test `bindings`. Do not edit.

export type ActionView = "protect" | "restore";

export type ActivityView = { 
/**
 * Oldest first.
 */
rows: Array<RowView>, 
/**
 * Whether older rows of the last day were left out.
 */
cut: boolean, };

export type ArgumentView = { 
/**
 * Its name; absent when the arguments are not an object.
 */
name: string | null, 
/**
 * Its value: a text as it is, anything else as JSON.
 */
text: string, };

export type CheckedView = { entry: string, app: string, server: string, result: ResultView, 
/**
 * Tools listed both ways.
 */
tools: number | null, reason: string | null, };

export type ChoiceView = "allow" | "block";

export type ConfidenceView = "possible" | "likely" | "certain";

export type DurationView = "once" | "session" | "always";

export type EngineView = { "state": "starting" } | { "state": "up", version: string, pid: number, 
/**
 * Whether it runs inside this app.
 */
own: boolean, mode: string, sessions: Array<SessionView>, problems: Array<string>, } | { "state": "down", reason: string, };

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
 * Where it was seen.
 */
evidence: Array<EvidenceView>, };

export type FoundClientView = { id: string, name: string, files: Array<FoundFileView>, };

export type FoundEntryView = { entry: string, server: string, scope: string, command: string | null, state: StateView, 
/**
 * Why it is in this state, where that needs words.
 */
reason: string | null, can_protect: boolean, can_restore: boolean, warnings: Array<string>, };

export type FoundFileView = { path: string, scope: string, entries: Array<FoundEntryView>, warnings: Array<string>, problem: string | null, };

export type LeftView = { app: string, server: string, reason: string, };

export type OverviewView = { 
/**
 * The engine.
 */
engine: EngineView, 
/**
 * Questions that can be answered.
 */
questions: Array<SummaryView>, 
/**
 * The last call that was refused.
 */
last_block: RowView | null, };

export type PlanView = { 
/**
 * What carrying it out must bring along.
 */
nonce: string, action: ActionView, files: Array<FilePlanView>, left: Array<LeftView>, problems: Array<string>, };

export type ProgressView = { "step": "file" } & FileDoneView | { "step": "checking", entry: string, app: string, server: string, } | { "step": "checked" } & CheckedView;

export type QuestionView = { 
/**
 * What an answer must bring along.
 */
nonce: string, 
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
open_until: number, 
/**
 * Its place among those that wait, counted from 1.
 */
place: number, 
/**
 * How many wait.
 */
of: number, };

export type ResultView = "same" | "unverified" | "rolled_back" | "stuck";

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
 * What happened.
 */
what: WhatView, 
/**
 * The folder that could be granted so that what was refused works.
 */
folder: string | null, };

export type SessionView = { entry: string, app: string, server: string, client: string, level: string, profile: string, pid: number, since: number, calls: number, };

export type SeverityView = "low" | "medium" | "high" | "critical";

export type StateView = "unprotected" | "protected" | "misrouted" | "not_yet" | "wrapped_by_other";

export type SummaryView = { reference: string, app: string, server: string, tool: string, findings: Array<FindingView>, held_until: number, open_until: number, };

export type VerdictView = "allow" | "ask" | "block";

export type View = "home" | "activity" | "restore";

export type WhatView = { "kind": "started", level: string, } | { "kind": "resumed" } | { "kind": "ended", status: string, } | { "kind": "refused", reason: string, } | { "kind": "judged", method: string, subject: string | null, verdict: VerdictView, reference: string | null, findings: Array<FindingView>, } | { "kind": "answered", reference: string, allowed: boolean, duration: string, } | { "kind": "unanswered", reference: string, } | { "kind": "withdrawn", reference: string, } | { "kind": "expired", reference: string, } | { "kind": "noise", lines: number, bytes: number, } | { "kind": "pinned", subject: string, changed: Array<string>, } | { "kind": "command", text: string, } | { "kind": "denied", text: string, by: string, reason: string, } | { "kind": "failed", reason: string, };

export type WholeArgumentsView = { 
/**
 * In the call's order.
 */
arguments: Array<ArgumentView>, };
