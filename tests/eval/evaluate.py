#!/usr/bin/env python3
"""Runs `firedoor inspect` over the corpora and prints what it catches and how often it is wrong.

evaluate.py FIREDOOR CORPORA [--held-out FILE] [--json FILE]

CORPORA holds one gzip'd JSON Lines file per source: {id, source, label, kind, text | payload, group}. A record counts as
caught when it would interrupt a person: its verdict is ask or block; a record of kind secret when a credential is found.
Records whose group stands in FILE were not used to make the model or to choose thresholds; the columns "held out" count
them alone. Nothing of the corpora is printed but their names.
"""

import argparse
import collections
import gzip
import json
import math
import pathlib
import subprocess
import sys
import time

# Attacks without any sign in their text: a plain request that somebody else put there.
PLAIN = {"bipia"}
# Requests of users, harmless but for the server that they reach.
APART = {"mcpsecbench"}
# Poisoned tools whose definition says nothing of it: what is wrong is in the server's code, which no reader of definitions sees.
# Each was read: an ordinary name and sentence, and parameters that are plain strings.
CODE_ONLY = {
    f"cisco_evals:{i}"
    for i in (
        "01df2c5f120e425f", "26eebcc02d57992d", "519e0f0d83cd0965", "55fd7269dbf497ca", "7213fef9100f01b4",
        "82391dfcb801751f", "85e699656252f6a8", "864d4c8e4fb6a7b9", "9344d856a7cc25d1", "9be0fa8f2c91f703",
        "a4fda8d5ae130f73", "d82ef0dd95bbe766", "dc23ec2356fe50c3", "fe99fa2eef9b6c82",
    )
}
# Records that count as secrets and are none: a template's variable and a service account's type; and two that say themselves that
# they are examples.
NO_SECRET = {
    "detect_secrets_tests:09788781c584d0ef", "detect_secrets_tests:13a7a013c301705d", "gitleaks_fixtures:d80c53e51d402e4c",
    "detect_secrets_tests:67f190d55271a5ca", "gitleaks_fixtures:c9a6d60138781076",
}
# Texts that quote attacks.
QUOTING = {"benign_results_hard_security_docs"}
MASK = (1 << 64) - 1


def group_hash(text):
    """As examples/train.rs: FNV-1a, mixed."""
    h = 0xCBF29CE484222325
    for byte in text.encode():
        h = (h ^ byte) * 0x100000001B3 & MASK
    return ((h ^ h >> 32) * 0x9E3779B97F4A7C15 & MASK) >> 20


def wilson(hits, n, z=1.96):
    """95 % bounds of a share (Wilson 1927), in percent."""
    if n == 0:
        return 0.0, 100.0
    p, d = hits / n, 1 + z * z / n
    middle = (p + z * z / (2 * n)) / d
    half = z * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n)) / d
    return max(0.0, 100 * (middle - half)), min(100.0, 100 * (middle + half))


def percent(hits, n):
    return f"{100 * hits / n:.1f}" if n else "–"


def is_secret(finding):
    return finding["detector"].endswith("/secret")


