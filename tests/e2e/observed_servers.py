#!/usr/bin/env python3
"""Real servers are observed, and run under the profile that is proposed for them.

observed_servers.py [NAME...]   the servers named, of real_servers.toml; filesystem, memory and git without a name

Each server is installed by a first run, observed during a second, and started a third time with the proposal in the
directory of profiles, as it was proposed. Exits 1 when it answers otherwise then, 2 when something has to be installed
first.
"""

import os
import pathlib
import signal
import sys
import tempfile
import tomllib

from real_servers import LIST, Broken, Missing, Scratch, Server, as_ordinary_user, uv
from scratch import alive, run, until

USUAL = ["filesystem", "memory", "git"]
ENTRY = "cursor/user/real"


def check(server):
    """What to print, and whether it is as it should be."""
    command = server.protect()
    server.visit(command)
    done = server.scratch.firedoor("observe", ENTRY, "on")
    if done.returncode:
        return f"FAILED  observe on: {done.stderr.strip()}", False
    _tools, results, _words = server.visit(command)
    shown = server.scratch.json("observe", ENTRY, "show")
    proposal, files = shown["proposal"], [seen for seen in shown["record"] if seen["kind"] == "file"]
    place = server.scratch.home / ".config/firedoor/profiles" / f"{proposal['name']}.toml"
    server.scratch.write(str(place.relative_to(server.scratch.home)), proposal["toml"])
    engine = server.scratch.engine_pid()
    os.kill(engine, signal.SIGTERM)
    until(lambda: not alive(engine), 30)
    _tools, again, _words = server.visit(command)
    problems = server.scratch.json("status")["problems"]
    kept = [server.same(result) for result in again] == [server.same(result) for result in results]
    lines = [line for line in proposal["toml"].splitlines() if line.startswith('  "')]
    refused = sum(not seen["allowed"] for seen in files)
    text = f"{len(files)} uses of files, {refused} refused, {len(lines)} lines proposed; "
    text += "answers the same under the proposal" if kept and not problems else f"DIFFERS: {again} {problems}"
    return ("ok      " if kept and not problems else "FAILED  ") + text, kept and not problems


def main():
    """Checks the servers; the exit code."""
    as_ordinary_user(__file__)
    names = sys.argv[1:] or USUAL
    entries = [entry for entry in tomllib.loads(LIST.read_text())["server"] if entry["name"] in names]
    good = True
    with tempfile.TemporaryDirectory(prefix="fd-observed-", dir="/tmp") as place:
        tools = uv(pathlib.Path(place) / "uv")
        for entry in entries:
            with Scratch() as scratch:
                scratch.env["PATH"] += os.pathsep + str(tools)
                places = {"home": str(scratch.home), "work": str(scratch.home / "work"), "port": "0"}
                server = Server(scratch, entry, places | {"servers": str(scratch.servers)})
                server.fresh()
                try:
                    line, fine = check(server)
                except Broken as error:
                    line, fine = f"FAILED  {error}", False
                print(f"{entry['name']:<20} {line}", flush=True)
                good = good and fine
    return 0 if good else 1


if __name__ == "__main__":
    run(main)
