// Rules, settings and activity with a fake backend.
import { flushSync, mount, unmount } from "svelte";
import { afterEach, expect, test } from "vitest";
import { FakeMain } from "../backend/fake";
import type { RowView, RuleView } from "../bindings";
import Activity from "./Activity.svelte";
import Rules from "./Rules.svelte";
import Settings from "./Settings.svelte";
import { ARM_MS } from "../words/arming";

let open: ReturnType<typeof mount> | undefined;
afterEach(async () => {
  if (open) await unmount(open);
  open = undefined;
});

const settle = async (): Promise<void> => {
  for (let n = 0; n < 3; n++) {
    flushSync();
    await new Promise((done) => setTimeout(done, 0));
  }
  flushSync();
};
const text = (css: string): string => document.querySelector(css)?.textContent ?? "";
const press = async (name: string): Promise<void> => {
  const all = [...document.querySelectorAll<HTMLElement>("button")];
  const button = all.find((b) => b.textContent?.trim() === name || b.getAttribute("aria-label") === name);
  if (!button) throw new Error(`there is no button ${name} among ${all.map((b) => b.textContent).join(", ")}`);
  button.click();
  await settle();
};

const rule = (over: Partial<RuleView>): RuleView => ({
  id: 1, effect: "allow", app: "Cursor", server: "files", client: null, tool: "read_file", detector: null, exact: false, address: null,
  bound: true, origin: "answer", created: 1, expires: null, hits: 3, last: 2, ...over,
});

test("a rule is removed and put back, a managed one is not", async () => {
  const backend = new FakeMain();
  backend.ruled = { rules: [rule({}), rule({ id: -1, effect: "block", origin: "managed", server: null, app: null })], suggestions: [], questions: 0 };
  open = mount(Rules, { target: document.body, props: { backend, clients: [], news: 0, now: 1 } });
  await settle();
  expect([...document.querySelectorAll("table button")]).toHaveLength(1);
  await press("Remove: Allow read_file of files");
  await press("Undo");
  expect(backend.done).toEqual(["remove rule 1", "restore rule 1"]);
});

test("suggestions are looked at before they are taken", async () => {
  const backend = new FakeMain();
  backend.ruled = { rules: [], suggestions: [{ id: "d9", rule: rule({ origin: "suggestion" }), questions: 4 }], questions: 6 };
  open = mount(Rules, { target: document.body, props: { backend, clients: [], news: 0, now: 1 } });
  await settle();
  expect(text(".box")).toContain("1 rule would have answered 4 of your 6 questions");
  await press("Review 1 rule");
  await press("Add rule");
  expect(backend.done).toEqual(["suggestion d9"]);
});

test("secrets are looked up on a click, and one is removed only after a moment and a word", async () => {
  const backend = new FakeMain();
  open = mount(Settings, { target: document.body, props: { backend, clients: [], news: 0, now: 1, onRestore: () => undefined } });
  await settle();
  expect(document.querySelector("#secrets")).toBeNull();
  await press("Show secrets");
  expect(text("#secrets")).toContain("missing");
  expect(text("#secrets")).toContain("(broker mode, put in only for https://api.github.com)");
  expect([...document.querySelectorAll("#secrets tbody button")]).toHaveLength(2);
  await press("Remove GITHUB_TOKEN of Cursor › github");
  expect(text("#removing")).toContain("1 server will not start without it");
  await press("Remove");
  expect(backend.done).toEqual([]);
  await new Promise((done) => setTimeout(done, ARM_MS + 50));
  await press("Remove");
  expect(backend.done).toEqual(["remove secret cursor/user/github/GITHUB_TOKEN"]);
  expect(text("#secrets")).not.toContain("GITHUB_TOKEN");
  backend.refusal = "the engine says no";
  await press("Remove API_KEY of Cursor › old");
  await new Promise((done) => setTimeout(done, ARM_MS + 50));
  await press("Remove");
  expect(text("[role=alert]")).toContain("the engine says no");
  expect(text("#secrets")).toContain("API_KEY");
});

