import { expect, test } from "vitest";
import { difference } from "./difference";

const shown = (before: string | null, after: string | null): string[] =>
  difference(before, after).map(({ kind, parts }) => {
    const sign = { same: " ", del: "-", add: "+" }[kind];
    return sign + parts.map((p) => (p.changed ? `[${p.text}]` : p.text)).join("");
  });

test.each<[string | null, string | null, string[]]>([
  ["a", "a", [" a"]],
  ["a\nb", "a\nc", [" a", "-[b]", "+[c]"]],
  ["needs title and body.", "needs title, body.", ["-needs [title and] body.", "+needs [title,] body."]],
  [null, "a\nb", ["+a", "+b"]],
  ["a", null, ["-a"]],
  [null, null, []],
  ["a\nb\nc", "a\nc", [" a", "-b", " c"]],
  ["", "a", ["-[]", "+[a]"]],
])("%j to %j", (before, after, want) => expect(shown(before, after)).toEqual(want));

test("texts without end are not compared pair by pair", () => {
  const long = (c: string): string => Array.from({ length: 5000 }, (_, n) => `${c}${n}`).join("\n");
  const started = performance.now();
  expect(difference(long("a"), long("b"))).toHaveLength(10_000);
  expect(performance.now() - started).toBeLessThan(2000);
});

test("nothing is lost: each side reads back", () => {
  const pick = (kinds: string[], lines: ReturnType<typeof difference>): string =>
    lines.filter((l) => kinds.includes(l.kind)).map((l) => l.parts.map((p) => p.text).join("")).join("\n");
  let seed = 7;
  const next = (n: number): number => (seed = (seed * 1103515245 + 12345) % 2 ** 31) % n;
  for (let round = 0; round < 300; round++) {
    const text = (): string => Array.from({ length: next(6) + 1 }, () => "abc d".charAt(next(5)).repeat(next(4))).join("\n");
    const [a, b] = [text(), text()];
    const lines = difference(a, b);
    expect(pick(["same", "del"], lines)).toBe(a);
    expect(pick(["same", "add"], lines)).toBe(b);
  }
});
