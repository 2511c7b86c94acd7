// The grid of Home.
import type { FoundClientView, FoundEntryView, OverviewView, StateView } from "../bindings";
import { count, minute } from "./time";
import { home as t } from "./en/home";

export interface Cell {
  app: string;
  path: string;
  entry: FoundEntryView;
}

export interface Grid {
  apps: string[];
  rows: { server: string; cells: Cell[][] }[];
}

/** Servers by name, clients beside each other; a server may stand in several files of one client. */
export function grid(clients: FoundClientView[]): Grid {
  const found = clients.filter((c) => c.files.some((f) => f.entries.length > 0));
  const all = found.flatMap((c) => c.files.flatMap((f) => f.entries.map((entry) => ({ app: c.name, path: f.path, entry }))));
  const names = [...new Set(all.map((cell) => cell.entry.server))].sort((a, b) => a.localeCompare(b));
  const apps = found.map((c) => c.name);
  const rows = names.map((server) => ({
    server,
    cells: apps.map((app) => all.filter((cell) => cell.app === app && cell.entry.server === server)),
  }));
  return { apps, rows };
}

export interface Count {
  servers: number;
  apps: number;
  protected: number;
  open: number;
}

export function counted(clients: FoundClientView[]): Count {
  const apps = clients.map((c) => c.files.flatMap((f) => f.entries)).filter((entries) => entries.length > 0);
  const all = apps.flat();
  return {
    servers: all.length,
    apps: apps.length,
    protected: all.filter((e) => e.state === "protected").length,
    open: all.filter((e) => e.can_protect).length,
  };
}

export const STATES: Record<StateView, { word: string; tone: string; icon: string }> = {
  protected: { word: "Protected", tone: "ok", icon: "s-ok" },
  unprotected: { word: "Not protected", tone: "warn", icon: "s-medium" },
  misrouted: { word: "Misrouted", tone: "bad", icon: "s-critical" },
  not_yet: { word: "Left alone", tone: "none", icon: "s-none" },
  wrapped_by_other: { word: "Behind another tool", tone: "none", icon: "s-none" },
};

/** The door of the state, and two sentences. */
export function standing(o: OverviewView, n: Count): { door: string; title: string; text: string } {
  const { engine } = o;
  if (engine.state === "starting") return { door: "d-off", title: "Starting", text: "The engine is being started." };
  if (engine.state === "down") {
    const text = `Protected servers do not start while this lasts. ${engine.reason}`;
    return { door: "d-off", title: "The engine does not run", text };
  }
  const rest = n.servers - n.protected;
  const all =
    rest === 0
      ? `All ${count(n.servers, "server")} in ${count(n.apps, "app")} run through Firedoor.`
      : `${n.protected} of ${count(n.servers, "server")} in ${count(n.apps, "app")} run through Firedoor.`;
  if (o.questions.length > 0) {
    const title = o.questions.length === 1 ? "One question waits" : `${o.questions.length} questions wait`;
    return { door: "d-question", title, text: all };
  }
  if (engine.paused_until !== null) return { door: "d-paused", title: t.pausedUntil(minute(engine.paused_until)), text: t.paused };
  if (engine.problems.length > 0) return { door: "d-degraded", title: "On, with a problem", text: all };
  if (n.protected === 0) {
    const text = n.servers === 0 ? "No app has a server." : "Every server runs as its app starts it.";
    return { door: "d-off", title: "Nothing is protected", text };
  }
  if (rest > 0) return { door: "d-degraded", title: `${n.protected} of ${n.servers} protected`, text: all };
  return { door: "d-protected", title: "Protected", text: all };
}