test("starting with the login is a choice, and what could not be changed shows as it is", async () => {
  const backend = new FakeMain();
  open = mount(Settings, { target: document.body, props: { backend, clients: [], news: 0, now: 1, onRestore: () => undefined } });
  await settle();
  const box = (): HTMLInputElement => document.querySelector<HTMLInputElement>("#login") as HTMLInputElement;
  expect(box().checked).toBe(true);
  box().click();
  await settle();
  backend.refusal = "the folder cannot be written";
  box().click();
  await settle();
  expect(backend.done).toEqual(["login off"]);
  expect(box().checked).toBe(false);
  expect(text("[role=alert]")).toContain("cannot be written");
});

test("a setting that is refused is not shown as set", async () => {
  const backend = new FakeMain();
  backend.refusal = "switching to mode watch is refused to this process";
  open = mount(Settings, { target: document.body, props: { backend, clients: await backend.servers(), news: 0, now: 1, onRestore: () => undefined } });
  await settle();
  const radio = (value: string): HTMLInputElement => document.querySelector(`input[value=${value}]`)!;
  radio("watch").click();
  await settle();
  expect(text("[role=alert]")).toContain("refused");
  expect([radio("watch").checked, radio("balanced").checked]).toEqual([false, true]);
  backend.refusal = null;
  radio("strict").click();
  await settle();
  expect(backend.done).toEqual(["mode strict"]);
  expect(radio("strict").checked).toBe(true);
  await press("Verify the log");
  expect(document.body.textContent).toContain("Unbroken: 4127 rows checked.");
});

const call = (seq: number): RowView => ({
  seq, at: 1000 + seq, app: "Cursor", server: "files", process: "node (7)", pid: 7, client: "cursor", folder: null,
  what: { kind: "judged", method: "tools/call", subject: `tool_${seq}`, verdict: "ask", reference: null, rule: null, findings: [{ detector: "flow/secret", severity: "high", confidence: "certain", summary: "s", remedy: null, evidence: [] }] },
});

test("of many rows few are drawn, and the next piece is asked for at the end", async () => {
  const backend = new FakeMain();
  backend.rows = Array.from({ length: 5000 }, (_, n) => call(5000 - n));
  open = mount(Activity, { target: document.body, props: { backend, clients: [], news: 0, now: 1 } });
  await settle();
  expect(document.querySelectorAll("tbody tr[aria-rowindex]").length).toBeLessThan(60);
  expect(text("tbody")).toContain("tool_5000");
  const list = document.querySelector<HTMLElement>(".list")!;
  list.scrollTop = 290 * 30;
  list.dispatchEvent(new Event("scroll"));
  await settle();
  expect(text("tbody")).toContain("tool_4710");
});

test("a row becomes a rule, and what is refused is said", async () => {
  const backend = new FakeMain();
  backend.rows = [call(9)];
  open = mount(Activity, { target: document.body, props: { backend, clients: [], news: 0, now: 1 } });
  await settle();
  document.querySelector<HTMLElement>("tbody tr[aria-rowindex]")!.click();
  await settle();
  await press("Mark as wrong");
  backend.refusal = "no";
  await press("Always block this tool");
  expect(backend.done).toEqual(["rule from 9 allow"]);
  expect(text("[role=alert]")).toContain("no");
});

test("an empty log is asked for once, not again and again", async () => {
  const backend = new FakeMain();
  let asked = 0;
  const { log } = backend;
  backend.log = (query) => ((asked += 1), log(query));
  open = mount(Activity, { target: document.body, props: { backend, clients: [], news: 0, now: 1 } });
  for (let n = 0; n < 5; n++) await settle();
  expect([asked, text("h1:not([id])")]).toEqual([1, "Nothing yet"]);
});
