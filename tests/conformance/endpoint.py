#!/usr/bin/env python3
"""The official TypeScript SDK's clients see through an endpoint of Firedoor's what they see direct: results, errors, progress,
sampling, elicitation, cancellation, 20 MiB results, 1,000 calls at once; and with revision 2026-07-28 input that is asked for,
headers and subscriptions, of a server with an address and of a program. Exit code 1 when anything differs."""

import json
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
sys.path.insert(0, str(HERE.parent / "harness"))
from conformance import endpoint, install, serving  # noqa: E402
from scratch import Missing, Scratch, as_ordinary_user, run  # noqa: E402


def compare(seen):
    """Whether everybody saw what was seen direct."""
    direct, same = seen.pop("direct"), True
    for way, saw in seen.items():
        different = [key for key in direct if direct[key] != saw.get(key)]
        for key in different:
            print(f"  {key}: direct {json.dumps(direct[key])[:400]}, {way} {json.dumps(saw.get(key))[:400]}")
        print(f"{way}: {len(direct)} things looked at: " + (f"{len(different)} differ" if different else "the same"))
        same = same and not different
    return same and direct["at_once"] == 1000 and direct["large"][1] and direct.get("given_up") == 1


def looked(scratch, place, node, *command):
    """What a script has seen."""
    done = scratch.run(node, *command, cwd=place, timeout=600)
    if done.returncode:
        raise Missing(f"{command[0]}: exit {done.returncode}: {done.stderr.strip()[-2000:]}")
    return json.loads(done.stdout)


def main():
    """Looks every way and compares."""
    as_ordinary_user(__file__)
    with Scratch() as scratch:
        place, node = install(scratch)
        with serving(scratch, place, node, "fixture.mjs") as url:
            address = endpoint(scratch, "sessions", "--url", url)
            sessions = compare(looked(scratch, place, node, "sessions.mjs", url, address))
        with serving(scratch, place, node, "stateless-fixture.mjs") as url:
            program = endpoint(scratch, "program", "--", node, place / "stateless-fixture.mjs", "--stdio")
            ways = (endpoint(scratch, "address", "--url", url), program)
            stateless = compare(looked(scratch, place, node, "stateless.mjs", url, *ways))
    return 0 if sessions and stateless else 1


if __name__ == "__main__":
    run(main)