def interrupts_call(finding):
    """What asks about a call in Balanced: see crates/policy/src/thresholds.rs."""
    calls = finding["detector"].startswith(("flow/", "call/")) and finding["detector"] != "call/secret"
    return calls and finding["severity"] != "low" and finding["confidence"] != "possible"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("firedoor")
    parser.add_argument("corpora", type=pathlib.Path)
    parser.add_argument("--held-out", type=pathlib.Path)
    parser.add_argument("--json", type=pathlib.Path, help="also write the figures here")
    options = parser.parse_args()
    paths = sorted(options.corpora.glob("*.jsonl.gz"))
    if not paths:
        sys.exit(f"evaluate.py: {options.corpora} holds no *.jsonl.gz; name the folder of the corpora with CORPORA=dir")
    held_groups = set()
    if options.held_out:
        lines = options.held_out.read_text().splitlines()
        held_groups = {tuple(line.split("\t")) for line in lines if line and not line.startswith("#")}

    records = [json.loads(line) for path in paths for line in gzip.open(path, "rt", encoding="utf-8")]
    keep = ("id", "kind", "text", "payload")
    lines = [json.dumps({k: r[k] for k in keep if k in r}) for r in records]
    start = time.monotonic()
    done = subprocess.run([options.firedoor, "inspect"], input="\n".join(lines), capture_output=True, text=True, check=False)
    seconds = time.monotonic() - start
    if done.returncode not in (0, 1):
        sys.exit(f"evaluate.py: firedoor inspect failed: {done.stderr.strip()}")
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    if len(answers) != len(records):
        sys.exit(f"evaluate.py: {len(records)} records went in and {len(answers)} answers came out")

    # (source, label, kind) -> [caught, all, caught held out, all held out]
    table = collections.defaultdict(lambda: [0, 0, 0, 0])
    # The same without what a text cannot show.
    shown = collections.defaultdict(lambda: [0, 0])
    transforms = collections.defaultdict(lambda: [0, 0])
    calls = questions = blocks = 0
    read = with_secret = 0
    for record, answer in zip(records, answers):
        kind, label, source = record["kind"], record["label"], record["source"]
        if kind == "secret":
            caught = any(is_secret(f) for f in answer["findings"])
        else:
            caught = answer["verdict"] != "allow"
        if kind == "tool_result" and label == "benign" and source not in QUOTING:
            read += 1
            with_secret += any(is_secret(f) for f in answer["findings"])
        row = table[source, label, kind]
        held = (source, f"{group_hash(record.get('group') or ''):x}") in held_groups
        for at in (0, 2) if held else (0,):
            row[at] += caught
            row[at + 1] += 1
        if label == "malicious" and record["id"] not in CODE_ONLY | NO_SECRET:
            shown[source, kind][0] += caught
            shown[source, kind][1] += 1
        if kind == "flow" and label == "malicious":
            transform = record["payload"].get("transform", "other")
            transforms[transform][0] += caught
            transforms[transform][1] += 1
        if kind == "session" and label == "benign":
            steps = record["payload"]["steps"]
            calls += len(steps)
            questions += sum(interrupts_call(f) for f in answer["findings"])
            blocks += answer["verdict"] == "block"

    print("| source | kind | attacks | caught % | 95 % | held out | caught % |")
    print("|---|---|---:|---:|---|---:|---:|")
    for (source, label, kind), (hit, n, held_hit, held_n) in sorted(table.items()):
        if label == "malicious":
            low, high = wilson(hit, n)
            print(f"| {source} | {kind} | {n} | {percent(hit, n)} | {low:.1f}–{high:.1f} | {held_n} | {percent(held_hit, held_n)} |")
    print()
    print("| source | kind | honest | wrong | wrong % | 95 % | held out | wrong |")
    print("|---|---|---:|---:|---:|---|---:|---:|")
    for (source, label, kind), (hit, n, held_hit, held_n) in sorted(table.items()):
        if label == "benign":
            low, high = wilson(hit, n)
            print(f"| {source} | {kind} | {n} | {hit} | {100 * hit / n:.2f} | {low:.2f}–{high:.2f} | {held_n} | {held_hit} |")
    print()

    figures = {"records": len(records), "seconds": round(seconds, 2), "records_per_second": round(len(records) / seconds)}

    def pooled(name, label, kinds, but=frozenset()):
        rows = [v for (s, l, k), v in table.items() if l == label and k in kinds and s not in but]
        sums = [sum(row[i] for row in rows) for i in range(4)]
        low, high = wilson(sums[0], sums[1])
        figures[name] = {"hits": sums[0], "of": sums[1], "low": round(low, 3), "high": round(high, 3)}
        hl, hh = wilson(sums[2], sums[3])
        print(
            f"| {name} | {sums[0]} of {sums[1]} | {100 * sums[0] / max(1, sums[1]):.2f} | {low:.2f}–{high:.2f} "
            f"| {sums[2]} of {sums[3]} | {hl:.2f}–{hh:.2f} |"
        )

    def macro(name, kinds, but=frozenset()):
        for at, column in ((0, "all"), (2, "held out")):
            shares = [v[at] / v[at + 1] for (s, l, k), v in table.items() if l == "malicious" and k in kinds and s not in but and v[at + 1]]
            if not shares:
                continue
            mean = 100 * sum(shares) / len(shares)
            figures[f"{name}, {column}"] = round(mean, 1)
            print(f"| {name}, {column} | {mean:.1f} % over {len(shares)} |")

    print("| honest records that interrupt | count | % | 95 % | held out | 95 % |")
    print("|---|---|---:|---|---|---|")
    pooled("definitions", "benign", {"tool_description"})
    pooled("results", "benign", {"tool_result"}, QUOTING)
    pooled("texts that quote attacks", "benign", {"tool_result"}, {s for s, *_ in table} - QUOTING)
    pooled("notinject", "benign", {"prompt"}, {s for s, *_ in table} - {"notinject"})
    pooled("flows", "benign", {"flow"})
    pooled("secrets", "benign", {"secret"})
    print()
    print("| recall, macro average over sources | |")
    print("|---|---|")
    macro("injected results", {"tool_result"}, PLAIN)
    macro("plain task hijacks", {"tool_result"}, {s for s, *_ in table} - PLAIN)
    macro("direct prompts", {"prompt"}, APART)
    macro("definitions", {"tool_description"})
    macro("secrets", {"secret"})
    for name, kind in (("definitions that say something", "tool_description"), ("secrets that are some", "secret")):
        shares = [hit / n for (_, k), (hit, n) in shown.items() if k == kind and n]
        if shares:
            figures[name] = round(100 * sum(shares) / len(shares), 1)
            print(f"| {name}, all | {figures[name]:.1f} % over {len(shares)} |")
    macro("flows", {"flow"})
    print()
    if transforms:
        print("flows by transform: " + ", ".join(f"{t} {h}/{n}" for t, (h, n) in sorted(transforms.items())))
    if read:
        low, high = wilson(with_secret, read)
        figures["credentials in honest results"] = {"hits": with_secret, "of": read}
        print(f"credentials in honest results: {with_secret} of {read} ({100 * with_secret / read:.2f} %, {low:.2f}–{high:.2f})")
    if calls:
        per_200 = 200 * questions / calls
        figures["honest work"] = {"calls": calls, "questions": questions, "per_200_calls": round(per_200, 2), "blocks": blocks}
        print(f"honest work: {questions} questions in {calls} calls ({per_200:.2f} per 200), {blocks} blocks")
    print(f"timing: {len(records)} records in {seconds:.1f} s ({len(records) / seconds:.0f} a second, one process)")
    if options.json:
        options.json.write_text(json.dumps(figures, indent=2) + "\n")


if __name__ == "__main__":
    main()
