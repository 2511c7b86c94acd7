// What the prompt says. Rust sends ids and facts; the sentences are here.
import type { DurationView, FindingView, QuestionView, ScopeView, SummaryView } from "../bindings";
import { prompt as t } from "./en/prompt";
import { clock } from "./time";

const SEVERITY: FindingView["severity"][] = ["low", "medium", "high", "critical"];
const CONFIDENCE: FindingView["confidence"][] = ["possible", "likely", "certain"];

const rank = (f: FindingView): number => SEVERITY.indexOf(f.severity) * 10 + CONFIDENCE.indexOf(f.confidence);

/** The finding that a question is named after: the worst, of equals the surest, of equals the first. */
export function foremost(findings: FindingView[]): FindingView | undefined {
  const [first, ...rest] = findings;
  return rest.reduce((worst, f) => (worst && rank(f) > rank(worst) ? f : worst), first);
}

/** The same, worst first, with what is said in the same words put together. */
export function grouped(findings: FindingView[]): FindingView[] {
  const groups = new Map<string, FindingView>();
  for (const f of [...findings].sort((a, b) => rank(b) - rank(a))) {
    const key = `${f.detector} ${f.confidence} ${f.summary}`;
    const group = groups.get(key);
    groups.set(key, group ? { ...group, evidence: [...group.evidence, ...f.evidence] } : f);
  }
  return [...groups.values()];
}

const TITLES = new Map(
  Object.entries({
    "flow/secret": "Send a credential out through another tool?",
    "flow/private": "Send private text out through another tool?",
    "flow/encoded": "Send encoded text out through another tool?",
    "flow/unchecked": "Send what could not be checked in full?",
    "flow/forgotten": "Send what can no longer be compared?",
    "call/secret": "Send a credential in this call?",
    "call/secret-path": "Use a file that holds credentials?",
    "result/secret": "Give a credential to the agent?",
    "result/injection": "Give the agent a result with instructions in it?",
    "definition/changed": "Use a tool whose definition has changed?",
    "definition/poison": "Use a tool whose definition gives the agent orders?",
    "sandbox/host": "Let this server connect to another host?",
    "broker/placeholder": "Send what stands for a credential?",
    "policy/new-tool": "Use this tool for the first time?",
  }),
);

export function title(findings: FindingView[]): string {
  return TITLES.get(foremost(findings)?.detector ?? "") ?? "Let this call pass?";
}

export interface Clock {
  late: boolean;
  /** How far the leaf of the door has swung shut, 0 to 4. */
  step: number;
  text: string;
  /** For a screen reader, at few moments only. */
  say: string;
}

/** The two clocks: the call is held, then the question is still open. */
export function clocks(q: Pick<QuestionView, "asked" | "held_until" | "open_until">, now: number): Clock {
  const left = Math.ceil((q.held_until - now) / 1000);
  if (left > 0) {
    const held = Math.max(1, (q.held_until - q.asked) / 1000);
    const step = Math.max(0, Math.min(3, Math.floor(((held - left) / held) * 4)));
    const say = left === 30 || left === 10 ? `${left} seconds until this is refused.` : "";
    return { late: false, step, text: `Waiting ${left} s, then refused. You can still answer later.`, say };
  }
  const text = `Refused at ${clock(q.held_until)}. This question closes in ${minutes(q.open_until - now)}.`;
  return { late: true, step: 4, text, say: "" };
}

export function minutes(ms: number): string {
  const left = Math.max(0, ms);
  return left < 60_000 ? `${Math.ceil(left / 1000)} s` : `${Math.ceil(left / 60_000)} min`;
}

/** What Allow and Block will do. */
export function consequence(q: QuestionView, duration: DurationView, scope: ScopeView, now: number): string {
  const { late } = clocks(q, now);
  const left = minutes(q.open_until - now);
  if (q.program !== null) return ofConnection(q, late ? "late" : duration, left);
  const calls = q.calls.length > 1 ? t.these(q.calls.length) : t.thisCall;
  if (late) return t.late(calls, q.app, left);
  if (duration === "once") return t.once(calls);
  const of = scopes(q).includes(scope) && scope === "tool" ? t.ofTool(q.tool, q.host) : t.same(calls);
  return duration === "session" ? t.session(calls, of) : t.always(of, q.server);
}

/** What an allow for longer can be for: never more than the tool and, where the call names one, its address. */
export function scopes(q: Pick<QuestionView, "exact" | "program">): ScopeView[] {
  if (q.program !== null) return [];
  return q.exact ? ["call"] : ["call", "tool"];
}

function ofConnection(q: QuestionView, duration: DurationView | "late", left: string): string {
  switch (duration) {
    case "late":
      return `Allow lets ${q.server} connect there once, if it tries again within 10 min. The question closes in ${left}.`;
    case "once":
      return `Allow makes the connections to ${q.tool} that wait now; the next one asks again. Block refuses them until the session ends.`;
    case "session":
      return `Allow lets ${q.server} connect to ${q.tool} until the session ends. Block refuses it that long.`;
    case "always":
      return `Allow grants ${q.tool} to ${q.server}, until you take the grant back. Block adds a rule against it.`;
  }
}

/** A question in one line of the main window. */
export function waiting(q: SummaryView, now: number): string {
  return now < q.held_until
    ? `It is held for ${Math.ceil((q.held_until - now) / 1000)} s more.`
    : `It was refused at ${clock(q.held_until)}; you can answer for ${minutes(q.open_until - now)} more.`;
}
