// The windows with a fake backend.
import { flushSync, mount, unmount } from "svelte";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { FakeMain, FakePrompt, appeared, changed, command, question } from "./backend/fake";
import type { ChangedView, RowView, ServersView } from "./bindings";
import Activity from "./main/Activity.svelte";
import Main from "./main/Main.svelte";
import Prompt from "./prompt/Prompt.svelte";
import { ARM_MS } from "./words/arming";

/** Two frames, then the time. */
const ARMED = ARM_MS + 50;

let open: ReturnType<typeof mount> | undefined;

beforeEach(() => {
  vi.useFakeTimers();
  globalThis.ResizeObserver ??= class {
    observe(): void {}
    unobserve(): void {}
    disconnect(): void {}
  };
});

afterEach(async () => {
  if (open) await unmount(open);
  open = undefined;
  vi.useRealTimers();
});

async function settle(ms = 0): Promise<void> {
  await vi.advanceTimersByTimeAsync(ms);
  flushSync();
}

async function ask(backend: FakePrompt): Promise<void> {
  open = mount(Prompt, { target: document.body, props: { backend } });
  await settle(1);
}

const $ = (css: string): HTMLElement => {
  const found = document.querySelector<HTMLElement>(css);
  if (!found) throw new Error(`there is no ${css} in ${document.body.innerHTML}`);
  return found;
};
const armed = (): boolean => $("#allow").getAttribute("aria-disabled") === "false";

test("server text is text, and hidden characters stand apart", async () => {
  await ask(new FakePrompt(question()));
  expect(document.querySelector(".args b")).toBeNull();
  expect($(".args").textContent).toContain("<b>more</b>");
  expect($(".args .cp").textContent).toBe("U+202E");
  expect($(".args mark").textContent).toContain("AKIA••••");
});

test("no button has the focus, and none is the default", async () => {
  await ask(new FakePrompt(question()));
  expect(document.activeElement?.id).toBe("q");
  expect([...document.querySelectorAll(".answer button")].map((b) => [b.getAttribute("type"), b.className])).toEqual([
    ["button", "wide"],
    ["button", ""],
    ["button", "wide"],
  ]);
  expect($("[role=alertdialog]").getAttribute("aria-labelledby")).toBe("q");
});

test("buttons are inert until armed, and again after focus and stray keys", async () => {
  const backend = new FakePrompt(question());
  await ask(backend);
  $("#allow").click();
  $("#block").click();
  expect(backend.calls).toEqual([]);
  await settle(ARMED);
  expect(armed()).toBe(true);
  window.dispatchEvent(new KeyboardEvent("keydown", { key: "y" }));
  flushSync();
  expect(armed()).toBe(false);
  await settle(ARMED);
  window.dispatchEvent(new KeyboardEvent("keydown", { key: "Tab" }));
  flushSync();
  expect(armed()).toBe(true);
  window.dispatchEvent(new Event("focus"));
  flushSync();
  expect(armed()).toBe(false);
  $("#allow").click();
  expect(backend.calls).toEqual([]);
});

test("an answer goes with its number and the chosen time; the next question is armed anew", async () => {
  const backend = new FakePrompt(question({ nonce: "a" }), question({ nonce: "b" }));
  await ask(backend);
  await settle(ARMED);
  $("input[value=session]").click();
  flushSync();
  $("#block").click();
  await settle(1);
  expect(backend.calls).toEqual(["a block session call"]);
  expect(armed()).toBe(false);
  expect($("input[value=once]")).toHaveProperty("checked", true);
  await settle(ARMED);
  $("#allow").click();
  await settle(1);
  expect(backend.calls).toEqual(["a block session call", "b allow once call"]);
});

test("what was hidden is inert when it is seen again", async () => {
  const backend = new FakePrompt(question());
  await ask(backend);
  await settle(ARMED);
  expect(armed()).toBe(true);
  document.dispatchEvent(new Event("visibilitychange"));
  flushSync();
  expect(armed()).toBe(false);
  $("#allow").click();
  expect(backend.calls).toEqual([]);
});

