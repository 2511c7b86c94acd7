// Text from elsewhere, cut into pieces that can be shown apart. It arrives with hidden characters written as ⟨U+XXXX⟩.

export interface Piece {
  kind: "text" | "hidden" | "mark";
  text: string;
}

const HIDDEN = /⟨(U\+[0-9A-F]{4,6})⟩/gu;
// What the engine masked, with what stands around it up to the next space.
const MASKED = /[^\s"',;]*•{4,}[^\s"',;]*/gu;

/** Hidden characters apart. */
export function pieces(text: string): Piece[] {
  return cut(text, HIDDEN, "hidden", "text");
}

/** Hidden characters apart, and the parts that the finding is about: masked secrets, or the excerpts themselves. */
export function marked(text: string, excerpts: string[]): Piece[] {
  const plain = excerpts.filter((e) => e.length >= 6 && !e.includes("•")).map(escape);
  const about = new RegExp([...plain, MASKED.source].join("|"), "gu");
  return cut(text, about, "mark", "text").flatMap((piece) =>
    piece.kind === "mark" ? [piece] : pieces(piece.text),
  );
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
