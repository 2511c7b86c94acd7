// Calls counted, for plots.
import type { CountsView, OutcomeView } from "../bindings";

export const WAYS = ["allowed", "recorded", "asked", "blocked"] as const;
export type Way = (typeof WAYS)[number];

export interface Bar {
  at: number;
  calls: Record<Way, number>;
}

const nothing = (): Record<Way, number> => ({ allowed: 0, recorded: 0, asked: 0, blocked: 0 });
const way = (outcome: OutcomeView): Way => WAYS.find((w) => w === outcome) ?? "recorded";

/** One bar for each span, also where nothing happened. */
export function bars(view: CountsView, now: number): Bar[] {
  const all: Bar[] = [];
  for (let at = view.since; at <= now && all.length < 200; at += view.step) all.push({ at, calls: nothing() });
  for (const c of view.counts) {
    const bar = all[Math.floor((c.at - view.since) / view.step)];
    if (bar) bar.calls[way(c.outcome)] += c.calls;
  }
  return all;
}

/** Servers by calls, the busiest first. */
export function busiest(view: CountsView, most: number): { name: string; calls: number; blocked: number }[] {
  const by = new Map<string, { name: string; calls: number; blocked: number }>();
  for (const c of view.counts) {
    const one = by.get(c.server) ?? { name: c.server, calls: 0, blocked: 0 };
    one.calls += c.calls;
    if (c.outcome === "blocked") one.blocked += c.calls;
    by.set(c.server, one);
  }
  return [...by.values()].sort((a, b) => b.calls - a.calls).slice(0, most);
}

export function total(view: CountsView): Record<Way, number> {
  const sum = nothing();
  for (const c of view.counts) sum[way(c.outcome)] += c.calls;
  return sum;
}
