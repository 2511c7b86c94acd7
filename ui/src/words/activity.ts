// What a row of the log says.
import type { RowView } from "../bindings";
import { foremost } from "./question";
import { count } from "./time";

export interface Said {
  /** A word. */
  result: string;
  /** A class of ui.css. */
  tone: "ok" | "note" | "ask" | "bad" | "warn" | "none";
  /** A symbol of the sprite. */
  icon: string;
  /** The tool or thing it was about, in somebody else's words; may be empty. */
  subject: string;
  /** More, in our words. */
  more: string;
}

const METHODS = new Map([["tools/call", ""], ["tools/list", "list of tools"]]);
const TIMES = new Map([["session", "for this session"]]);

export function say(row: RowView): Said {
  const what = row.what;
  const said = (result: string, tone: Said["tone"], icon: string, subject: string, more = ""): Said => ({
    result,
    tone,
    icon,
    subject,
    more,
  });
  switch (what.kind) {
    case "judged": {
      const method = METHODS.get(what.method) ?? what.method;
      const subject = what.subject ?? (method || what.method);
      const more = foremost(what.findings)?.summary ?? (what.subject === null ? "" : method);
      if (what.verdict === "block") return said("Blocked", "bad", "s-shut", subject, more);
      if (what.verdict === "ask") return said("Asked", "ask", "s-high", subject, more);
      if (what.findings.length > 0) return said("Recorded", "note", "s-note", subject, more);
      return said("Allowed", "ok", "s-ok", subject, more);
    }
    case "answered": {
      const time = TIMES.get(what.duration) ?? what.duration;
      return what.allowed
        ? said("You allowed", "ok", "s-ok", "", `question ${what.reference}, ${time}`)
        : said("You blocked", "bad", "s-shut", "", `question ${what.reference}, ${time}`);
    }
    case "unanswered":
      return said("Refused", "bad", "s-shut", "", `nobody answered question ${what.reference} in time`);
    case "withdrawn":
      return said("Withdrawn", "none", "s-none", "", `question ${what.reference}: the agent gave the call up`);
    case "expired":
      return said("Unanswered", "none", "s-none", "", `question ${what.reference} ended without an answer`);
    case "started":
      return said("Started", "none", "s-none", "", what.level);
    case "resumed":
      return said("Resumed", "none", "s-none", "", "taken over from an engine that ended");
    case "ended":
      return said("Ended", "none", "s-none", "", what.status);
    case "refused":
      return said("Not started", "bad", "s-shut", "", what.reason);
    case "pinned":
      return what.changed.length === 0
        ? said("Noted", "none", "s-none", what.subject, "first seen")
        : said("Changed", "warn", "s-medium", what.subject, what.changed.join(", "));
    case "noise":
      return said("Dropped", "none", "s-none", "", `${count(what.lines, "line")}, ${count(what.bytes, "byte")}, that are no message`);
    case "command":
      return said("Set", "none", "s-none", "", what.text);
    case "denied":
      return said("Denied", "bad", "s-shut", what.by, `${what.text}: ${what.reason}`);
    case "noticed":
      return what.loss ? said("Noticed", "warn", "s-medium", "", what.text) : said("Noticed", "none", "s-none", "", what.text);
    case "failed":
      return said("Failed", "bad", "s-critical", "", what.reason);
  }
}

export function reference(row: RowView): string | null {
  return "reference" in row.what ? row.what.reference : null;
}