test("a question that came up before anybody listened is not missed", async () => {
  const backend = new FakePrompt();
  let listens: ((stop: () => void) => void) | undefined;
  backend.onChanged = () => new Promise((done) => (listens = done));
  await ask(backend);
  expect(document.querySelector("#q")).toBeNull();
  backend.waiting.push(question());
  listens?.(() => undefined);
  await settle(1);
  expect($("#q").textContent).not.toBe("");
});

test("Esc is later", async () => {
  const backend = new FakePrompt(question());
  await ask(backend);
  window.dispatchEvent(new KeyboardEvent("keydown", { key: "Escape" }));
  await settle(1);
  expect(backend.calls).toEqual(["n1 later"]);
});

test("what is late is allowed once only", async () => {
  const backend = new FakePrompt(question({ held_until: Date.now() - 1 }));
  await ask(backend);
  expect(document.querySelector("input[name=time]")).toBeNull();
  expect($("#allow").textContent).toBe("Allow once");
  expect($(".late").textContent).toContain("You can still decide");
  await settle(ARMED);
  $("#allow").click();
  await settle(1);
  expect(backend.calls).toEqual(["n1 allow once call"]);
});

test("what an allow for longer is for is chosen, the narrowest first, and no more is offered than fits", async () => {
  const backend = new FakePrompt(question({ nonce: "a" }), question({ nonce: "b", exact: true, host: null }));
  await ask(backend);
  await settle(ARMED);
  expect(document.querySelector("input[name=scope]")).toBeNull();
  $("input[value=always]").click();
  flushSync();
  expect($("input[value=call]")).toHaveProperty("checked", true);
  $("input[value=tool]").click();
  flushSync();
  expect($("#then").textContent).toContain("calls of http_post to paste.example.net");
  $("#allow").click();
  await settle(ARMED + 1);
  $("input[value=always]").click();
  flushSync();
  expect(document.querySelector("input[name=scope]")).toBeNull();
  expect($(".scope").textContent).toContain("for the exact call only");
  $("#allow").click();
  await settle(1);
  expect(backend.calls).toEqual(["a allow always tool", "b allow always call"]);
});

test("several calls are one question, each can be looked at, and the server can be stopped", async () => {
  const call = (brief: string) => ({ asked: Date.now(), brief, bytes: 400 });
  const backend = new FakePrompt(question({ calls: [call("~/src/.env"), call("~/src/prod.toml"), call("~/src/seed.sql")] }));
  await ask(backend);
  expect($("#facts").textContent).toContain("3 calls");
  document.querySelectorAll<HTMLElement>(".calls button")[1]?.click();
  await settle(1);
  expect($(".args").textContent).toContain("all of it, call 1");
  expect($("#then").textContent).toContain("these 3 calls");
  await settle(ARMED);
  $("#block-stop").click();
  await settle(1);
  expect(backend.calls).toEqual(["n1 block once call stop"]);
});

const KINDS = { call: question, command, changed, servers: appeared };

test.each(Object.entries(KINDS).flatMap(([kind, make]) => ["Enter", " ", "Escape", "y", "a"].map((key) => [key, kind, make] as const)))("a stray %s never allows a %s", async (key, _kind, make) => {
  const backend = new FakePrompt(make());
  await ask(backend);
  const press = (): void => {
    for (const type of ["keydown", "keyup"]) (document.activeElement ?? document.body).dispatchEvent(new KeyboardEvent(type, { key, bubbles: true }));
  };
  press();
  await settle(ARMED + 1);
  if (key !== "Escape") press();
  await settle(1);
  expect(backend.calls).toEqual(key === "Escape" ? ["n1 later"] : []);
});

test.each(Object.entries(KINDS))("a %s has a title, reasons, a consequence and inert buttons without focus", async (_kind, make) => {
  const backend = new FakePrompt(make());
  await ask(backend);
  expect($("#q").textContent).toMatch(/\?$/u);
  expect(document.activeElement?.id).toBe("q");
  expect($("[role=alertdialog]").getAttribute("aria-describedby")).toBe("facts then");
  expect([...document.querySelectorAll("dt")].map((d) => d.textContent)).toEqual(expect.arrayContaining(["What", "Why"]));
  expect($("#then").textContent).not.toBe("");
  expect(armed()).toBe(false);
  $("#allow").click();
  expect(backend.calls).toEqual([]);
});

