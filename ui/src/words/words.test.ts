import { expect, test } from "vitest";
import type { FindingView, FoundClientView, OverviewView, QuestionView, RowView } from "../bindings";
import { say } from "./activity";
import { clocks, consequence, foremost, scopes, title } from "./question";
import { counted, grid, standing } from "./servers";
import { diffLines, marked, pieces } from "./text";
import { ago, count, size } from "./time";

const finding = (detector: string, severity: FindingView["severity"], confidence: FindingView["confidence"]): FindingView => ({
  detector,
  severity,
  confidence,
  summary: `about ${detector}`,
  remedy: null,
  evidence: [],
});

const row = (what: RowView["what"], server: string | null = "outbox"): RowView => ({ seq: 1, at: 0, app: "Cursor", server, process: null, pid: null, client: null, what, folder: null });
const call = (verdict: "allow" | "ask" | "block", findings: FindingView[] = []): RowView =>
  row({ kind: "judged", method: "tools/call", subject: "http_post", verdict, reference: null, rule: null, findings });

test.each([
  ["plain", ["text:plain"]],
  ["a⟨U+202E⟩b", ["text:a", "hidden:U+202E", "text:b"]],
  ["⟨U+E0041⟩", ["hidden:U+E0041"]],
  ["⟨not one⟩", ["text:⟨not one⟩"]],
  ["", []],
])("hidden characters stand apart: %s", (text, want) => {
  expect(pieces(text).map((p) => `${p.kind}:${p.text}`)).toEqual(want);
});

test.each([
  ["key = AKIA•••• end", [], ["text:key = ", "mark:AKIA••••", "text: end"]],
  ["dear diary, it rained", ["dear diary"], ["mark:dear diary", "text:, it rained"]],
  ["a.c abc", ["a.c abc"], ["mark:a.c abc"]],
  ["abcdef (x)", ["(x) is no pattern ["], ["text:abcdef (x)"]],
  ["short abc", ["abc"], ["text:short abc"]],
])("what a finding is about is marked: %s", (text, excerpts, want) => {
  expect(marked(text, excerpts).map((p) => `${p.kind}:${p.text}`)).toEqual(want);
});

test("a diff is its lines", () => {
  const lines = diffLines("--- a\n+++ b\n@@ -1,2 +1,2 @@\n same\n-old\n+new\n\\ No newline at end of file\n");
  expect(lines.map((l) => `${l.kind}:${l.text}`)).toEqual(["gap:…", "same:same", "del:old", "add:new"]);
});

test("a question is named after its worst and surest finding", () => {
  const all = [finding("flow/private", "high", "likely"), finding("flow/secret", "high", "certain"), finding("x", "low", "certain")];
  expect(foremost(all)?.detector).toBe("flow/secret");
  expect(title(all)).toBe("Send a credential out through another tool?");
  expect(title([finding("unheard/of", "high", "likely")])).toBe("Let this call pass?");
  expect(title([finding("constructor", "high", "likely")])).toBe("Let this call pass?");
  expect(foremost([])).toBeUndefined();
});

const asked = { asked: 0, held_until: 45_000, open_until: 600_000 };

test.each([
  [0, false, 0, "Waiting 45 s", ""],
  [15_000, false, 1, "Waiting 30 s", "30 seconds until this is refused."],
  [44_500, false, 3, "Waiting 1 s", ""],
  [45_000, true, 4, "closes in 10 min", ""],
  [599_000, true, 4, "closes in 1 s", ""],
  [700_000, true, 4, "closes in 0 s", ""],
])("the clocks at %d ms", (now, late, step, text, aloud) => {
  const clock = clocks(asked, now);
  expect(clock).toMatchObject({ late, step, say: aloud });
  expect(clock.text).toContain(text);
});

test("what an answer does is said before it is given", () => {
  const q = { ...asked, app: "Cursor", server: "outbox", tool: "http_post", host: "paste.example.net", program: null, exact: false, calls: [] } as unknown as QuestionView;
  expect(consequence(q, "once", "call", 0)).toContain("this one call");
  expect(consequence(q, "session", "call", 0)).toContain("until the session ends");
  expect(consequence(q, "always", "call", 0)).toContain("rule for exactly this call");
  expect(consequence(q, "always", "tool", 0)).toContain("rule for calls of http_post to paste.example.net");
  // What is not offered is not said.
  expect(scopes({ ...q, exact: true })).toEqual(["call"]);
  expect(consequence({ ...q, exact: true }, "always", "tool", 0)).toContain("rule for exactly this call");
  expect(consequence(q, "always", "call", 50_000)).toContain("through once, if Cursor tries again");
});

