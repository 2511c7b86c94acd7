#!/usr/bin/env python3
"""What inspecting costs: processor time per case, and instructions where valgrind is there.

  inspection.py SPEED [--no-counts]

SPEED is the program that `cargo build --release -p firedoor-inspect --example speed` makes. Times are medians of seven;
instructions are the difference between two runs of callgrind, so that starting up does not count.
"""

import argparse
import re
import shutil
import subprocess
import sys

# Rounds of the two runs, by size of the message.
SMALL, LARGE = (20, 120), (1, 3)


def instructions(program, name, rounds):
    """Instructions of the whole program, and the bytes of one message."""
    command = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", program, name, str(rounds)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return int(re.search(r"Collected : (\d+)", done.stderr).group(1)), int(done.stdout)


def main():
    """Times, then counts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("speed")
    parser.add_argument("--no-counts", action="store_true")
    asked = parser.parse_args()
    print("inspection: processor time, medians of 7", flush=True)
    try:
        subprocess.run([asked.speed], check=True)
        if asked.no_counts:
            return 0
        if not shutil.which("valgrind"):
            print("no instruction counts: valgrind is not installed")
            return 0
        print("inspection: instructions (callgrind)")
        for name in subprocess.run([asked.speed, "names"], capture_output=True, text=True, check=True).stdout.splitlines():
            few, many = LARGE if "MiB" in name or "64" in name else SMALL
            (first, size), (second, _) = (instructions(asked.speed, name, n) for n in (few, many))
            each = (second - first) / (many - few)
            print(f"{name:28s} {size:9d} bytes {each:14.0f} instructions {each / size:9.2f} per byte", flush=True)
    except subprocess.CalledProcessError as error:
        print(f"inspection: {error}", file=sys.stderr)
        return 2
    return 0


sys.exit(main())