test("a command says what it does, who asks and how long it waits, and offers no scope", async () => {
  const backend = new FakePrompt(command({ nonce: "c", asked_by: ["firedoor (7)", "z⟨U+200B⟩sh (6)"] }));
  await ask(backend);
  expect($("#facts").textContent).toMatch(/granting more.*firedoor grants add.*firedoor \(7\).*zU\+200Bsh \(6\)/su);
  expect($("footer").textContent).toContain("Waiting 60 s");
  expect(document.querySelector(".scope")).toBeNull();
  await settle(ARMED);
  $("#block").click();
  await settle(1);
  expect(backend.calls).toEqual(["c block once call"]);
});

test("a changed tool is shown by field, and kept, stopped or accepted as it was shown", async () => {
  const backend = new FakePrompt(changed({ nonce: "a" }), changed({ nonce: "b" }), changed({ nonce: "c" }));
  await ask(backend);
  expect($(".diff .del").textContent).toContain("up to 20 results");
  expect($(".diff .add .cp").textContent).toBe("U+200B");
  expect($("footer").textContent).toContain("Nothing is waiting");
  expect(["#block", "#block-stop", "#allow"].map((id) => $(id).textContent)).toEqual(["Keep blocked", "Stop server", "Accept change"]);
  for (const id of ["#block", "#block-stop", "#allow"]) {
    await settle(ARMED);
    $(id).click();
    await settle(1);
  }
  expect(backend.calls).toEqual(["a block once call", "b block once call stop", "c allow once call"]);
});

/** The definition of the fake's question about a changed tool. */
function definition() {
  const [one] = (changed().matter as { definitions: ChangedView["definitions"] }).definitions;
  const change = one?.pin.change;
  if (!change) throw new Error("the fake has no change");
  return { ...one, pin: { ...one.pin, change } };
}

test("two tools whose names look the same are both shown under their own question", async () => {
  const one = definition();
  const field = (after: string) => ({ name: "description", before: "", after });
  const twin = (after: string) => ({ ...one, pin: { ...one.pin, change: { seen: "d", back: false, fields: [field(after), field(`${after} again`)] } } });
  await ask(new FakePrompt(question({ nonce: "a" }), changed({ nonce: "b", definitions: [twin("first"), twin("second")] })));
  await settle(ARMED);
  $("#block").click();
  await settle(ARMED + 1);
  expect([...document.querySelectorAll(".diff .add")].map((d) => d.textContent)).toEqual(["first", "first again", "second", "second again"]);
  expect($("#facts").textContent).not.toContain("<b>more</b>");
  expect($("#allow").textContent).toBe("Accept 2 changes");
  expect(armed()).toBe(true);
});

test("two servers and two files whose names look the same are both shown", async () => {
  const { servers, files } = appeared().matter as ServersView;
  await ask(new FakePrompt(appeared({ servers: [...servers, ...servers], files: [...files, ...files] })));
  expect(document.querySelectorAll(".args .k")).toHaveLength(2);
  $(".line2 button").click();
  flushSync();
  expect(document.querySelectorAll(".diff")).toHaveLength(2);
  await settle(ARMED);
  expect(armed()).toBe(true);
});

test("what cannot be shown cannot be allowed, and the next question is as any other", async () => {
  const one = definition();
  const broken = { ...one, pin: { ...one.pin, change: { seen: "d", back: false, fields: [null as never] } } };
  const unshown = (nonce: string) => changed({ nonce, definitions: [broken] });
  const backend = new FakePrompt(question({ nonce: "a" }), unshown("b"), unshown("c"), question({ nonce: "d" }));
  await ask(backend);
  await settle(ARMED);
  $("#block").click();
  await settle(ARMED + 1);
  expect($("#facts").textContent).toContain("could not be shown");
  expect($("#facts").textContent).not.toContain("more");
  expect(armed()).toBe(false);
  $("#allow").click();
  await settle(1);
  $("#block").click();
  await settle(ARMED + 1);
  window.dispatchEvent(new KeyboardEvent("keydown", { key: "Escape" }));
  await settle(ARMED + 1);
  expect($("#facts").textContent).toContain("<b>more</b>");
  expect(armed()).toBe(true);
  expect(backend.calls).toEqual(["a block once call", "b block once call", "c later"]);
});