test("what an answer about a connection does is said, too", () => {
  const q = { ...asked, app: "Cursor", server: "outbox", tool: "a.example:443", program: "/usr/bin/node (7)" } as QuestionView;
  expect(consequence(q, "once", "call", 0)).toContain("a.example:443 that wait now");
  expect(consequence(q, "session", "call", 0)).toContain("until the session ends");
  expect(consequence(q, "always", "call", 0)).toContain("grants a.example:443 to outbox");
  expect(consequence(q, "always", "call", 50_000)).toContain("once, if it tries again");
  expect(title([finding("sandbox/host", "medium", "certain")])).toContain("host");
});

test("an excerpt without end is shown, not searched for", () => {
  const long = "A".repeat(1 << 20);
  expect(marked(long, [long])).toEqual([{ kind: "text", text: long }]);
});

test.each<[RowView, string]>([
  [call("allow"), "Allowed"],
  [call("allow", [finding("x", "low", "possible")]), "Recorded"],
  [call("ask"), "Asked"],
  [call("block"), "Blocked"],
  [row({ kind: "answered", reference: "7F3A", allowed: false, duration: "once" }), "You blocked"],
  [row({ kind: "unanswered", reference: "7F3A" }), "Refused"],
  [row({ kind: "withdrawn", reference: "7F3A" }), "Withdrawn"],
  [row({ kind: "expired", reference: "7F3A" }), "Unanswered"],
  [row({ kind: "refused", reason: "r" }), "Not started"],
  [row({ kind: "denied", text: "t", by: "b", reason: "r" }), "Denied"],
  [row({ kind: "noticed", text: "t", loss: true }, null), "Noticed"],
  [row({ kind: "failed", reason: "r" }, null), "Failed"],
  [row({ kind: "resumed" }), "Resumed"],
])("a row says what happened: %#", (what, want) => {
  expect(say(what).result).toBe(want);
});

const entry = (server: string, state: "protected" | "unprotected" | "not_yet"): FoundClientView["files"][0]["entries"][0] => ({
  entry: `x/user/${server}`,
  server,
  scope: "user",
  command: null,
  state,
  reason: null,
  can_protect: state === "unprotected",
  can_restore: state === "protected",
  warnings: [],
  findings: [],
  secrets: [],
});
const client = (name: string, ...entries: FoundClientView["files"][0]["entries"]): FoundClientView => ({
  id: name,
  name,
  files: [{ path: "/p", scope: "user", entries, warnings: [], problem: null }],
});
const overview = (problems: string[] = []): OverviewView => ({
  engine: { state: "up", version: "0", pid: 1, own: true, mode: "balanced", paused_until: null, quieted: [], sessions: [], problems },
  questions: [],
  withheld: [],
  offers: [],
  tray: true,
  last_block: null,
  missing: ["broker mode is not available on this system yet"],
});

test("the grid has a row a server and a column a client that has any", () => {
  const table = grid([client("Cursor", entry("b", "protected"), entry("a", "unprotected")), client("Codex", entry("b", "protected")), client("Empty")]);
  expect(table.apps).toEqual(["Cursor", "Codex"]);
  expect(table.rows.map((r) => [r.server, r.cells.map((c) => c.length)])).toEqual([["a", [1, 0]], ["b", [1, 1]]]);
});

test.each([
  [[entry("a", "protected")], [], "Protected", "d-protected"],
  [[entry("a", "unprotected")], [], "Nothing is protected", "d-off"],
  [[], [], "Nothing is protected", "d-off"],
  [[entry("a", "protected"), entry("b", "not_yet")], [], "1 of 2 protected", "d-degraded"],
  [[entry("a", "protected")], ["disk full"], "On, with a problem", "d-degraded"],
])("home says how things stand: %#", (entries, problems, want, door) => {
  expect(standing(overview(problems), counted([client("Cursor", ...entries)]))).toMatchObject({ title: want, door });
});

test("no engine is said, whatever is configured", () => {
  const down: OverviewView = { ...overview(), engine: { state: "down", reason: "because" } };
  expect(standing(down, counted([client("Cursor", entry("a", "protected"))])).text).toContain("because");
});

test("times and sizes", () => {
  expect([ago(40), ago(600), ago(7200)]).toEqual(["40 s", "10 min", "2 h"]);
  expect([size(999), size(1200)]).toEqual(["999 bytes", "1.2 KB"]);
  expect([count(1, "server"), count(0, "server")]).toEqual(["1 server", "0 servers"]);
});
