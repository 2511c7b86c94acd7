#!/usr/bin/env python3
"""The official TypeScript SDK's client sees through Firedoor what it sees direct: results, errors, progress, sampling,
elicitation, cancellation, 20 MiB results, 1,000 calls at once. Exit code 1 when anything differs."""

import json
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
sys.path.insert(0, str(HERE.parent / "harness"))
from conformance import install, serving  # noqa: E402
from scratch import Missing, Scratch, as_ordinary_user, run  # noqa: E402


def main():
    """Looks both ways and compares."""
    as_ordinary_user(__file__)
    with Scratch() as scratch:
        place, node = install(scratch)
        with serving(scratch, place, node, "fixture.mjs") as url:
            done = scratch.run(node, "matrix.mjs", url, scratch.bin / "firedoor-shim", cwd=place, timeout=600)
    if done.returncode:
        raise Missing(f"matrix.mjs: exit {done.returncode}: {done.stderr.strip()[-2000:]}")
    seen = json.loads(done.stdout)
    direct, through = seen["direct"], seen["through"]
    different = [key for key in direct if direct[key] != through.get(key)]
    for key in different:
        print(f"  {key}: direct {json.dumps(direct[key])[:400]}, through Firedoor {json.dumps(through.get(key))[:400]}")
    complete = direct["at_once"] == 1000 and direct["large"][1] and direct["given_up"] == 1
    print(f"{len(direct)} things looked at: " + (f"{len(different)} differ" if different else "the same"))
    return 0 if complete and not different else 1


if __name__ == "__main__":
    run(main)
