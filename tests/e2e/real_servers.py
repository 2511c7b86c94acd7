#!/usr/bin/env python3
"""Real servers from npm and PyPI offer the same, and answer a call alike, with and without Firedoor.

real_servers.py [--time N] [NAME...]   all servers of real_servers.toml, or those named; --time measures their starts

Each server is started twice in a scratch home: directly, and through a protected configuration, which installs it in the
sandbox first. Prints one line per server. Exits 1 when one behaves otherwise with Firedoor than without, 2 when something
has to be built or installed first. A server that does not work without Firedoor either is named and counts as not run.
"""

import argparse
import contextlib
import functools
import http.server
import json
import os
import pathlib
import queue
import re
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import tomllib

TESTS = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(TESTS / "harness"))
from scratch import Missing, Scratch, as_ordinary_user, run, until  # noqa: E402

LIST = pathlib.Path(__file__).with_suffix(".toml")
# Installing comes first, and the registry may be slow.
START_LIMIT = 600.0
CALL_LIMIT = 120.0
# Fewer than these compared is no test.
ENOUGH = 25
UV = "uv==0.13.8"


class Broken(Exception):
    """A server did not do what it should."""


class Session:
    """One run of a server, spoken to over its streams."""

    def __init__(self, scratch, command, cwd, env):
        self.home = scratch.home
        self.log = tempfile.TemporaryFile()  # noqa: SIM115: closed with the session
        self.began = time.monotonic()
        self.process = scratch.start(
            *command, cwd=cwd, env={**scratch.env, **env}, stdin=-1, stdout=-1, stderr=self.log, start_new_session=True
        )
        self.answers, self.number, self.lock = queue.Queue(), 0, threading.Lock()
        threading.Thread(target=self.listen, daemon=True).start()

    def listen(self):
        """Keeps what answers a request; None at the end. Requests of the server's are refused."""
        for line in self.process.stdout:
            with contextlib.suppress(ValueError):
                message = json.loads(line)
                if isinstance(message, dict) and "method" not in message:
                    self.answers.put(message)
                elif isinstance(message, dict) and "id" in message:
                    self.send({"id": message["id"], "error": {"code": -32601, "message": "not supported"}})
        self.answers.put(None)

    def send(self, message):
        """Writes one message."""
        with self.lock, contextlib.suppress(BrokenPipeError):
            self.process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
            self.process.stdin.flush()

    def ask(self, method, params, limit):
        """The answer to a request: its result or its error."""
        self.number += 1
        self.send({"id": self.number, "method": method, "params": params})
        try:
            while (message := self.answers.get(timeout=limit)) is not None:
                if message.get("id") == self.number:
                    return {name: message[name] for name in ("result", "error") if name in message}
        except queue.Empty:
            raise Broken(f"no answer to {method} within {limit:.0f} s{self.last_words()}") from None
        raise Broken(f"it ended before it answered {method}{self.last_words()}")

    def open(self):
        """The handshake; how long it took."""
        params = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "e2e", "version": "1"}}
        answer = self.ask("initialize", params, START_LIMIT)
        if "result" not in answer:
            raise Broken(f"initialize: {answer}")
        took = time.monotonic() - self.began
        self.send({"method": "notifications/initialized"})
        return took

    def tools(self):
        """All pages of the list of tools."""
        tools, cursor = [], None
        for _page in range(20):
            answer = self.ask("tools/list", {"cursor": cursor} if cursor else {}, CALL_LIMIT)
            if "result" not in answer:
                raise Broken(f"tools/list: {answer}")
            tools += answer["result"]["tools"]
            cursor = answer["result"].get("nextCursor")
            if not cursor:
                break
        return tools

    def last_words(self):
        """The end of what it wrote to its log."""
        self.log.seek(0)
        lines = self.log.read().decode(errors="replace").strip().splitlines()
        return "".join(f"\n             | {line[:300]}" for line in lines[-12:])

    def close(self):
        """Ends it as clients do: by closing its input, then by force. A browser that it left is ended, too."""
        with contextlib.suppress(OSError):
            self.process.stdin.close()
        for end in (signal.SIGTERM, signal.SIGKILL):
            try:
                self.process.wait(timeout=10)
                break
            except subprocess.TimeoutExpired:
                os.killpg(self.process.pid, end)
        self.process.wait()
        for pid in left_behind(self.home):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.log.close()


