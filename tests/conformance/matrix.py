#!/usr/bin/env python3
"""Official SDKs' clients see through Firedoor what they see direct, of official SDKs' servers, in each era and over each
transport: results, errors, progress, sampling, elicitation, changes, cancellation, results of 20 MiB (15 with the Rust client), 1,000 calls at once;
and tasks, which of these SDKs only TypeScript's 1.x has on both sides.

  matrix.py [CELL…]        a cell is named as it is printed, or a part of that

Direct a client speaks the server's own transport; through Firedoor it starts the shim, which starts the server or speaks
HTTP to it. Exit code 1 when anything differs, 2 when something cannot be installed."""

import contextlib
import json
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
sys.path.insert(0, str(HERE.parent / "harness"))
from conformance import install, serving  # noqa: E402
from scratch import Missing, Scratch, as_ordinary_user, find_programs, run  # noqa: E402

RUST = "firedoor-matrix-rust"
# This server keeps no session over HTTP.
KEEPS_NONE = "typescript-2"
# What every complete look has. A server that keeps no session over HTTP cannot speak first in the era that has them, nor be
# told of a cancellation. It sees that a request was closed, which some clients do, and Firedoor does not: by the
# specification that is no cancellation (2025-11-25, basic/transports).
COMPLETE = {"at_once": lambda seen: seen == 1000, "large": lambda seen: seen[0] >= 15 << 20 and seen[1]}


def programs(scratch):
    """The clients and the servers, with the eras that they know: name -> (eras, command)."""
    place, node = install(scratch)
    python = scratch.home / "python/bin/python"
    for command in (
        ["python3", "-m", "venv", scratch.home / "python"],
        [python, "-m", "pip", "install", "-q", "-r", place / "python/requirements.txt"],
    ):
        done = scratch.run(*command, timeout=600)
        if done.returncode:
            raise Missing(f"{command[-1]}: {done.stderr.strip()[-500:]}")
    rust = find_programs() / RUST
    if not rust.is_file():
        raise Missing(f"{RUST} is not beside our programs: run make conformance")
    both = ("modern", "legacy")
    clients = {
        "typescript-1": (("legacy",), [node, place / "typescript/client_v1.mjs"]),
        "typescript-2": (both, [node, place / "typescript/client.mjs"]),
        "python-2": (both, [python, place / "python/client.py"]),
        "rust-3": (both, [rust, "client"]),
    }
    servers = {
        "typescript-1": (("legacy",), [node, place / "typescript/server_v1.mjs"]),
        "typescript-2": (both, [node, place / "typescript/server.mjs"]),
        "python-2": (both, [python, place / "python/server.py"]),
        "rust-3": (both, [rust, "server"]),
    }
    return clients, servers


def look(scratch, client, era, *target):
    """What the client sees."""
    done = scratch.run(*client, era, *target, timeout=300)
    if done.returncode or not done.stdout.strip():
        raise Missing(f"{pathlib.Path(client[-1]).name} {era}: exit {done.returncode}: {done.stderr.strip()[-1500:]}")
    return json.loads(done.stdout.strip().split("\n")[-1])


@contextlib.contextmanager
def targets(scratch, server, name, transport):
    """How a client reaches the server direct, and how through Firedoor."""
    shim = ["--", scratch.bin / "firedoor-shim", "--entry", f"matrix/user/{name}"]
    if transport == "stdio":
        yield ["--", *server, "--stdio"], [*shim, "--", *server, "--stdio"]
        return
    with serving(scratch, scratch.home, *server, "--http") as url:
        yield [url], [*shim, "--url", url]


def compare(scratch, client, server, era, name, transport):
    """The keys that differ, and what is there that must be."""
    with targets(scratch, server, name, transport) as (direct, through):
        seen, again = look(scratch, client, era, *direct), look(scratch, client, era, *through)
    if "client_v1" in str(client[-1]) and name.startswith("typescript-1") and "tasks" not in seen:
        raise Missing("the SDK has no tasks any more")
    if (name, era) == (f"{KEEPS_NONE}-http", "legacy"):
        del seen["given_up"], again["given_up"]
    different = [key for key in sorted(seen.keys() | again.keys()) if seen.get(key) != again.get(key)]
    for key in different:
        print(f"    {key}: direct {json.dumps(seen.get(key))[:400]}, through Firedoor {json.dumps(again.get(key))[:400]}")
    lacks = [key for key, right in COMPLETE.items() if not right(seen[key])]
    if lacks:
        print(f"    direct, too, {', '.join(lacks)} is not right")
    return not different and not lacks, len(seen)


def main():
    """Looks at each cell both ways."""
    as_ordinary_user(__file__, RUST)
    wanted = sys.argv[1:]
    right = cells = things = 0
    with Scratch() as scratch:
        clients, servers = programs(scratch)
        for client, (eras, command) in clients.items():
            for server, (known, serve) in servers.items():
                for transport in ("stdio", "http"):
                    for era in (era for era in eras if era in known):
                        cell = f"{client} client, {server} server, {transport}, {era}"
                        if wanted and not any(part in cell for part in wanted):
                            continue
                        same, looked = compare(scratch, command, serve, era, f"{server}-{transport}", transport)
                        print(f"  {cell}: {'the same' if same else 'NOT the same'}", flush=True)
                        cells, right, things = cells + 1, right + same, things + looked
        log = scratch.firedoor("log", "--json").stdout
    if "matrix/user/" not in log or "tools/call" not in log:
        raise Missing("nothing went through Firedoor")
    print(f"{cells} pairs of an SDK's client and server, {things} things looked at: {right} pairs the same")
    return 0 if right == cells and cells else 1


if __name__ == "__main__":
    run(main)
