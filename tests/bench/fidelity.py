#!/usr/bin/env python3
"""Is a proxy for stdio MCP servers transparent?

  fidelity.py -- PROXY [ARGUMENT...]   {} in the command stands for the probe server's own command line
  fidelity.py --firedoor               through Firedoor, in a scratch home

Each probe prints `ok` or what was lost; the exit code is 1 when one is not ok.

 order    300 requests sent at once reach the server in the order in which they were sent
 bytes    parameters arrive byte for byte: order of keys, 2^53+1, 1e400, "\\u00e9", keys that occur twice
 answer   and so do results
 batch    a batch stays one line
 unknown  an unknown method, unknown _meta keys and an unknown notification pass
 server   a request of the server reaches the client, and the client's answer the server, under an id that is in use
          the other way round as well
 large    a message of 4 MiB passes both ways
 noise    a line on the server's stdout that is not JSON does not end the session
 exit     the proxy ends within 3 s of the end of stdin, and the server has seen the end too

The probe server reports what it gets on stderr, which a proxy must leave alone; with FIDELITY_DIR in a file of that
folder, for proxies that do not.
"""

import json
import os
import pathlib
import select
import subprocess
import sys
import tempfile
import time

MARK = b"probe: "
SERVER = r'''
import json, os, sys
place = sys.argv[1]
log = os.open(place, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600) if place != "-" else 2
def note(data):
    data = memoryview(b"probe: " + data)
    while data:
        data = data[os.write(log, data):]
def say(text):
    sys.stdout.write(text + "\n"); sys.stdout.flush()
RESULT = {"content": [], "tools": [], "protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
          "serverInfo": {"name": "probe", "version": "1"}}
for line in sys.stdin.buffer:
    note(line if len(line) < 65536 else b"%d bytes\n" % len(line))
    try:
        messages = json.loads(line)
    except ValueError:
        continue
    if isinstance(messages, list):
        say(json.dumps([{"jsonrpc": "2.0", "id": m["id"], "result": {}} for m in messages if "id" in m]))
        continue
    method, ident = messages.get("method"), messages.get("id")
    if ident is None or method is None:
        continue
    if method == "x/noise":
        say("Listening on stdio")
    if method == "x/raw":
        say('{"jsonrpc":"2.0","result":{"z":1,"a":9007199254740993,"e":"\\u00e9","f":1.0,"n":1e400},"id":%d}' % ident)
        continue
    if method == "x/ask":
        say('{"jsonrpc":"2.0","id":%d,"method":"roots/list"}' % ident)
    if method == "x/large":
        say(json.dumps({"jsonrpc": "2.0", "id": ident, "result": {"text": "x" * (4 << 20)}}))
        continue
    say(json.dumps({"jsonrpc": "2.0", "id": ident, "result": RESULT}))
note(b"EOF\n")
'''


class Lost(Exception):
    """What a probe found."""


class Peer:
    """The proxy, with the probe server behind it."""

    def __init__(self, command, folder, **options):
        self.folder = pathlib.Path(folder)
        self.stderr = open(self.folder / "stderr", "wb")
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.stderr, bufsize=0, **options
        )
        self.buffer = b""
        os.set_blocking(self.process.stdin.fileno(), False)

    def send(self, data):
        """Sends bytes, reading meanwhile so that nobody waits for the other."""
        view = memoryview(data.encode() if isinstance(data, str) else data)
        while view:
            readable, writable, _ = select.select([self.process.stdout], [self.process.stdin], [], 10)
            if readable:
                self.fill()
            elif writable:
                view = view[os.write(self.process.stdin.fileno(), view) :]
            else:
                raise Lost("STUCK: nothing can be written")

    def fill(self):
        """Reads once."""
        chunk = os.read(self.process.stdout.fileno(), 1 << 18)
        if not chunk:
            raise Lost("BROKEN: the proxy closed its output")
        self.buffer += chunk

    def line(self, seconds=5.0):
        """The next line, or None."""
        end = time.monotonic() + seconds
        while b"\n" not in self.buffer:
            left = end - time.monotonic()
            if left <= 0 or not select.select([self.process.stdout], [], [], left)[0]:
                return None
            self.fill()
        line, self.buffer = self.buffer.split(b"\n", 1)
        return line

    def ask(self, message, seconds=5.0):
        """Sends one line and returns the next."""
        self.send(message + "\n")
        return self.line(seconds)

    def noted(self):
        """What reached the server, a line each."""
        lines = []
        for name in ("log", "stderr"):
            path = self.folder / name
            if path.exists():
                lines += [line[len(MARK) :] for line in path.read_bytes().splitlines() if line.startswith(MARK)]
        return lines

    def wait_noted(self, part, after, seconds=3.0):
        """The lines that reached the server after the first `after`, once one of them holds `part`."""
        end = time.monotonic() + seconds
        while True:
            lines = self.noted()[after:]
            if any(part in line for line in lines):
                return lines
            if time.monotonic() > end:
                raise Lost(f"LOST: {part.decode()!r} did not reach the server")
            time.sleep(0.01)