def left_behind(home):
    """What still runs in a scratch home besides Firedoor: an unconfined server's browser has a session of its own."""
    for place in pathlib.Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            ours = f"HOME={home}".encode() in (place / "environ").read_bytes().split(b"\0")
            if ours and not (place / "comm").read_text().startswith("firedoor"):
                yield int(place.name)


class Server:
    """One entry of the list, in a scratch home."""

    def __init__(self, scratch, entry, places):
        self.scratch, self.entry, self.places = scratch, entry, places
        self.work = scratch.home / "work"
        self.command = self.fill(entry["run"])
        self.env = self.fill(entry.get("env", {}))

    def fill(self, value):
        """Puts the places in for {work}, {home} and so on."""
        if isinstance(value, str):
            return re.sub(r"\{(\w+)\}", lambda found: self.places.get(found[1], found[0]), value)
        if isinstance(value, list):
            return [self.fill(part) for part in value]
        if isinstance(value, dict):
            return {name: self.fill(part) for name, part in value.items()}
        return value

    def fresh_once(self):
        """What is there before the first start."""
        self.work.mkdir()
        self.commands(self.entry.get("once", []))

    @contextlib.contextmanager
    def beside(self):
        """The program that runs meanwhile, if there is one, from when it listens."""
        command = self.fill(self.entry.get("beside", []))
        if not command:
            yield
            return
        # Another home: it is not left behind by a server.
        env = {**self.scratch.env, "HOME": str(self.scratch.root)}
        with self.scratch.start(*command, env=env, stdout=subprocess.DEVNULL, start_new_session=True) as process:
            try:
                if not until(lambda: listens(int(self.places["spare"])), 20):
                    raise Missing(f"{command[0]} does not listen")
                yield
            finally:
                process.terminate()

    def fresh(self):
        """The working directory as each run finds it."""
        shutil.rmtree(self.work, ignore_errors=True)
        self.work.mkdir()
        for name, content in self.entry.get("files", {}).items():
            self.scratch.write(name, self.fill(content))
        self.commands(self.entry.get("prepare", []))

    def commands(self, commands):
        """Runs what the entry needs first."""
        for command in commands:
            done = self.scratch.run(*self.fill(command), cwd=self.scratch.home / "work", timeout=600)
            if done.returncode:
                raise Missing(f"{command}: exit {done.returncode}: {done.stderr.strip()[-300:]}")

    def same(self, value):
        """A result without what differs from run to run."""
        text = json.dumps(value, sort_keys=True, ensure_ascii=False)
        for pattern in self.entry.get("volatile", []):
            text = re.sub(pattern, "~", text)
        return text

    def session(self, command):
        """Starts it, in its working directory as each run finds it."""
        self.fresh()
        more = self.entry.get("unconfined", {}) if command == self.command else {}
        return Session(self.scratch, command, self.work, {**self.env, **more})

    def visit(self, command):
        """Starts it, lists its tools and calls one."""
        session = self.session(command)
        try:
            session.open()
            tools = session.tools()
            results = []
            for call in self.entry["calls"]:
                params = {"name": call["tool"], "arguments": self.fill(call.get("arguments", {}))}
                results.append(session.ask("tools/call", params, CALL_LIMIT))
            return tools, results, session.last_words()
        finally:
            session.close()

    def protect(self):
        """The command line through Firedoor."""
        command = self.scratch.protect_one("real", *self.command)
        if grants := self.fill(self.entry.get("grants", [])):
            done = self.scratch.firedoor("grants", "add", "cursor/user/real", *grants)
            if done.returncode:
                raise Broken(f"grants add: {done.stderr.strip()}")
        return command

    def starts(self, command, times):
        """The median time from the start to the answer to `initialize`."""
        took = []
        for _time in range(times):
            session = self.session(command)
            try:
                took.append(session.open())
            finally:
                session.close()
        return statistics.median(took)

    def refused(self):
        """What Firedoor says it refused."""
        rows = self.scratch.firedoor("log", "--json").stdout.splitlines()
        kept = [row for row in rows if '"attempt' in row or '"refused"' in row]
        return "".join(f"\n             ! {row[:400]}" for row in kept[-8:])


def failed(result):
    """Whether a call failed."""
    return "error" in result or result["result"].get("isError", False)


