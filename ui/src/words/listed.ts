// The list of servers: what is configured and what runs, in one.
import type { FoundClientView, FoundEntryView, SessionView, StateView } from "../bindings";

export interface Listed {
  entry: string;
  server: string;
  app: string;
  scope: string;
  command: string | null;
  state: StateView | null;
  reason: string | null;
  warnings: string[];
  secrets: string[];
  can_protect: boolean;
  can_restore: boolean;
  sessions: SessionView[];
}

/** Every entry once, by name; those that run without standing in a file that was found (a project's) too. */
export function listed(clients: FoundClientView[], sessions: SessionView[]): Listed[] {
  const of = (entry: string): SessionView[] => sessions.filter((s) => s.entry === entry);
  const found = clients.flatMap((c) =>
    c.files.flatMap((f) =>
      f.entries.map(
        (e: FoundEntryView): Listed => ({ ...e, app: c.name, sessions: of(e.entry) }),
      ),
    ),
  );
  const known = new Set(found.map((e) => e.entry));
  const others = new Map(sessions.filter((s) => !known.has(s.entry)).map((s) => [s.entry, s]));
  const running = [...others.values()].map(
    (s): Listed => ({
      entry: s.entry,
      server: s.server,
      app: s.app,
      scope: "",
      command: null,
      state: null,
      reason: null,
      warnings: [],
      secrets: [],
      can_protect: false,
      can_restore: false,
      sessions: of(s.entry),
    }),
  );
  return [...found, ...running].sort((a, b) => a.server.localeCompare(b.server) || a.app.localeCompare(b.app));
}

/** The level's name in the engine's sentence about it, such as `full: …`. */
export function level(session: SessionView): string {
  const [word = "", rest] = session.level.split(": ", 2);
  return rest === undefined ? session.level : word.charAt(0).toUpperCase() + word.slice(1);
}

/** A key for each text: the same text again, as hidden characters or a server can make it, gets another one. */
export function distinct(texts: string[]): string[] {
  const seen = new Map<string, number>();
  return texts.map((text) => {
    const n = seen.get(text) ?? 0;
    seen.set(text, n + 1);
    return `${n} ${text}`;
  });
}
