// The view of servers with a fake backend.
import { flushSync, mount, unmount } from "svelte";
import { afterEach, expect, test, vi } from "vitest";
import { FakeMain, serverView } from "../backend/fake";
import type { SessionView } from "../bindings";
import Servers from "./Servers.svelte";

let open: ReturnType<typeof mount> | undefined;
afterEach(async () => {
  if (open) await unmount(open);
  open = undefined;
});

const settle = async (): Promise<void> => {
  await vi.waitFor(() => flushSync());
  await new Promise((done) => setTimeout(done, 0));
  flushSync();
};
const text = (css: string): string => document.querySelector(css)?.textContent ?? "";
const press = async (name: string): Promise<void> => {
  const button = [...document.querySelectorAll("button")].find((b) => b.textContent?.trim() === name || b.getAttribute("aria-label") === name);
  if (!button) throw new Error(`there is no button ${name}`);
  button.click();
  await settle();
};

const session: SessionView = {
  entry: "cursor/user/files",
  app: "Cursor",
  server: "files",
  client: "cursor (7)",
  level: "full: all is confined",
  profile: "default",
  pid: 9,
  since: 1,
  calls: 3,
};

async function show(backend: FakeMain, sessions = [session], state: "protected" | "unprotected" = "protected"): Promise<void> {
  const clients = await backend.servers();
  for (const c of clients) for (const f of c.files) for (const e of f.entries) Object.assign(e, { state, can_protect: state !== "protected" });
  open = mount(Servers, {
    target: document.body,
    props: { backend, clients, sessions, news: 0, now: Date.now(), wanted: null, onScan: () => undefined, onProtect: () => undefined },
  });
  await settle();
}

test("what is in force is shown, and what was granted can be taken back", async () => {
  const backend = new FakeMain();
  await show(backend);
  expect(text(".reach")).toContain("api.github.com:443");
  expect(text(".reach")).toContain("3 variables not passed on");
  await press("Remove the grant *.githubusercontent.com:443");
  await press("Stop server");
  expect(backend.done).toEqual(["revoke cursor/user/files host *.githubusercontent.com:443", "stop cursor/user/files"]);
});

test("a change is accepted as it was shown, or stays blocked", async () => {
  const backend = new FakeMain();
  await show(backend);
  expect(text(".changed .add")).toContain("title, body and assignees.");
  expect(text(".changed ins")).toContain("title,");
  await press("Keep blocked");
  expect(text(".changed")).toContain("stays blocked");
  expect(backend.done).toEqual([]);
  await press("Show the change");
  await press("Accept change");
  expect(backend.done).toEqual(["accept cursor/user/files d1"]);
});

test("tools whose names look the same are kept and accepted each by itself", async () => {
  const backend = new FakeMain();
  const twin = (seen: string, after: string) => ({ kind: "tool", name: "same", first_seen: 0, change: { seen, back: false, fields: [{ name: "x", before: "", after }, { name: "x", before: "", after }] } });
  const steady = { kind: "tool", name: "same", first_seen: 0, change: null };
  backend.view = serverView({ pins: [twin("d1", "first"), twin("d2", "second"), steady, steady] });
  await show(backend);
  expect([...document.querySelectorAll(".changed .add")].map((d) => d.textContent)).toEqual(["first", "first", "second", "second"]);
  await press("Keep blocked");
  expect([...document.querySelectorAll(".changed .add")].map((d) => d.textContent)).toEqual(["second", "second"]);
  await press("Accept change");
  expect(backend.done).toEqual(["accept cursor/user/files d2"]);
});

test("what the engine refuses is said, and what was typed stays", async () => {
  const backend = new FakeMain();
  await show(backend);
  const input = document.querySelector<HTMLInputElement>("form.add input")!;
  input.value = "~/notes";
  input.dispatchEvent(new Event("input"));
  backend.refusal = "granting more is refused to this process";
  document.querySelector("form.add")!.dispatchEvent(new SubmitEvent("submit", { cancelable: true }));
  await settle();
  expect(text("[role=alert]")).toContain("refused to this process");
  expect(input.value).toBe("~/notes");
  backend.refusal = null;
  document.querySelector("form.add")!.dispatchEvent(new SubmitEvent("submit", { cancelable: true }));
  await settle();
  expect(backend.done).toEqual(["grant cursor/user/files read ~/notes"]);
  expect(document.querySelector("[role=alert]")).toBeNull();
});

test("an unprotected server promises nothing", async () => {
  await show(new FakeMain(), [], "unprotected");
  expect(text(".pane")).toContain("nothing of the below holds");
  expect(document.querySelector(".reach")).toBeNull();
});

test("a restart that is needed is said; without a start nothing is made up", async () => {
  const backend = new FakeMain();
  backend.view = serverView({ restart: true, start: null, pins: [], grants: [] });
  await show(backend, []);
  expect(text(".pane")).toContain("Restart needed");
  expect(text(".pane")).toContain("has not been started");
  expect(document.querySelector(".reach")).toBeNull();
});

test("the page of a login is named by its host before the browser opens, and the user may stay", async () => {
  const backend = new FakeMain();
  backend.view = serverView({ sign_in: { wanted: Date.now() } });
  await show(backend);
  expect(text("#sign-in")).toContain("Its server wanted a login");
  await press("Log in…");
  expect(text("#visit")).toContain("Open your browser at accounts.example.com?");
  expect(text("#visit")).toContain("https://accounts.example.com/authorize?client_id=firedoor");
  expect(backend.done).toEqual(["sign in cursor/user/files"]);
  await press("Do not open");
  expect(text("#sign-in")).toContain("the page was not opened");
  await press("Log in…");
  await press("Open browser");
  expect(backend.done.at(-1)).toBe("visit v1 yes");
  expect(text("#sign-in")).toContain("Logged in.");
});

test("a server without an address offers no login", async () => {
  await show(new FakeMain());
  expect(document.querySelector("#sign-in")).toBeNull();
});