def compare(server, times):
    """Runs a server both ways; what to print, and whether it is as it should be."""
    try:
        tools, results, words = server.visit(server.command)
    except Broken as error:
        return f"not run      unconfined: {error}", None
    bad = [result for result in results if failed(result)]
    if bad:
        return f"not run      unconfined, the call gives {json.dumps(bad[0])[:600]}{words}", None
    command = server.protect()
    try:
        tools_now, results_now, words = server.visit(command)
    except Broken as error:
        return f"FAILED       unconfined ok; confined: {error}{server.refused()}", False
    same_tools = server.same(tools_now) == server.same(tools)
    same_results = [server.same(result) for result in results_now] == [server.same(result) for result in results]
    line = f"unconfined ok, confined ok, {len(tools)} tools {'the same' if same_tools else 'DIFFER'}, result "
    line += "the same" if same_results else "DIFFERS"
    if not (same_tools and same_results):
        pairs = [] if same_tools else [(server.same(tools), server.same(tools_now))]
        pairs += [(server.same(a), server.same(b)) for a, b in zip(results, results_now, strict=True)]
        for a, b in ((a, b) for a, b in pairs if a != b):
            at = len(os.path.commonprefix([a, b]))
            line += f"\n             < {a[max(at - 200, 0) : at + 300]}\n             > {b[max(at - 200, 0) : at + 300]}"
        return f"FAILED       {line}{words}{server.refused()}", False
    if times:
        direct, through = server.starts(server.command, times), server.starts(command, times)
        line += f"; start {direct * 1000:.0f} ms direct, {through * 1000:.0f} ms through Firedoor (medians of {times})"
    return f"ok           {line}", True


def spare():
    """A port that nobody uses."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        return str(free.getsockname()[1])


def listens(port):
    """Whether something listens there."""
    with socket.socket() as peer:
        return peer.connect_ex(("127.0.0.1", port)) == 0


def uv(place):
    """The directory with uv and uvx: those on PATH, else from PyPI."""
    found = shutil.which("uvx")
    if found:
        return pathlib.Path(found).parent
    done = [
        subprocess.run(command, capture_output=True, text=True, check=False)
        for command in (["python3", "-m", "venv", place], [place / "bin/pip", "install", "-q", UV])
    ]
    if not (place / "bin/uvx").exists():
        raise Missing(f"uv cannot be installed from PyPI: {done[-1].stderr.strip()[-300:]}")
    return place / "bin"


class Pages(http.server.SimpleHTTPRequestHandler):
    """Serves the pages of real_servers.toml."""

    def log_message(self, *_words):
        """Says nothing."""


@contextlib.contextmanager
def pages(directory, content):
    """A web server on a free port of the loopback interface; its port."""
    for name, text in content.items():
        (directory / name).write_text(text)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Pages, directory=directory))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()


def tried(entry, tools, port, times):
    """One server in a home of its own."""
    absent = [name for name in entry.get("needs", []) if not shutil.which(name)]
    if absent:
        return f"not run      it needs {', '.join(absent)}", None
    with Scratch() as scratch:
        scratch.env["PATH"] += os.pathsep + str(tools)
        places = {"home": str(scratch.home), "work": str(scratch.home / "work"), "port": str(port), "spare": spare()}
        server = Server(scratch, entry, places)
        try:
            server.fresh_once()
            with server.beside():
                return compare(server, times)
        except Missing as missing:
            return f"not run      {missing}", None


def main():
    """Compares the servers; the exit code."""
    options = argparse.ArgumentParser()
    options.add_argument("--time", type=int, default=0, metavar="N")
    options.add_argument("names", nargs="*")
    chosen = options.parse_args()
    as_ordinary_user(__file__)
    content = tomllib.loads(LIST.read_text())
    entries = [entry for entry in content["server"] if not chosen.names or entry["name"] in chosen.names]
    outcomes = []
    with tempfile.TemporaryDirectory(prefix="fd-servers-", dir="/tmp") as place:
        place = pathlib.Path(place)
        (place / "pages").mkdir()
        tools = uv(place / "uv")
        with pages(place / "pages", content["pages"]) as port:
            for entry in entries:
                line, good = tried(entry, tools, port, chosen.time)
                print(f"{entry['name']:<28} {line}", flush=True)
                outcomes.append(good)
    compared = sum(good is not None for good in outcomes)
    print(f"{outcomes.count(True)} of {compared} servers behave as without Firedoor; {outcomes.count(None)} not run")
    if False in outcomes:
        return 1
    if compared < min(ENOUGH, len(entries)):
        print(f"real_servers.py: only {compared} servers ran; npm, PyPI and their registries are needed", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    run(main)
