// Text from elsewhere, cut into pieces that can be shown apart. It arrives with hidden characters written as ⟨U+XXXX⟩.

export interface Piece {
  kind: "text" | "hidden" | "mark";
  text: string;
}

const HIDDEN = /⟨(U\+[0-9A-F]{4,6})⟩/gu;
// What the engine masked. It is marked with what stands around it up to the next of these.
const MASKED = /•{4,}/gu;
const BREAK = /[\s"',;]/u;

// Rust cuts excerpts shorter than this; of a longer one no expression is made.
const LONGEST = 1000;

/** Hidden characters apart. */
export function pieces(text: string): Piece[] {
  return cut(text, HIDDEN, "hidden", "text");
}

/** Hidden characters apart, and the parts that the finding is about: masked secrets, or the excerpts themselves. */
export function marked(text: string, excerpts: string[]): Piece[] {
  const plain = excerpts.filter((e) => e.length >= 6 && e.length <= LONGEST && !e.includes("•")).map(escape);
  const about = plain.length === 0 ? [] : [...text.matchAll(new RegExp(plain.join("|"), "gu"))];
  const found = [...about.map((m): [number, number] => [m.index, m.index + m[0].length]), ...masked(text)];
  const all: Piece[] = [];
  let from = 0;
  for (const [start, end] of found.sort(([a], [b]) => a - b)) {
    if (start < from) continue;
    if (start > from) all.push(...pieces(text.slice(from, start)));
    all.push({ kind: "mark", text: text.slice(start, end) });
    from = end;
  }
  return from < text.length ? [...all, ...pieces(text.slice(from))] : all;
}

/** Where masked secrets stand. By hand: an expression that begins before the dots takes time by the square of the text. */
function masked(text: string): [number, number][] {
  const found: [number, number][] = [];
  for (const match of text.matchAll(MASKED)) {
    const last = found.at(-1);
    if (last && match.index < last[1]) continue;
    let [start, end] = [match.index, match.index + match[0].length];
    while (start > (last?.[1] ?? 0) && !BREAK.test(text.charAt(start - 1))) start--;
    while (end < text.length && !BREAK.test(text.charAt(end))) end++;
    found.push([start, end]);
  }
  return found;
}

function cut(text: string, pattern: RegExp, found: Piece["kind"], rest: Piece["kind"]): Piece[] {
  const all: Piece[] = [];
  let from = 0;
  for (const match of text.matchAll(pattern)) {
    if (match[0] === "") continue;
    if (match.index > from) all.push({ kind: rest, text: text.slice(from, match.index) });
    all.push({ kind: found, text: match[1] ?? match[0] });
    from = match.index + match[0].length;
  }
  if (from < text.length) all.push({ kind: rest, text: text.slice(from) });
  return all;
}

function escape(text: string): string {
  return text.replace(/[.*+?^${}()|[\]\\]/gu, "\\$&");
}

/** Lines of a unified diff, without its head, as what they are. */
export function diffLines(diff: string): { kind: "add" | "del" | "same" | "gap"; text: string }[] {
  return diff
    .split("\n")
    .filter((line) => !line.startsWith("--- ") && !line.startsWith("+++ ") && line !== "" && !line.startsWith("\\"))
    .map((line) => {
      if (line.startsWith("@@")) return { kind: "gap" as const, text: "…" };
      const text = line.slice(1);
      if (line.startsWith("+")) return { kind: "add" as const, text };
      if (line.startsWith("-")) return { kind: "del" as const, text };
      return { kind: "same" as const, text };
    });
}
