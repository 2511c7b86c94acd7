// Two texts, line by line, with what changed inside a line apart.

export interface Part {
  text: string;
  /** Whether it is only on this side. */
  changed: boolean;
}

export interface Line {
  kind: "same" | "del" | "add";
  parts: Part[];
}

// Above this a table of all pairs costs more than it explains: everything counts as changed.
const MOST_CELLS = 250_000;

/** Which of `a` and `b` belong together: a longest common subsequence. */
function common(a: string[], b: string[]): [number, number][] {
  if ((a.length + 1) * (b.length + 1) > MOST_CELLS) return [];
  const width = b.length + 1;
  const longest = new Uint32Array((a.length + 1) * width);
  for (let i = a.length - 1; i >= 0; i--) {
    for (let j = b.length - 1; j >= 0; j--) {
      const here = i * width + j;
      longest[here] =
        a[i] === b[j]
          ? (longest[here + width + 1] ?? 0) + 1
          : Math.max(longest[here + width] ?? 0, longest[here + 1] ?? 0);
    }
  }
  const pairs: [number, number][] = [];
  for (let i = 0, j = 0; i < a.length && j < b.length; ) {
    if (a[i] === b[j]) pairs.push([i++, j++]);
    else if ((longest[(i + 1) * width + j] ?? 0) >= (longest[i * width + j + 1] ?? 0)) i++;
    else j++;
  }
  return pairs;
}

const plain = (kind: Line["kind"], text: string): Line => ({ kind, parts: [{ text, changed: false }] });

/** One line that became another, by words. */
function words(before: string, after: string): [Line, Line] {
  const cut = (text: string): string[] => text.split(/(?<=\s)|(?=\s)/u);
  const [a, b] = [cut(before), cut(after)];
  const pairs = common(a, b);
  const marked = (kind: Line["kind"], all: string[], kept: Set<number>): Line => {
    const parts: Part[] = [];
    const stays = (at: number): boolean => kept.has(at);
    all.forEach((text, at) => {
      // A space between two words that changed is marked with them.
      const changed = !stays(at) || (text.trim() === "" && !stays(at - 1) && !stays(at + 1) && at + 1 < all.length);
      const last = parts.at(-1);
      if (last?.changed === changed) last.text += text;
      else parts.push({ text, changed });
    });
    return { kind, parts };
  };
  return [
    marked("del", a, new Set(pairs.map(([i]) => i))),
    marked("add", b, new Set(pairs.map(([, j]) => j))),
  ];
}

/** What was, and what is. `null` is a text that was not there. */
export function difference(before: string | null, after: string | null): Line[] {
  const [a, b] = [before?.split("\n") ?? [], after?.split("\n") ?? []];
  const lines: Line[] = [];
  let [i, j] = [0, 0];
  for (const [x, y] of [...common(a, b), [a.length, b.length] as [number, number]]) {
    const [gone, come] = [a.slice(i, x), b.slice(j, y)];
    const both = Math.min(gone.length, come.length);
    const pairs = gone.slice(0, both).map((line, at) => words(line, come[at] ?? ""));
    lines.push(...pairs.map(([del]) => del), ...gone.slice(both).map((line) => plain("del", line)));
    lines.push(...pairs.map(([, add]) => add), ...come.slice(both).map((line) => plain("add", line)));
    const same = a[x];
    if (same !== undefined) lines.push(plain("same", same));
    [i, j] = [x + 1, y + 1];
  }
  return lines;
}
