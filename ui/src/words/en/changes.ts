// English: protecting and restoring.
import type { ActionView, ResultView } from "../../bindings";
import { count } from "../time";

export const changes = {
  title: { protect: "Protect servers", restore: "Restore servers" } satisfies Record<ActionView, string>,
  steps: { look: "1. Look", work: "2. Protect and check", done: "3. Restart apps" },
  restore: "Restore",
  notNow: "Not now",
  nothing: { protect: "Nothing to protect", restore: "Nothing to restore" } satisfies Record<ActionView, string>,
  servers: (n: number): string => count(n, "server"),
  found: (servers: number, apps: number): string => `Found ${count(servers, "server")} in ${count(apps, "app")}`,
  foundText: "Nothing has been changed. This is what would change in each file. The originals are saved first; one click brings them back.",
  give: (servers: number, apps: number): string => `Give ${count(servers, "server")} back to ${count(apps, "app")}`,
  giveText: "From then on each app starts its servers itself, without Firedoor. This is what would change in each file.",
  changesIn: (path: string): string => `Changes in ${path}`,
  rest: "Everything else in the file stays as it is, to the byte.",
  then: {
    protect: "Each server must then answer the same through Firedoor, or its entry goes back by itself.",
    restore: "Apps that run keep the servers they started until they are restarted.",
  } satisfies Record<ActionView, string>,
  back: "Back",
  carryOut: (action: ActionView, n: number, total: number): string =>
    `${action === "protect" ? "Protect" : "Restore"}${n === total ? " all" : ""} ${n}`,
  restored: (failed: number): string => (failed === 0 ? "Everything is given back" : `${count(failed, "file")} could not be changed`),
  checking: (done: number, of: number): string => `Checking, ${done} of ${of} done`,
  checkingText:
    "Each server is started as its app would start it, once directly and once through Firedoor. One with an address is asked through Firedoor only.",
  now: "Now",
  install: "; a first start may install it.",
  checked: (good: number, of: number): string => `${good} of ${count(of, "server")} ${good === 1 ? "answers" : "answer"} through Firedoor`,
  checkedText: "What did not answer alike was put back; what could not be compared stays protected.",
  app: "App",
  server: "Server",
  result: "Result",
  seen: "What was seen",
  results: { same: "Protected", answers: "Protected", unverified: "Unverified", rolled_back: "Put back", stuck: "Differs" } satisfies Record<ResultView, string>,
  tools: (n: number, compared: boolean): string => (compared ? `${count(n, "tool")}, the same` : `${count(n, "tool")}, through Firedoor only`),
  given: (n: number, original: boolean): string =>
    `${count(n, "server")} given back${original ? ", byte for byte as it was before Firedoor" : ""}`,
  restart: (apps: string[]): string => `Restart ${apps.join(" and ")}`,
  restartText: "to use the new entries.",
  done: "Done",
};
