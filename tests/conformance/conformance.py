#!/usr/bin/env python3
"""The MCP conformance suite on servers of our own, direct and through Firedoor, compared check by check, with every set of
requirements that the suite has released: one for each revision of the protocol.

  conformance.py [--keep FILE] [REVISION…]

What the suite runs besides, without scoring it (extensions, scenarios that came later), is compared and shown as well.

Through Firedoor: suite -> endpoint (firedoor endpoints add) -> shim -> engine -> firedoor-remote -> server. Exit code 1 when
any check of a required scenario comes out differently, 2 when the suite cannot be run. The last line is the comparison.
"""

import argparse
import contextlib
import itertools
import json
import pathlib
import re
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "harness"))
from scratch import Missing, Scratch, as_ordinary_user, run  # noqa: E402

SUITE = "node_modules/@modelcontextprotocol/conformance"
# The first revision without sessions has a server of its own.
MODERN = "2026-07-28"
# What the suite puts behind a scenario's name.
TIME = re.compile(r"-\d{4}-\d{2}-\d{2}T.*")


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


def revisions(place):
    """Those with a set of requirements."""
    found = sorted(file.stem for file in (place / SUITE / "requirements").glob("*.yaml"))
    if not found:
        raise Missing("the suite has no requirements")
    return found


def required(place, revision):
    """The scenarios that a revision requires of servers. The suite runs others besides, and scores them for nobody."""
    lines = (place / SUITE / f"requirements/{revision}.yaml").read_text(encoding="utf-8").splitlines()
    after = lines[lines.index("server:") + 1 :]
    names = [line.strip().removeprefix("- ") for line in itertools.takewhile(lambda line: line.startswith("  - "), after)]
    if not names:
        raise Missing(f"{revision} requires nothing")
    return set(names)


def checks(scratch, place, node, url, revision, name):
    """What each check of each scenario says, and why."""
    results = place / name / revision
    suite = (node, place / SUITE / "dist/index.js", "server", "--requirements", revision)
    done = scratch.run(*suite, "--url", url, "-o", results, cwd=place, timeout=900)
    found = {}
    for file in sorted(results.rglob("checks.json")):
        # server-SCENARIO-TIME
        scenario = TIME.sub("", file.parent.name.removeprefix("server-"))
        for number, check in enumerate(json.loads(file.read_text(encoding="utf-8"))):
            said = (check["status"], check.get("errorMessage") or "")
            found[f"{revision} {scenario} {number} {check['id']}"] = said
    if not found:
        raise Missing(f"the suite reported nothing: exit {done.returncode}: {done.stderr.strip()[-2000:]}")
    return found


def counted(found):
    """How many checks say what."""
    statuses = [status for status, _ in found.values()]
    return ", ".join(f"{statuses.count(status)} {status.lower()}" for status in sorted(set(statuses)))


def main():
    """Runs the suite twice for each revision."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--keep", type=pathlib.Path, help="writes both runs' checks there, as JSON")
    parser.add_argument("revisions", nargs="*", metavar="REVISION", help="only these")
    arguments = parser.parse_args()
    as_ordinary_user(__file__)
    direct, through, needed = {}, {}, set()
    with Scratch() as scratch:
        place, node = install(scratch)
        for revision in arguments.revisions or revisions(place):
            fixture = "modern-fixture.mjs" if revision >= MODERN else "fixture.mjs"
            with serving(scratch, place, node, fixture) as url:
                way = endpoint(scratch, revision, "--url", url)
                seen = checks(scratch, place, node, url, revision, "direct")
                again = checks(scratch, place, node, way, revision, "through")
            print(f"  {revision}: direct {counted(seen)}; through Firedoor {counted(again)}", flush=True)
            if f"endpoint/user/{revision}" not in scratch.firedoor("log", "--json").stdout:
                raise Missing("nothing went through Firedoor")
            needed |= {(revision, scenario) for scenario in required(place, revision)}
            direct |= seen
            through |= again
    if arguments.keep:
        arguments.keep.write_text(json.dumps({"direct": direct, "through": through}, indent=1), encoding="utf-8")
    absent = ("absent", "")
    pairs = {key: (direct.get(key, absent), through.get(key, absent)) for key in direct.keys() | through.keys()}
    different = {True: [], False: []}
    for key, ((one, _), (other, why)) in sorted(pairs.items()):
        if one != other:
            is_needed = tuple(key.split(" ")[:2]) in needed
            different[is_needed].append(key)
            which = "" if is_needed else " (not required)"
            print(f"  {key}{which}: direct {one}, through Firedoor {other} {why}".rstrip())
    of = {tuple(key.split(" ")[:2]) for key in direct}
    if needed - of:
        print(f"  did not run: {', '.join(' '.join(which) for which in sorted(needed - of))}")
        return 1
    beside = {tuple(key.split(" ")[:2]) for key in different[False]}
    print(f"beside what is required: {len(of - needed)} scenarios, {len(beside)} of them differ")
    count = sum(tuple(key.split(" ")[:2]) in needed for key in direct)
    print(
        f"{len({revision for revision, _ in needed})} sets of requirements, {len(needed)} scenarios, {count} checks: "
        + (f"{len(different[True])} differ" if different[True] else "no difference")
    )
    return 1 if different[True] else 0


if __name__ == "__main__":
    run(main)
