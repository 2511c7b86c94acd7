import { expect, test } from "vitest";
import type { EvidenceView, FindingView, RowView } from "../bindings";
import { bars, busiest, total } from "./counts";
import { MOST_ENDS, picture } from "./flow";

let seq = 0;
const place = (role: EvidenceView["role"], server: string, tool: string): EvidenceView => ({ role, app: "Cursor", server, tool, pointer: "", excerpt: "", transform: null, age_s: null });
const found = (detector: string, evidence: EvidenceView[]): FindingView => ({ detector, severity: "high", confidence: "certain", summary: "", remedy: null, evidence });
const row = (what: RowView["what"]): RowView => ({ seq: ++seq, at: seq, app: "Cursor", server: "outbox", process: "node (7)", pid: 7, client: "cursor", folder: null, what });
const judged = (verdict: "allow" | "ask" | "block", detector: string, evidence: EvidenceView[], reference: string | null = null): RowView =>
  row({ kind: "judged", method: "tools/call", subject: "post", verdict, reference, rule: null, findings: [found(detector, evidence)] });
const leak = (verdict: "allow" | "ask" | "block", ref: string | null = null): RowView =>
  judged(verdict, "flow/secret", [place("source", "files", "read"), place("sink", "outbox", "post")], ref);

test.each<[string, RowView[], string]>([
  ["blocked", [leak("block")], "stopped"],
  ["allowed by the user", [leak("ask", "A"), row({ kind: "answered", reference: "A", allowed: true, duration: "once" })], "allowed"],
  ["refused by the user", [leak("ask", "B"), row({ kind: "answered", reference: "B", allowed: false, duration: "once" })], "stopped"],
  ["nobody answered", [leak("ask", "C"), row({ kind: "unanswered", reference: "C" })], "stopped"],
  ["still open", [leak("ask", "D")], "open"],
  ["noted", [leak("allow")], "recorded"],
])("a flow that was %s", (_, rows, want) => {
  const { flows, sources, sinks } = picture(rows);
  expect(flows.map((f) => [f.from, f.to, f.kind, f.result])).toEqual([[0, 0, "secret", want]]);
  expect([sources[0]?.tool, sinks[0]?.tool]).toEqual(["read", "post"]);
});

test("what was not sent on ends in the middle, unless it was", () => {
  const came = judged("allow", "result/injection", [place("place", "web", "fetch")]);
  expect(picture([came]).flows).toEqual([{ from: 0, to: null, kind: "untrusted", result: "recorded", times: 1 }]);
  const read = judged("allow", "result/secret", [place("place", "files", "read")]);
  expect(picture([read, leak("block")]).flows.map((f) => f.to)).toEqual([0]);
  expect(picture([]).flows).toEqual([]);
});

test("a picture has bounds, and what went somewhere is drawn first", () => {
  const rows = Array.from({ length: 40 }, (_, n) => judged("allow", "result/secret", [place("place", "s", `t${n}`)]));
  const { sources, flows, left } = picture([...rows, leak("block")]);
  expect(sources).toHaveLength(MOST_ENDS);
  expect(sources[0]?.tool).toBe("read");
  expect(flows[0]?.result === "stopped" || flows.some((f) => f.result === "stopped")).toBe(true);
  expect(left).toBe(41 - MOST_ENDS);
});

test("calls are counted in spans, also where there are none", () => {
  const view = {
    since: 0,
    step: 10,
    counts: [
      { at: 0, app: "A", server: "x", outcome: "allowed" as const, calls: 3 },
      { at: 20, app: "A", server: "x", outcome: "blocked" as const, calls: 1 },
      { at: 20, app: "B", server: "y", outcome: "asked" as const, calls: 9 },
    ],
  };
  expect(bars(view, 35).map((b) => Object.values(b.calls).reduce((a, b) => a + b))).toEqual([3, 0, 10, 0]);
  expect(busiest(view, 1)).toEqual([{ name: "y", calls: 9, blocked: 0 }]);
  expect(total(view)).toEqual({ allowed: 3, recorded: 0, asked: 9, blocked: 1 });
});