test("what was changed back is said, and several definitions are one question", async () => {
  const one = definition();
  const back = { ...one, pin: { ...one.pin, name: "b", change: { ...one.pin.change, back: true, fields: [] } } };
  await ask(new FakePrompt(changed({ definitions: [one, back] })));
  expect($("#facts").textContent).toContain("2 definitions of");
  expect($("#facts").textContent).toContain("changed back");
  expect($("#allow").textContent).toBe("Accept 2 changes");
});

test("a new server shows what would change, and can be protected once or from now on", async () => {
  const backend = new FakePrompt(appeared({ nonce: "a" }), appeared({ nonce: "b" }));
  await ask(backend);
  expect($("#facts").textContent).toContain("npx -y linear-mcp");
  $(".line2 button").click();
  flushSync();
  expect($(".diff .add").textContent).toContain("firedoor-shim");
  await settle(ARMED);
  $("#allow").click();
  await settle(ARMED + 1);
  $("input[value=always]").click();
  flushSync();
  expect($("#then").textContent).toContain("without a question");
  $("#allow").click();
  await settle(1);
  expect(backend.calls).toEqual(["a allow once call", "b allow always call"]);
});

test("a server that cannot be protected can only be left, and says why", async () => {
  await ask(new FakePrompt(appeared({ files: [], left: ["linear: its command is an array"] })));
  expect(document.querySelector("#allow")).toBeNull();
  expect($("#facts").textContent).toContain("its command is an array");
});

test("the time that is left is said at 30 and at 10 seconds", async () => {
  await ask(new FakePrompt(question()));
  const said: string[] = [];
  for (let s = 0; s < 45; s++) {
    await settle(1000);
    const text = $("[aria-live]").textContent ?? "";
    if (text !== "" && said.at(-1) !== text) said.push(text);
  }
  expect(said).toEqual(["30 seconds until this is refused.", "10 seconds until this is refused."]);
});

test("a refused answer is said, and the question stays", async () => {
  await ask(new FakePrompt(question({ nonce: "refused" })));
  await settle(ARMED);
  $("#allow").click();
  await settle(1);
  expect($("[role=alert]").textContent).toContain("the engine says no");
  expect($("#q")).toBeTruthy();
});

test("evidence names both ends, and everything can be seen", async () => {
  await ask(new FakePrompt(question()));
  $(".line2 button").click();
  flushSync();
  expect($(".evidence").textContent).toMatch(/From\s+files\s+read_file\s+40 s before/u);
  expect($(".evidence").textContent).toMatch(/To\s+notion\s+http_post\s+written as base64/u);
  $(".more button").click();
  await settle(1);
  expect($(".args").textContent).toContain("all of it, call 0");
});

test("the first run shows each change before it is made, and what became of it", async () => {
  const backend = new FakeMain();
  open = mount(Main, { target: document.body, props: { backend } });
  await settle(1);
  expect($("main h1").textContent).toBe("Found 2 servers in 1 app");
  expect($(".diff .add").textContent).toContain("firedoor-shim");
  expect(backend.carried).toEqual([]);
  $("#carry-out").click();
  await settle(1);
  expect(backend.carried).toEqual([[0]]);
  // One with an address has nothing to be compared with, and is as good.
  expect($("main h1").textContent).toBe("2 of 3 servers answer through Firedoor");
  expect($("#checked").textContent).toContain("tool x is missing");
  expect($("#checked").textContent).toMatch(/far\s*Cursor\s*Protected\s*3 tools, through Firedoor only/u);
});

