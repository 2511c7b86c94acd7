// The picture of an agent's session: what came in through which tool, and where it went.
import type { EvidenceView, FindingView, RowView } from "../bindings";
import { reference } from "./activity";

export type Kind = "secret" | "private" | "untrusted";
export type Result = "allowed" | "recorded" | "stopped" | "open";

export interface End {
  server: string;
  tool: string;
  kind: Kind | null;
  /** How often. */
  times: number;
}

export interface Flow {
  from: number;
  /** Nothing of it was found again in what was sent. */
  to: number | null;
  kind: Kind;
  result: Result;
  times: number;
}

export interface Picture {
  sources: End[];
  sinks: End[];
  flows: Flow[];
  /** Sources and sinks that are not drawn. */
  left: number;
}

/** Ends drawn on one side: more nobody reads, and the list below has them all. */
export const MOST_ENDS = 6;

function kindOf(finding: FindingView): Kind | null {
  if (/secret|credential|environment/u.test(finding.detector)) return "secret";
  if (/private|encoded|split|forgotten|unchecked|trifecta/u.test(finding.detector)) return "private";
  if (/injection|hidden|poison|untrusted/u.test(finding.detector)) return "untrusted";
  return null;
}

/** What became of a call that was asked about. */
function settled(row: RowView, rows: RowView[]): Result {
  if (row.what.kind !== "judged") return "recorded";
  if (row.what.verdict === "block") return "stopped";
  if (row.what.verdict === "allow") return "recorded";
  const ref = reference(row);
  const later = rows.filter((r) => r !== row && reference(r) === ref && r.server === row.server);
  if (later.some((r) => r.what.kind === "answered" && r.what.allowed)) return "allowed";
  return later.length > 0 ? "stopped" : "open";
}

/** Out of a session's rows, in any order. */
export function picture(rows: RowView[]): Picture {
  const sources = new Map<string, End>();
  const sinks = new Map<string, End>();
  const flows = new Map<string, { from: string; to: string | null; kind: Kind; result: Result; times: number }>();
  const end = (of: Map<string, End>, server: string, tool: string, kind: Kind | null): string => {
    const key = JSON.stringify([server, tool, of === sources ? kind : null]);
    const known = of.get(key);
    if (known) known.times += 1;
    else of.set(key, { server, tool, kind, times: 1 });
    return key;
  };
  for (const row of [...rows].sort((a, b) => a.seq - b.seq)) {
    if (row.what.kind !== "judged") continue;
    for (const finding of row.what.findings) {
      const kind = kindOf(finding);
      if (kind === null) continue;
      const at = (role: EvidenceView["role"]): EvidenceView | undefined => finding.evidence.find((e) => e.role === role);
      const [source, sink] = [at("source"), at("sink")];
      const place = at("place");
      const began = source ?? (sink || row.what.method !== "tools/call" ? undefined : place) ?? place;
      if (!began) continue;
      const from = end(sources, began.server ?? row.server ?? "", began.tool ?? row.what.subject ?? "", kind);
      const to = source && sink ? end(sinks, sink.server ?? row.server ?? "", sink.tool ?? row.what.subject ?? "", null) : null;
      const result = to === null ? "recorded" : settled(row, rows);
      const key = JSON.stringify([from, to, result]);
      const known = flows.get(key);
      if (known) known.times += 1;
      else flows.set(key, { from, to, kind, result, times: 1 });
    }
  }
  const all = [...flows.values()];
  // What went somewhere first, and of that what was stopped.
  const weight = (key: string, side: "from" | "to"): number =>
    Math.max(...all.filter((f) => f[side] === key).map((f) => (f.to === null ? 0 : f.result === "stopped" ? 2 : 1)), -1);
  const order = (of: Map<string, End>, side: "from" | "to"): string[] =>
    [...of.keys()].sort((a, b) => weight(b, side) - weight(a, side)).slice(0, MOST_ENDS);
  const [left, right] = [order(sources, "from"), order(sinks, "to")];
  const drawn = all.filter((f) => left.includes(f.from) && (f.to === null || right.includes(f.to)));
  // A source whose data went somewhere needs no line that ends in the middle.
  const sent = new Set(drawn.filter((f) => f.to !== null).map((f) => f.from));
  return {
    sources: left.flatMap((key) => sources.get(key) ?? []),
    sinks: right.flatMap((key) => sinks.get(key) ?? []),
    flows: drawn
      .filter((f) => f.to !== null || !sent.has(f.from))
      .map((f) => ({ ...f, from: left.indexOf(f.from), to: f.to === null ? null : right.indexOf(f.to) })),
    left: sources.size + sinks.size - left.length - right.length,
  };
}
