#!/usr/bin/env python3
"""Says whether two versions of `firedoor inspect` find the same in the corpora.

compare.py OLD NEW CORPORA [--show N]

For changes that must not change what is found, such as a faster scanner. Printed are sources, ids, and names of detectors
with severity and confidence, never text of a record. Exit code 1 when a finding is gone or new, 0 when at most its words
or places differ.
"""

import argparse
import gzip
import json
import pathlib
import subprocess
import sys


def answers(program, lines):
    """The findings of each record."""
    done = subprocess.run([program, "inspect"], input="\n".join(lines), capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1):
        sys.exit(f"compare.py: {program} inspect failed: {done.stderr.strip()}")
    return [json.loads(line)["findings"] for line in done.stdout.splitlines()]


def names(findings):
    """What counts of them, in order."""
    return sorted((f["detector"], f["severity"], f["confidence"]) for f in findings)


def main():
    """Both programs over everything."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old")
    parser.add_argument("new")
    parser.add_argument("corpora", type=pathlib.Path)
    parser.add_argument("--show", type=int, default=20)
    asked = parser.parse_args()
    paths = sorted(asked.corpora.glob("*.jsonl.gz"))
    if not paths:
        sys.exit(f"compare.py: {asked.corpora} holds no *.jsonl.gz")
    records = [json.loads(line) for path in paths for line in gzip.open(path, "rt", encoding="utf-8")]
    keep = ("id", "kind", "text", "payload")
    lines = [json.dumps({k: r[k] for k in keep if k in r}) for r in records]
    old, new = answers(asked.old, lines), answers(asked.new, lines)
    if not len(old) == len(new) == len(records):
        sys.exit(f"compare.py: {len(records)} records went in, {len(old)} and {len(new)} answers came out")
    differing = words = 0
    for record, before, after in zip(records, old, new):
        if names(before) == names(after):
            words += before != after
            continue
        differing += 1
        if differing <= asked.show:
            print(record["source"], record["label"], record["id"], "before:", names(before), "after:", names(after))
    print(f"{len(records)} records: {differing} differ in what is found, {words} more in its words or places")
    return 1 if differing else 0


sys.exit(main())