test("the tray asks for a pause, and a click at the moment it appears does not begin one", async () => {
  const backend = new FakeMain();
  backend.wanted = { at: "pause" };
  open = mount(Main, { target: document.body, props: { backend } });
  await settle(1);
  $("#pause-now").click();
  expect(backend.done).toEqual([]);
  await settle(ARMED);
  $("#pause-now").click();
  await settle(1);
  expect(backend.done).toEqual(["pause 15"]);
  expect(document.querySelector("#pausing")).toBeNull();
});

test("a pause says when it ends, and ends on a click", async () => {
  const backend = new FakeMain();
  backend.wanted = { at: "pause" };
  backend.pausedUntil = new Date(2026, 10, 21, 14, 5).getTime();
  open = mount(Main, { target: document.body, props: { backend } });
  await settle(1);
  expect($(".state h1").textContent).toBe("Paused until 14:05");
  $("#resume").click();
  await settle(1);
  expect(backend.done).toEqual(["resume"]);
});

test("one client is protected or given back from the tray, and nothing before it was shown", async () => {
  const backend = new FakeMain();
  const planned: unknown[] = [];
  const plan = backend.plan;
  backend.plan = (action, entries) => {
    planned.push([action, entries]);
    return plan(action, entries);
  };
  backend.wanted = { at: "restore", app: "cursor" };
  open = mount(Main, { target: document.body, props: { backend } });
  await settle(1);
  expect(planned).toContainEqual(["restore", ["cursor"]]);
  expect(backend.carried).toEqual([]);
});

test("what another program protects or gives back is shown while the window is open, and files are read once for many news", async () => {
  const backend = new FakeMain();
  let tell = (): void => undefined;
  backend.onChanged = (look) => {
    tell = look;
    return Promise.resolve(() => undefined);
  };
  const found = await backend.servers();
  let state: "protected" | "unprotected" = "protected";
  let reads = 0;
  backend.servers = () => {
    reads += 1;
    return Promise.resolve(found.map((c) => ({ ...c, files: c.files.map((f) => ({ ...f, entries: f.entries.map((e, at) => ({ ...e, state: at === 0 ? "protected" : state })) })) })));
  };
  open = mount(Main, { target: document.body, props: { backend } });
  await settle(1);
  const cells = (): string[] => [...document.querySelectorAll("#servers td")].map((d) => d.textContent?.trim() ?? "");
  expect([reads, cells()]).toEqual([1, ["Protected", "Protected"]]);
  state = "unprotected";
  for (let n = 0; n < 16; n++) {
    tell();
    await settle(250);
  }
  await settle(2000);
  expect(cells()).toEqual(["Protected", "Not protected"]);
  expect(reads).toBeLessThan(5);
  state = "protected";
  tell();
  await settle(2001);
  expect(cells()).toEqual(["Protected", "Protected"]);
});

test("a refused file's folder is granted by its row, and taken back", async () => {
  const backend = new FakeMain();
  const row = (seq: number, folder: string | null): RowView => ({
    seq,
    at: Date.now(),
    app: "Cursor",
    server: "files",
    process: null,
    pid: null,
    client: "cursor",
    what: { kind: "judged", method: "read", subject: "~/notes/a.md", verdict: "block", reference: null, rule: null, findings: [] },
    folder,
  });
  backend.rows = [row(8, null), row(7, "/home/u/notes")];
  open = mount(Activity, { target: document.body, props: { backend, clients: [], news: 0, now: Date.now() } });
  await settle(1);
  const press = async (name: string): Promise<void> => {
    [...document.querySelectorAll("button")].find((b) => b.textContent === name)?.click();
    await settle(1);
  };
  const [without, offered] = [...document.querySelectorAll<HTMLElement>("tbody tr")];
  without?.click();
  await settle(1);
  expect(document.querySelector("[aria-label='Allow this folder']")).toBeNull();
  offered?.click();
  await settle(1);
  expect($("[aria-label='Allow this folder']").textContent).toContain("/home/u/notes");
  await press("Allow reading");
  expect($("aside [role=status]").textContent).toContain("restart");
  await press("Take it back");
  await press("Allow reading and writing");
  expect(backend.granted).toEqual(["7 ro", "7 closed", "7 rw"]);
});
