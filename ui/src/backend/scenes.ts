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

/** Names as people and programs choose them: 66 letters without a break, right to left, with emoji; and many of everything. */
const LONG = "a-server-whose-name-is-made-of-sixty-six-characters-without-a-blank".slice(0, 66);
const NAMES = [LONG, "שרת-הקבצים-של-המשרד", "🧯🚪-notes-👩‍🚒", "x", ...Array.from({ length: 36 }, (_, n) => `server-${n + 1}`)];
const LONG_TOOL = "a_tool_whose_name_is_made_of_sixty_six_characters_without_any_blank".slice(0, 66);
const TOOLS = [LONG_TOOL, "חיפוש_בקבצים", "🔎_search", "go"];
function crowded(): FakeMain {
  const main = full();
  const finding1 = finding("flow/secret", "A credential that one tool returned would leave through another.", [LONG, LONG_TOOL], [NAMES[1] ?? "", TOOLS[1] ?? ""]);
  const apps: [string, string][] = [["cursor", "Cursor"], ["claude-code", "Claude Code"], ["claude-desktop", "Claude Desktop"], ["vscode", "VS Code"], ["windsurf", "Windsurf"], ["gemini", "Gemini CLI"], ["codex", "Codex"], ["opencode", "opencode"]];
  main.servers = () =>
    Promise.resolve(
      apps.map(([id, name], at) => ({
        id,
        name,
        files: [{
          path: `/home/u/.${id}/${LONG}/mcp.json`,
          scope: "user",
          entries: NAMES.filter((_, n) => n < 4 ? at < 4 : n % apps.length === at).map((server, n) =>
            entry(id, server, {
              command: `npx -y @example/${server}-mcp --root /home/u/${LONG}`,
              scope: n === 0 ? `project ${LONG}` : "user",
              secrets: n === 0 ? [LONG.toUpperCase(), "GITHUB_TOKEN"] : [],
              warnings: n === 0 ? ["Another program changes this file: what Firedoor writes may be gone."] : [],
              findings: n === 0 ? [{ code: "W001", severity: "high", message: `It runs whatever version is newest of @example/${server}.`, remedy: "Name a version." }] : [],
              ...(n === 1 ? { state: "unprotected" as const, can_protect: true, can_restore: false } : {}),
              ...(n === 2 ? { state: "not_yet" as const, can_restore: false, reason: "its command is an array with args beside it" } : {}),
            })),
          warnings: [],
          problem: at === 0 ? `/home/u/.${id}/${LONG}/mcp.json could not be read: permission denied` : null,
        }],
      })),
    );
  const sessions = NAMES.slice(0, 12).map((server, n) => session("cursor", "Cursor", server, n % 2 === 0 ? "full: files, network and signals are confined" : "partial: this kernel lacks a layer"));
  main.rows = Array.from({ length: 60 }, (_, n) => call(NAMES[n % 4] ?? "", TOOLS[n % 4] ?? "", n % 5 === 0 ? "block" : "allow", n % 5 === 0 ? [finding1] : [], n % 5 === 0 ? "7F3A" : null));
  // The longest words for what became of something.
  main.rows.push(row("x", { kind: "answered", reference: "7F3A", allowed: false, duration: "session" }), row("x", { kind: "refused", reason: "its program is gone" }), row("x", { kind: "expired", reference: "7F3A" }));
  main.rows.reverse();
  main.overview = async () => ({
    engine: { state: "up", version: "0.1.0", pid: 1, own: true, mode: "balanced", paused_until: null, quieted: [LONG], sessions, problems: [`The store is nearly full: /home/u/${LONG}/firedoor.db`] },
    questions: NAMES.slice(0, 3).map((server, n) => ({ reference: `7F3${n}`, app: "Cursor", server, tool: TOOLS[n] ?? "", findings: [finding1], held_until: now + 40_000, open_until: now + 600_000 })),
    withheld: NAMES.slice(0, 3).map((server, n) => ({ entry: `cursor/user/${server}`, app: "Cursor", server, kind: "tool", name: TOOLS[n] ?? "" })),
    offers: NAMES.slice(0, 3).map((server) => ({ entry: `vscode/user/${server}`, app: "VS Code", server, command: `npx -y @example/${server}-mcp`, path: `/home/u/${LONG}/.vscode/mcp.json`, new: true, dropped: false })),
    tray: false,
    last_block: main.rows.find((r) => r.what.kind === "judged" && r.what.verdict === "block") ?? null,
    missing: [],
  });
  main.counted = (since, step) => NAMES.slice(0, 8).map((server, n) => ({ at: since + step, app: "Cursor", server, outcome: "allowed" as const, calls: 1000 * (9 - n) }));
  const start = serverView().start;
  main.view = serverView({
    start: start && { ...start, what: `@example/${LONG} 2025.11.2 from npm`, profile: LONG, reach: { ...start.reach, write: NAMES.slice(0, 8).map((n) => `~/src/${n}`), hosts: NAMES.slice(0, 3).map((n) => `${n}.example.com:443`), env: [LONG.toUpperCase(), "GITHUB_TOKEN"] } },
    restart: true,
    grants: NAMES.slice(0, 4).map((n) => ({ kind: "write" as const, text: `/home/u/src/${n}` })),
    pins: [...serverView().pins.slice(0, 1).map((pin) => ({ ...pin, name: LONG_TOOL })), ...TOOLS.map((name) => ({ kind: "tool", name, first_seen: now - 18 * DAY, change: null }))],
    sign_in: { wanted: now - 600_000 },
    observation: { at: now - 600_000, running: false, read: 12, written: 3, started: 1, connected: [`${LONG}.example.com:443`], refused: [], name: LONG, profile: `[files]\nread = ["~/src/${LONG}"]`, warnings: [] },
  });
  main.ruled = {
    rules: [...NAMES.slice(0, 4).map((server, n) => rule({ id: n + 1, server, tool: TOOLS[n] ?? "", app: apps[n]?.[1] ?? null, expires: now + 20 * DAY })), ...Array.from({ length: 20 }, (_, n) => rule({ id: n + 10, origin: n % 2 === 0 ? "log" : "user" }))],
    suggestions: [{ id: "d1", rule: rule({ id: 0, origin: "suggestion", server: LONG, tool: LONG_TOOL }), questions: 5 }],
    questions: 9,
  };
  main.hidden = { secrets: NAMES.slice(0, 4).map((server, n) => ({ id: `${n}`, name: n === 0 ? LONG.toUpperCase() : "GITHUB_TOKEN", of: `Cursor › ${server}`, used_by: [{ server: `Cursor › ${server}`, only_to: `https://${server}.example.com` }], kept: n !== 3 })), problem: null };
  main.plan = (action) =>
    Promise.resolve({
      nonce: "p1",
      action,
      files: apps.map(([id, app]) => ({ app, path: `/home/u/.${id}/${LONG}/mcp.json`, servers: NAMES.slice(0, 4), diff: `@@ -1 +1 @@\n-  "${LONG}": {"command": "npx", "args": ["-y", "@example/${LONG}-mcp"]}\n+  "${LONG}": {"command": "/usr/bin/firedoor-shim"}\n` })),
      left: [{ app: "Cursor", server: LONG, reason: "its command is an array with args beside it" }],
      problems: [`/home/u/${LONG}/mcp.json could not be read: permission denied`],
    });
  main.carryOut = (_nonce, files, onStep) => {
    for (const [id] of apps) onStep({ step: "file", path: `/home/u/.${id}/${LONG}/mcp.json`, changed: 4, original: false, error: id === "codex" ? "permission denied" : null });
    for (const [n, server] of NAMES.entries()) onStep({ step: "checked", entry: `cursor/user/${server}`, app: "Claude Desktop", server, result: n % 5 === 1 ? "rolled_back" : "same", tools: n % 5 === 1 ? null : 11, reason: n % 5 === 1 ? `tool ${LONG_TOOL} is missing` : null });
    main.carried.push(files);
    return Promise.resolve();
  };
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

const SCENES: Record<string, () => FakeMain> = { full, hostile, failing, empty, bare, many, crowded, "first-run": () => new FakeMain() };
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

/** Long names and emoji, right to left, and many of everything. */
function crowdedQuestions(): AskedView[] {
  const found = finding("flow/secret", "A credential that one tool returned would leave through another.", [LONG, LONG_TOOL], [NAMES[1] ?? "", TOOLS[1] ?? ""]);
  const [pin] = serverView().pins;
  return [
    question({ nonce: "c1", app: "Claude Desktop", server: LONG, tool: LONG_TOOL, host: `${LONG}.example.com`, findings: [found, found], arguments: Array.from({ length: 20 }, (_, n) => ({ name: n === 0 ? LONG : `argument_${n}`, text: n % 2 === 0 ? `${LONG}/${LONG}` : "שלום 👩‍🚒" })) }),
    question({ nonce: "c2", server: NAMES[1] ?? "", tool: TOOLS[1] ?? "", calls: Array.from({ length: 20 }, (_, n) => ({ asked: now + n * 1000, brief: `{"path":"/home/u/${LONG}/${n}"}`, bytes: 400 * (n + 1) })) }),
    command({ nonce: "c3", action: `granting more to cursor/user/${LONG}: /home/u/${LONG} (to write)`, command: `firedoor grants add cursor/user/${LONG} --rw /home/u/${LONG}` }),
    changed({ nonce: "c4", server: LONG, definitions: pin ? TOOLS.map((name) => ({ pin: { ...pin, name }, new: false, since: now - 3_600_000 })) : [] }),
    appeared({ nonce: "c5", path: `~/${LONG}/mcp.json`, servers: NAMES.map((server) => ({ server, command: `npx -y @example/${server}-mcp` })), left: [`${LONG}: its command is an array with args beside it`] }),
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
  crowded: crowdedQuestions,
};
const asked = new URLSearchParams(location.search).get("ask") ?? "";
export const promptBackend: PromptBackend = new FakePrompt(...(ASKED[asked]?.() ?? [question(), question({ nonce: "n2", host: null }), several({ nonce: "n3" })]));
