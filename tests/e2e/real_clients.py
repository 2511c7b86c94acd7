#!/usr/bin/env python3
"""Real clients connect through a protected configuration as they do without, and get their file back afterwards.

Installs the clients from the npm registry into a scratch directory. Exits 1 when a client sees something else, 2 when
something has to be built or installed first. A client that cannot be installed is skipped and named; those in
clients.NEEDED must run. Arguments choose clients by their id.
"""

import pathlib
import sys
import tempfile

TESTS = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(TESTS / "harness"))
from clients import ALL, CONNECTED, NEEDED, Unusable, install  # noqa: E402
from scratch import Scratch, as_ordinary_user, run  # noqa: E402


class Failed(Exception):
    """A client does not see what it should."""


def expect(condition, what):
    """Fails the client when something is not so."""
    if not condition:
        raise Failed(what)


def states(scratch, client):
    """Server -> its state, as our scan has it."""
    found = scratch.json("scan")["clients"]
    entries = [entry for one in found if one["id"] == client.id for file in one["files"] for entry in file["entries"]]
    return {entry["id"].rsplit("/", 1)[1]: entry["state"] for entry in entries}


def started(scratch, client):
    """Servers of the client that were started through us, by their entry."""
    rows = scratch.firedoor("log", "--json").stdout.splitlines()
    return [row for row in rows if '"started"' in row and f'"{client.id}/' in row]


def home_only(scratch, prefixes):
    """Takes variables away from everything in the scratch home, where one client keeps them from its servers."""
    if not prefixes:
        return
    scratch.env = {name: value for name, value in scratch.env.items() if not name.startswith(prefixes)}
    # Where the engine's socket is then; the scratch home stops the engine by the other name.
    (scratch.runtime / "firedoor").symlink_to(scratch.home / ".local/state/firedoor/run")


def check(client, program):
    """The whole way of one client: unprotected, protected, restored."""
    with Scratch() as scratch:
        scratch.env |= client.env
        home_only(scratch, client.keeps_from_servers)
        scratch.write("files/a.txt", "hello\n")
        servers = {
            "echo": [scratch.python, str(scratch.servers / "echo_server.py")],
            "files": [scratch.python, str(scratch.servers / "files_server.py"), str(scratch.home / "files")],
        }
        files = client.prepare(scratch, program, servers)
        expect(files, "it has no file with servers")
        told = [word for place in client.projects for word in ("--project", str(scratch.home / place))]

        before = client.see(scratch, program)
        expect(set(before) == set(servers), f"unprotected it sees {before}")
        expect(all(CONNECTED in status for status in before.values()), f"unprotected it sees {before}")
        original = {file: file.read_bytes() for file in files}

        done = scratch.firedoor("protect", client.id, "--yes", *told, timeout=300)
        expect(done.returncode == 0, f"protect: exit {done.returncode}: {done.stdout}{done.stderr}")
        # It has then listed the tools of each server itself, directly and through us.
        answers = "answers through Firedoor" if client.brought else "answers as before"
        expect(done.stdout.count(answers) == len(servers), f"protect: {done.stdout}")
        expect(states(scratch, client) == dict.fromkeys(servers, "protected"), f"protected: {states(scratch, client)}")
        protected = {file: file.read_bytes() for file in files}
        runs = len(started(scratch, client))

        after = client.see(scratch, program)
        expect(after == before, f"protected it sees {after}, before {before}")
        expect(len(started(scratch, client)) >= runs + len(servers), "the servers were not started through us")
        if not client.rewritten:
            same = {file: file.read_bytes() for file in files} == protected
            expect(same, "the client changed the file, which is not known of it")

        done = scratch.firedoor("restore", client.id)
        expect(done.returncode == 0, f"restore: exit {done.returncode}: {done.stdout}{done.stderr}")
        read = client.servers if client.rewritten else bytes
        same = all(read(file.read_bytes()) == read(was) for file, was in original.items())
        expect(same, "restored, the file is not what it was")
        return before


def main():
    """Checks every client; the exit code."""
    as_ordinary_user(__file__)
    ran, failed = [], False
    with tempfile.TemporaryDirectory(prefix="fd-clients-", dir="/tmp") as place:
        programs = {}
        for client in (one for one in ALL if len(sys.argv) < 2 or one.id in sys.argv[1:]):
            try:
                if client.package not in programs:
                    programs[client.package] = install(client, pathlib.Path(place) / str(len(programs)))
                program = programs[client.package]
            except Unusable as error:
                print(f"skipped  {client.package}: {error}", flush=True)
                continue
            try:
                seen = check(client, program)
            except (Failed, Unusable) as error:
                print(f"FAILED   {type(client).__name__}, {client.package}: {error}", flush=True)
                failed = True
            else:
                shown = "; ".join(f"{name}: {status}" for name, status in sorted(seen.items()))
                print(f"ok       {type(client).__name__}, {client.package}: the same with and without ({shown})", flush=True)
            ran.append(client.id)
    missing = [name for name in NEEDED if name not in ran and len(sys.argv) < 2]
    if failed:
        return 1
    if missing:
        print(f"not run: {', '.join(missing)}; npm and its registry are needed", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    run(main)
