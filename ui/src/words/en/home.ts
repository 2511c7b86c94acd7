// English: calls on Home.
import type { Way } from "../counts";
import { count } from "../time";

export const home = {
  calls: "Calls",
  range: "Time",
  last: (days: number): string => (days === 1 ? "Last 24 hours" : `Last ${days} days`),
  show: "Show activity",
  server: "Server",
  number: "Calls",
  share: "Share",
  blocked: "Blocked",
  ways: { allowed: "passed", recorded: "let through and noted", asked: "asked", blocked: "blocked" } satisfies Record<Way, string>,
  sum: (n: Record<Way, number>): string =>
    `${count(n.allowed, "call")} passed, ${n.recorded} more ${n.recorded === 1 ? "was" : "were"} let through and noted, ${n.asked} asked, ${n.blocked} blocked.`,
  plot: (n: Record<Way, number>): string => `Calls over time: ${home.sum(n)}`,
};
