#!/usr/bin/env python3
"""The MCP conformance suite on servers and a client of our own, direct and through Firedoor, compared check by check, with every
set of requirements that the suite has released: one for each revision of the protocol, for servers and for clients.

  conformance.py [--keep FILE] [REVISION…]

What the suite runs besides, without scoring it (extensions, scenarios that came later), counts as well. Direct, each scenario
succeeds, but for those in EXCEPTIONS, which must not.

Through Firedoor: suite -> endpoint (firedoor endpoints add) -> shim -> engine -> firedoor-remote -> server, and
client -> shim -> engine -> firedoor-remote -> suite. Exit code 1 when anything comes out differently, fails or does not run, 2
when the suite cannot be run. The last line is the comparison.

Scenarios of clients that log in (auth/) are not among them: no client behind Firedoor does. Its own logins are a command's, with
the user's browser: logins.py runs these scenarios with it as the client.
"""

import argparse
import contextlib
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
# For a whole set, and for one scenario, in seconds.
PATIENCE = 900
PATIENCE_FOR_ONE = 120
# Scenarios that are left out.
LOGINS = "auth/"
# What the suite puts behind a scenario's name.
TIME = re.compile(r"-\d{4}-\d{2}-\d{2}T.*")

# Scenarios that do not succeed direct, and why. They are compared all the same.
NO_TASKS = "the official SDK (2.4) has no server for tasks of this revision, an extension"
EXCEPTIONS = {
    f"{MODERN} server {name}": why
    for name, why in {
        "tasks-capability-negotiation": NO_TASKS,
        "tasks-dispatch-and-envelope": NO_TASKS,
        "tasks-lifecycle": NO_TASKS,
        "tasks-mrtr-composition": NO_TASKS,
        "tasks-mrtr-input": NO_TASKS,
        "tasks-request-headers": NO_TASKS,
        "tasks-request-state-removal": NO_TASKS,
        "tasks-required-task-error": NO_TASKS,
        "tasks-status-notifications": NO_TASKS,
        "tasks-wire-fields": NO_TASKS,
    }.items()
}


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


def scenarios(place, revision, leg):
    """What a revision requires of this side, and what the suite runs besides."""
    required, beside, section, name = set(), set(), None, None
    for line in (place / SUITE / f"requirements/{revision}.yaml").read_text(encoding="utf-8").splitlines():
        if re.fullmatch(r"\w+:", line):
            section = line[:-1]
        elif line.startswith("  - "):
            name = line.removeprefix("  - ").removeprefix("scenario: ").strip()
            if section == leg and not name.startswith(LOGINS):
                required.add(name)
        elif section == "not_scored" and line.strip() == f"leg: {leg}" and not name.startswith(LOGINS):
            beside.add(name)
    if not required:
        raise Missing(f"{revision} requires nothing of a {leg}")
    return required, beside


def suite(scratch, place, node, results, *words, seconds=PATIENCE):
    """Runs the suite: its exit code, or why it did not come to its end; what it found until then is kept."""
    try:
        done = scratch.run(node, place / SUITE / "dist/index.js", *words, "-o", results, cwd=place, timeout=seconds)
    except subprocess.TimeoutExpired:
        return None, f"the suite did not end within {seconds} s"
    return done.returncode, None


def checks(file):
    """What each check of a scenario says, and why. Lines that only tell what was sent say nothing."""
    found = {}
    for check in json.loads(file.read_text(encoding="utf-8")):
        if check["status"] != "INFO":
            same = f"{check['id']} {check['name']}"
            number = sum(key.startswith(f"{same} #") for key in found) + 1
            found[f"{same} #{number}"] = (check["status"], check.get("errorMessage") or "")
    return found


def servers(scratch, place, node, revision):
    """The suite as the client of our server: what it says direct and through Firedoor, scenario by scenario."""
    fixture = "modern-fixture.mjs" if revision >= MODERN else "fixture.mjs"
    said = {}
    with serving(scratch, place, node, fixture) as url:
        for way, address in {"direct": url, "through": endpoint(scratch, revision, "--url", url)}.items():
            results = place / "results" / way / revision
            _, ended = suite(scratch, place, node, results, "server", "--requirements", revision, "--url", address)
            # server-SCENARIO-TIME
            files = {TIME.sub("", file.parent.name.removeprefix("server-")): file for file in results.rglob("checks.json")}
            said[way] = {name: checks(file) for name, file in files.items()}, ended
    if f"endpoint/user/{revision}" not in scratch.firedoor("log", "--json").stdout:
        raise Missing("nothing went through Firedoor")
    return said["direct"], said["through"]


