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
  quieted: (server: string): string =>
    `${server} is not asked about any more in this session, because its questions were left unanswered: what would be asked about is blocked. Answering one of its questions, or restarting the app, changes that.`,
  pause: "Pause…",
  resume: "Ask again now",
  pausedUntil: (end: string): string => `Paused until ${end}`,
  paused: "Nothing is asked until then: what would be asked about is let through and noted. What is certain and critical is blocked, and the sandbox stays as it is.",
  pauseTitle: "Ask nothing for a while?",
  pauseText:
    "What Firedoor would ask about is let through and noted in Activity. What is certain and critical is still blocked, tools that have changed stay blocked, and the sandbox stays as it is.",
  pauseFor: "For",
  minutes: (n: number): string => count(n, "minute"),
  pauseNow: "Pause",
  notNow: "Not now",
  plot: (n: Record<Way, number>): string => `Calls over time: ${home.sum(n)}`,
};