def order(peer):
    """Many requests in one write."""
    before = len(peer.noted())
    request = '{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"echo","arguments":{"n":%d}}}\n'
    peer.send("".join(request % (n, n) for n in range(1, 301)))
    answered = sum(peer.line(10) is not None for _ in range(300))
    ids = [json.loads(line).get("id") for line in peer.noted()[before:]]
    if ids != list(range(1, 301)) or answered != 300:
        wrong = sum(a > b for a, b in zip(ids, ids[1:]))
        raise Lost(f"REORDERED: {wrong} inversions, {len(ids)} arrived, {answered} answered")


def bytes_(peer):
    """A request that a parser would not give back."""
    before = len(peer.noted())
    arguments = '{"z":1,"a":9007199254740993,"big":123456789012345678901234567890,"e":"\\u00e9","f":1.0,"d":1,"d":2,"n":1e400}'
    raw = '{"jsonrpc":"2.0", "id":1001,"method":"tools/call","params":{"name":"echo","arguments":' + arguments + "}}"
    if peer.ask(raw) is None:
        raise Lost("LOST: no answer")
    arrived = peer.noted()[before]
    if arrived != raw.encode():
        raise Lost(f"CHANGED: {arrived[:260].decode(errors='replace')}")


def answer(peer):
    """A result that a parser would not give back."""
    got = peer.ask('{"jsonrpc":"2.0","id":1002,"method":"x/raw","params":{}}')
    want = b'{"jsonrpc":"2.0","result":{"z":1,"a":9007199254740993,"e":"\\u00e9","f":1.0,"n":1e400},"id":1002}'
    if got != want:
        raise Lost(f"CHANGED: {got}")


def batch(peer):
    """Two requests and a notification in one line."""
    before = len(peer.noted())
    raw = '[{"jsonrpc":"2.0","id":"b1","method":"ping"},{"jsonrpc":"2.0","method":"x/n"},{"jsonrpc":"2.0","id":2,"method":"ping"}]'
    got = peer.ask(raw)
    if peer.noted()[before:] != [raw.encode()]:
        raise Lost("CHANGED on the way to the server")
    if got is None or [m["id"] for m in json.loads(got)] != ["b1", 2]:
        raise Lost(f"CHANGED on the way back: {got}")


def unknown(peer):
    """What a later revision may bring."""
    before = len(peer.noted())
    got = peer.ask(
        '{"jsonrpc":"2.0","id":1003,"method":"x/unknown","params":{"_meta":{"com.example/k":1,"progressToken":"t"}}}'
    )
    peer.send('{"jsonrpc":"2.0","method":"notifications/x","params":{}}\n')
    peer.wait_noted(b"com.example/k", before)
    peer.wait_noted(b"notifications/x", before)
    if not got or b"1003" not in got:
        raise Lost(f"LOST: answer {got and got[:120]}")


def server(peer):
    """A request the other way, with the id of the one that is open."""
    before = len(peer.noted())
    got = peer.ask('{"jsonrpc":"2.0","id":1004,"method":"x/ask","params":{}}')
    if got != b'{"jsonrpc":"2.0","id":1004,"method":"roots/list"}':
        raise Lost(f"LOST or CHANGED: {got}")
    got = peer.line()
    if not got or b'"result"' not in got:
        raise Lost("LOST: the answer to the client's own request")
    peer.send('{"jsonrpc":"2.0","id":1004,"result":{"roots":[]}}\n')
    peer.wait_noted(b'"roots":[]', before)


