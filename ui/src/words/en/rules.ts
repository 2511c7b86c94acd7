// English: the view of rules.
import type { OriginView, RuleView } from "../../bindings";
import { count } from "../time";

export const rules = {
  title: "Rules",
  search: "Search rules",
  loading: "Reading the rules …",
  emptyTitle: "No rules of your own",
  empty:
    "You need none to start. A rule is made when you answer a question with “always”, when you mark a finding as wrong in Activity, or here.",
  nothingMatches: "No rule matches.",
  note: "A block always wins over an allow. An allow that came from an answer, a suggestion or Activity holds only while the server stays as it is.",
  columns: ["Rule", "For", "From", "Last used", "Hits", "Expires"] as const,
  undoColumn: "Remove",
  own: "Rules",
  wrong: "Marked as wrong",
  managed: "Set by an administrator",
  remove: "Remove",
  removeLabel: (sentence: string): string => `Remove: ${sentence}`,
  removed: (sentence: string): string => `Removed: ${sentence}`,
  putBack: "Undo",
  allApps: "all apps",
  never: "never",
  suggestion: "Suggestion",
  suggested: (n: number, would: number, of: number): string =>
    `${count(n, "rule")} would have answered ${would} of your ${count(of, "question")}.`,
  review: (n: number): string => `Review ${count(n, "rule")}`,
  hide: "Hide",
  answered: (n: number): string => `would have answered ${count(n, "question")}`,
  take: "Add rule",
  add: "New rule…",
  addTitle: "New rule",
  effect: "What it does",
  block: "Block",
  allow: "Allow",
  server: "Server",
  anyServer: "every server",
  tool: "Tool",
  anyTool: "every tool",
  detector: "When this is found",
  anyDetector: "whatever is found",
  time: "For",
  always: "always",
  days: (n: number): string => count(n, "day"),
  save: "Add rule",
  cancel: "Cancel",
};

export const ORIGINS: Record<OriginView, string> = {
  user: "You",
  answer: "A question",
  log: "Activity",
  suggestion: "A suggestion",
  managed: "Administrator",
};

/** Detectors that a rule can name, and what they find. */
export const DETECTORS: [string, string][] = [
  ["flow/", "data that goes from one tool to another"],
  ["flow/secret", "a credential on its way out"],
  ["flow/private", "private text on its way out"],
  ["call/", "something in a call"],
  ["result/", "something in a result"],
  ["definition/", "something in a definition"],
  ["sandbox/host", "a host that nobody granted"],
];

/** The words between a rule's parts; what is in quotes here is somebody else's text and is shown apart. */
export function sentence(rule: RuleView): string {
  const tool = rule.exact ? `one exact call${rule.tool === null ? "" : ` of ${rule.tool}`}` : (rule.tool ?? rules.anyTool);
  const parts = [rule.effect === "allow" ? rules.allow : rules.block, tool, `of ${rule.server ?? rules.anyServer}`];
  if (rule.address !== null) parts.push(`to ${rule.address}`);
  if (rule.detector !== null) parts.push(`when ${rule.detector} is found`);
  if (rule.client !== null) parts.push(`for ${rule.client}`);
  return parts.join(" ");
}