def clients(scratch, place, node, revision):
    """The suite as the server of our client: the same."""
    said = {}
    for way in ("direct", "through"):
        found, late = {}, []
        for name in sorted(set.union(*scenarios(place, revision, "client"))):
            entry = f"conformance/user/{revision}-{name}"
            transport = ["direct"] if way == "direct" else [scratch.bin / "firedoor-shim", entry]
            command = " ".join(map(str, [node, place / "suite-client.mjs", *transport]))
            results = place / "results" / way / f"{revision}-{name}"
            words = ("client", "--command", command, "--scenario", name, "--spec-version", revision)
            code, ended = suite(scratch, place, node, results, *words, seconds=PATIENCE_FOR_ONE)
            late += [f"{name}: {ended}"] if ended else []
            for file in results.rglob("checks.json"):
                # What no check sees: a client that fails.
                said_last = "".join(path.read_text(encoding="utf-8")[-500:] for path in file.parent.glob("stderr.txt"))
                found[name] = checks(file) | {"the suite's verdict": ("SUCCESS", "") if code == 0 else ("FAILURE", said_last)}
        said[way] = found, "; ".join(late) or None
    log = scratch.firedoor("log", "--json").stdout
    if not all(f"conformance/user/{revision}-{name}" in log for name in said["through"][0]):
        raise Missing("not everything went through Firedoor")
    return said["direct"], said["through"]


LEGS = {"server": servers, "client": clients}


def succeeds(said):
    """Whether a scenario's checks do."""
    statuses = {status for status, _ in said.values()}
    return "SUCCESS" in statuses and statuses <= {"SUCCESS", "SKIPPED"}


def counted(found):
    """How many checks say what."""
    statuses = [status for said in found.values() for status, _ in said.values()]
    return ", ".join(f"{statuses.count(status)} {status.lower()}" for status in sorted(set(statuses))) or "nothing"


def judge(of, required, beside, direct, through):
    """Shows what is wrong with a set; how many scenarios are wrong in which way."""
    wrong = {"differ": 0, "fail direct": 0, "are exceptions and succeed": 0, "did not run": 0}
    for name in sorted(required | beside | direct.keys() | through.keys()):
        one, other = direct.get(name, {}), through.get(name, {})
        which = f"{of} {name}" + ("" if name in required else " (not required)")
        if not one:
            wrong["did not run"] += 1
            print(f"  {which}: did not run direct")
            continue
        absent = ("absent", "")
        pairs = [(check, one.get(check, absent), other.get(check, absent)) for check in sorted(one.keys() | other.keys())]
        different = [pair for pair in pairs if pair[1][0] != pair[2][0]]
        wrong["differ"] += bool(different)
        for check, (status, _), (again, why) in different:
            print(f"  {which}: {check}: direct {status}, through Firedoor {again} {why}".rstrip())
        is_exception = f"{of} {name}" in EXCEPTIONS
        if succeeds(one) == is_exception:
            wrong["are exceptions and succeed" if is_exception else "fail direct"] += 1
            for check, (status, why), _ in pairs:
                if is_exception or status != "SUCCESS":
                    print(f"  {which}: {check}: direct {status} {why}".rstrip())
    return wrong


def main():
    """Runs the suite twice for each set."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--keep", type=pathlib.Path, help="writes both runs' checks there, as JSON, after each set")
    parser.add_argument("revisions", nargs="*", metavar="REVISION", help="only these")
    arguments = parser.parse_args()
    as_ordinary_user(__file__)
    kept, total, wrong = {"direct": {}, "through": {}}, {"scenarios": 0, "required": 0, "checks": 0}, {}
    with Scratch() as scratch:
        place, node = install(scratch)
        sets = arguments.revisions or revisions(place)
        for revision, leg in ((revision, leg) for revision in sets for leg in LEGS):
            of = f"{revision} {leg}"
            (direct, ended), (through, also) = LEGS[leg](scratch, place, node, revision)
            print(f"{of}: {len(direct)} scenarios: direct {counted(direct)}; through Firedoor {counted(through)}", flush=True)
            for way, found in (("direct", direct), ("through", through)):
                kept[way] |= {f"{of} {name}": said for name, said in found.items()}
            if arguments.keep:
                arguments.keep.write_text(json.dumps(kept, indent=1), encoding="utf-8")
            required, beside = scenarios(place, revision, leg)
            found = judge(of, required, beside, direct, through)
            for way, why in (("direct", ended), ("through Firedoor", also)):
                if why:
                    print(f"  {of}: {way}, {why}")
                found["runs broke off"] = found.get("runs broke off", 0) + bool(why)
            wrong = {what: wrong.get(what, 0) + count for what, count in found.items()}
            total["scenarios"] += len(direct)
            total["required"] += len(required & direct.keys())
            total["checks"] += sum(map(len, direct.values()))
            sys.stdout.flush()
    for why in sorted(set(EXCEPTIONS.values())):
        names = [name for name in EXCEPTIONS if EXCEPTIONS[name] == why and name in kept["direct"]]
        if names:
            print(f"{len(names)} scenarios do not succeed direct either: {why}")
    wrong = {what: count for what, count in wrong.items() if count}
    print(
        f"{len(sets)} sets of requirements, {total['scenarios']} scenarios ({total['required']} of them required), "
        f"{total['checks']} checks: " + (", ".join(f"{count} {what}" for what, count in wrong.items()) or "no difference")
    )
    return 1 if wrong else 0


if __name__ == "__main__":
    run(main)
