#!/usr/bin/env python3
"""The MCP conformance suite on a server of our own, direct and through Firedoor, compared check by check.

  conformance.py [--keep FILE]

Through Firedoor: suite -> endpoint (firedoor endpoints add) -> shim -> engine -> firedoor-remote -> server. Exit code 1 when
any check of any scenario comes out differently, 2 when the suite cannot be run. The last line is the comparison.
"""

import argparse
import contextlib
import json
import pathlib
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "harness"))
from scratch import Missing, Scratch, as_ordinary_user, run  # noqa: E402

SUITE = "node_modules/@modelcontextprotocol/conformance/dist/index.js"


def install(scratch):
    """The suite, the SDK and the Node that the suite needs, in the scratch home."""
    place = scratch.home / "conformance"
    shutil.copytree(HERE, place, ignore=shutil.ignore_patterns("node_modules", "__pycache__"))
    done = scratch.run("npm", "install", "--no-fund", "--no-audit", "--no-progress", cwd=place, timeout=600)
    node = place / "node_modules/node/bin/node"
    if done.returncode or not node.is_file():
        raise Missing(f"npm install: {done.stderr.strip() or 'no node'}")
    return place, node


@contextlib.contextmanager
def serving(scratch, place, *command):
    """Starts a program that prints its port, and ends it by closing its stdin."""
    with scratch.start(*command, cwd=place, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield f"http://127.0.0.1:{int(process.stdout.readline())}/mcp"
        finally:
            process.stdin.close()
            process.wait(30)


def endpoint(scratch, name, *server):
    """Makes an endpoint; gives its address."""
    done = scratch.firedoor("endpoints", "add", name, *server)
    if done.returncode:
        raise Missing(f"firedoor endpoints add: exit {done.returncode}: {done.stdout}{done.stderr}")
    listed = scratch.json("endpoints", "list")["endpoints"]
    return next(found["address"] for found in listed if found["entry"] == f"endpoint/user/{name}")


def checks(scratch, place, node, url, name):
    """What each check of each scenario says."""
    results = place / name
    done = scratch.run(node, SUITE, "server", "--suite", "all", "--url", url, "-o", results, cwd=place, timeout=600)
    found = {}
    for file in sorted(results.rglob("checks.json")):
        # server-SCENARIO-TIME
        scenario = file.parent.name.removeprefix("server-").split("-2")[0]
        for number, check in enumerate(json.loads(file.read_text(encoding="utf-8"))):
            found[f"{scenario} {number} {check['id']}"] = check["status"]
    if not found:
        raise Missing(f"the suite reported nothing: exit {done.returncode}: {done.stderr.strip()[-2000:]}")
    return found


def main():
    """Runs the suite twice."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--keep", type=pathlib.Path, help="writes both runs' checks there, as JSON")
    arguments = parser.parse_args()
    as_ordinary_user(__file__)
    with Scratch() as scratch:
        place, node = install(scratch)
        with serving(scratch, place, node, "fixture.mjs") as url:
            direct = checks(scratch, place, node, url, "direct")
            through = checks(scratch, place, node, endpoint(scratch, "fixture", "--url", url), "through")
        log = scratch.firedoor("log", "--json").stdout
        if "endpoint/user/fixture" not in log or "tools/call" not in log:
            raise Missing("nothing went through Firedoor")
    if arguments.keep:
        arguments.keep.write_text(json.dumps({"direct": direct, "through": through}, indent=1), encoding="utf-8")
    different = sorted(key for key in direct.keys() | through.keys() if direct.get(key) != through.get(key))
    for key in different:
        print(f"  {key}: direct {direct.get(key, 'absent')}, through Firedoor {through.get(key, 'absent')}")
    for side, got in (("direct", direct), ("through Firedoor", through)):
        counted = {status: sum(s == status for s in got.values()) for status in sorted(set(got.values()))}
        print(f"{side}: " + ", ".join(f"{count} {status.lower()}" for status, count in counted.items()))
    scenarios = len({key.split(" ")[0] for key in direct})
    print(f"{scenarios} scenarios, {len(direct)} checks: " + (f"{len(different)} differ" if different else "the same"))
    return 1 if different else 0


if __name__ == "__main__":
    run(main)