def large(peer):
    """Both ways."""
    before = len(peer.noted())
    head, tail = '{"jsonrpc":"2.0","id":1005,"method":"x/large","params":{"text":"', '"}}'
    body = "y" * (4 << 20)
    got = peer.ask(head + body + tail, 20)
    want = len(head) + len(body) + len(tail) + 1
    if peer.noted()[before:] != [b"%d bytes" % want]:
        raise Lost(f"LOST or CHANGED on the way to the server: {peer.noted()[before:]}")
    if not got or len(json.loads(got)["result"]["text"]) != 4 << 20:
        raise Lost("LOST or CHANGED on the way back")


def noise(peer):
    """Something that is not JSON, then an honest request."""
    first = peer.ask('{"jsonrpc":"2.0","id":1006,"method":"x/noise","params":{}}')
    if first is not None and not first.startswith(b"{"):
        first = peer.line()
    got = peer.ask('{"jsonrpc":"2.0","id":1007,"method":"tools/list","params":{}}')
    if not first or b"1006" not in first or not got or b"1007" not in got:
        raise Lost(f"BROKEN after a line that is not JSON: {first}, {got}")


def exit_(peer):
    """The end of stdin."""
    peer.process.stdin.close()
    try:
        peer.process.wait(3)
    except subprocess.TimeoutExpired:
        peer.process.kill()
        raise Lost("STILL RUNNING 3 s after stdin was closed") from None
    if peer.noted()[-1:] != [b"EOF"]:
        raise Lost("the server did not see the end of its input (killed or orphaned)")


PROBES = (order, bytes_, answer, batch, unknown, server, large, noise, exit_)


def probe(command, folder, **options):
    """Runs all probes; whether all are ok."""
    peer = Peer(command, folder, **options)
    fine = True
    try:
        hello = '{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"fidelity","version":"1"}}}'
        got = peer.ask(hello, 30)
        if got is None or b'"result"' not in got:
            print(f"start    FAILED: {got}")
            return False
        peer.send('{"jsonrpc":"2.0","method":"notifications/initialized"}\n')
        peer.wait_noted(b"notifications/initialized", 0)
        for each in PROBES:
            verdict = "ok"
            try:
                each(peer)
            except (Lost, OSError, ValueError, KeyError, IndexError) as error:
                verdict, fine = str(error) or type(error).__name__, False
            print(f"{each.__name__.strip('_'):8s} {verdict}", flush=True)
    except (Lost, OSError) as error:
        print(f"start    {error}")
        fine = False
    finally:
        if peer.process.poll() is None:
            peer.process.kill()
            peer.process.wait()
        if not fine:
            peer.stderr.close()
            said = (peer.folder / "stderr").read_bytes().splitlines()
            for line in [line for line in said if not line.startswith(MARK)][-10:]:
                print(f"stderr   {line.decode(errors='replace')}")
    return fine


def through_firedoor():
    """The probes in a scratch home, with the probe server protected."""
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "harness"))
    from scratch import Missing, Scratch, as_ordinary_user

    try:
        as_ordinary_user(__file__)
        with Scratch() as scratch:
            script = scratch.write("probe/probe_server.py", SERVER)
            command = scratch.protect_one("probe", scratch.python, script, "-")
            folder = scratch.root / "tmp"
            return probe(command, folder, env=scratch.env, cwd=scratch.home)
    except Missing as error:
        sys.exit(f"fidelity: {error}")


def main():
    """As the command line says."""
    if sys.argv[1:] == ["--firedoor"]:
        return through_firedoor()
    if "--" not in sys.argv:
        sys.exit(__doc__)
    command = sys.argv[sys.argv.index("--") + 1 :]
    with tempfile.TemporaryDirectory() as scratch:
        folder = os.environ.get("FIDELITY_DIR") or scratch
        os.makedirs(folder, exist_ok=True)
        script = os.path.join(folder, "probe_server.py")
        pathlib.Path(script).write_text(SERVER, encoding="utf-8")
        place = os.path.join(folder, "log") if "FIDELITY_DIR" in os.environ else "-"
        behind = [sys.executable, script, place]
        return probe([word for part in command for word in (behind if part == "{}" else [part])], folder)


sys.exit(0 if main() else 1)
