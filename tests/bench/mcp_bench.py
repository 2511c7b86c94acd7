#!/usr/bin/env python3
"""Round trips of a stdio MCP server, or of a proxy in front of one:  mcp_bench.py [options] -- COMMAND [ARGUMENT...]

Prints the time to the first answer, the median and the tail of a call's latency, calls per second, the CPU time per call
that was spent in the proxy, and resident memory. The proxy is COMMAND's process tree without the server (a process whose
program or first argument contains --server-mark), with the processes named by --also-pid (an engine).

CPU time comes from /proc/PID/task/TID/schedstat, in nanoseconds: it stays steady when other programs load the machine,
which latency does not. Standard library only.
"""

import argparse
import contextlib
import json
import os
import pathlib
import select
import statistics
import subprocess
import sys
import time

MODERN = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": {"name": "bench", "version": "1"},
}


class NoAnswer(Exception):
    """The server, or what stands before it, did not play along."""


def options(arguments=None):
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, default=2000)
    parser.add_argument("--warmup", type=int, default=200, help="calls before those that count")
    parser.add_argument("--inflight", type=int, default=1, help="requests kept open (1 measures latency)")
    parser.add_argument("--tool", default="echo")
    parser.add_argument("--args", type=json.loads, default={"text": "hello"}, help="the tool's arguments, as JSON")
    parser.add_argument("--arg-bytes", type=int, default=0, help="make the argument `text` so many bytes long")
    parser.add_argument("--era", choices=["2025", "2026"], default="2025")
    parser.add_argument("--timeout", type=float, default=60, help="seconds to wait for one answer")
    parser.add_argument("--server-mark", default="echo_server.py")
    parser.add_argument("--also-pid", type=int, action="append", default=[])
    parser.add_argument("--label", default="")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--stderr", action="store_true", help="show what the command writes there")
    parser.add_argument("command", nargs=argparse.REMAINDER)
    return parser.parse_args(arguments)


class Peer:
    """The command, spoken to in JSON-RPC."""

    def __init__(self, command, asked, **spawn):
        self.asked, self.noise, self.buffer = asked, 0, bytearray()
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=None if asked.stderr else subprocess.DEVNULL,
            bufsize=0,
            **spawn,
        )
        os.set_blocking(self.process.stdin.fileno(), False)

    def write(self, message):
        """One message. Answers are read meanwhile, so that nobody waits for the other."""
        view = memoryview(json.dumps(message, separators=(",", ":")).encode() + b"\n")
        while view:
            try:
                view = view[os.write(self.process.stdin.fileno(), view) :]
            except BlockingIOError:
                if self.process.stdout in select.select([self.process.stdout], [self.process.stdin], [])[0]:
                    self.fill()

    def fill(self):
        """Reads once."""
        chunk = os.read(self.process.stdout.fileno(), 1 << 18)
        if not chunk:
            raise NoAnswer(f"the command closed its output (exit code {self.process.poll()})")
        self.buffer += chunk

    def request(self, ident, method, params):
        """One request, in the era that was asked for."""
        if self.asked.era == "2026":
            params = {**params, "_meta": MODERN}
        self.write({"jsonrpc": "2.0", "id": ident, "method": method, "params": params})

    def read(self):
        """The next message."""
        out = self.process.stdout.fileno()
        while True:
            end = self.buffer.find(b"\n")
            if end >= 0:
                line = bytes(self.buffer[:end])
                del self.buffer[: end + 1]
                try:
                    return json.loads(line)
                except ValueError:
                    self.noise += 1
                    continue
            if not select.select([out], [], [], self.asked.timeout)[0]:
                raise NoAnswer(f"no answer within {self.asked.timeout:.0f} s")
            self.fill()

    def answer(self):
        """The next response. Requests of the server are answered on the way."""
        while "method" in (message := self.read()):
            if "id" in message:
                result = {"roots": []} if message["method"] == "roots/list" else {}
                self.write({"jsonrpc": "2.0", "id": message["id"], "result": result})
        return message

    def result(self, ident, method, params):
        """Asks and waits."""
        self.request(ident, method, params)
        message = self.answer()
        if "result" not in message:
            raise NoAnswer(f"{method}: {message.get('error')}")
        return message["result"]

    def end(self):
        """Closes stdin; kills what has not ended after three seconds."""
        left = tree(self.process.pid)
        with contextlib.suppress(OSError):
            self.process.stdin.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(3)
        for pid in reversed(left):
            with contextlib.suppress(OSError):
                os.kill(pid, 9)
        self.process.wait()


def tree(root):
    """A process and its descendants."""
    children = {}
    for place in pathlib.Path("/proc").iterdir():
        if place.name.isdigit():
            with contextlib.suppress(OSError):
                parent = int((place / "stat").read_text().rsplit(")", 1)[1].split()[1])
                children.setdefault(parent, []).append(int(place.name))
    found, todo = [], [root]
    while todo:
        found.append(todo.pop())
        todo += children.get(found[-1], [])
    return found


def marked(pid, mark):
    """Whether a process is the server: its own program or first argument says so, not merely some argument."""
    try:
        words = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").split("\0")
    except OSError:
        return False
    return any(mark in word for word in words[:2])


def cpu(pids):
    """Microseconds on a CPU."""
    total = 0
    for pid in pids:
        with contextlib.suppress(OSError):
            for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
                total += int((task / "schedstat").read_text().split()[0]) / 1000
    return total


def resident(pids):
    """MiB of resident memory."""
    total = 0
    for pid in pids:
        with contextlib.suppress(OSError):
            for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines():
                if line.startswith("VmRSS"):
                    total += int(line.split()[1])
    return total / 1024


def measure(command, asked, also=None, **spawn):
    """Runs one series of calls. `also` gives further pids, once the server has started."""
    arguments = dict(asked.args)
    if asked.arg_bytes:
        arguments["text"] = "x" * asked.arg_bytes
    started = time.perf_counter()
    peer = Peer(command, asked, **spawn)
    try:
        if asked.era == "2025":
            hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}
            peer.result(0, "initialize", hello)
            peer.write({"jsonrpc": "2.0", "method": "notifications/initialized"})
        else:
            peer.result(0, "server/discover", {})
        start = time.perf_counter() - started
        names = [tool["name"] for tool in peer.result(1, "tools/list", {})["tools"]]
        # Gateways put a prefix before the names of tools.
        tool = next((name for name in [asked.tool, *names] if name in names and name.endswith(asked.tool)), asked.tool)
        call = {"name": tool, "arguments": arguments}
        ident, errors, latencies, open_ = 100, 0, [], {}
        for _ in range(asked.warmup):
            peer.result(ident, "tools/call", call)
            ident += 1
        everything = tree(peer.process.pid)
        others = list(asked.also_pid) + (also() if also else [])
        proxy = [pid for pid in everything if not marked(pid, asked.server_mark)] + others
        before, begun, sent = cpu(proxy), time.perf_counter(), 0
        while len(latencies) < asked.calls:
            while sent < asked.calls and len(open_) < asked.inflight:
                open_[ident] = time.perf_counter()
                peer.request(ident, "tools/call", call)
                ident, sent = ident + 1, sent + 1
            message = peer.answer()
            at = open_.pop(message.get("id"), None)
            if at is None:
                raise NoAnswer(f"an answer to nothing: id {message.get('id')}")
            latencies.append((time.perf_counter() - at) * 1e6)
            errors += "error" in message or bool(message["result"].get("isError"))
        wall, spent = time.perf_counter() - begun, cpu(proxy) - before
        latencies.sort()
        return {
            "label": asked.label,
            "start_ms": round(start * 1e3, 1),
            "calls": len(latencies),
            "inflight": asked.inflight,
            "p50_us": round(statistics.median(latencies), 1),
            "p90_us": round(latencies[len(latencies) * 9 // 10], 1),
            "p99_us": round(latencies[len(latencies) * 99 // 100], 1),
            "max_us": round(latencies[-1], 1),
            "per_s": round(len(latencies) / wall),
            "errors": errors,
            "noise": peer.noise,
            "proxy_cpu_us": round(spent / len(latencies), 1),
            "proxy_rss_mib": round(resident(proxy), 1),
            "tree_rss_mib": round(resident(everything), 1),
            "procs": len(everything),
        }
    finally:
        peer.end()


def main():
    """One series, from the command line."""
    asked = options()
    command = asked.command[1:] if asked.command[:1] == ["--"] else asked.command
    if not command:
        sys.exit(__doc__)
    try:
        got = measure(command, asked)
    except NoAnswer as error:
        sys.exit(f"mcp_bench: {asked.label or command[0]}: {error}")
    if asked.json:
        print(json.dumps(got))
    else:
        print(
            "{label:12s} start {start_ms:7.1f} ms  p50 {p50_us:7.1f}  p90 {p90_us:7.1f}  p99 {p99_us:8.1f}  max {max_us:8.1f} us"
            "  {per_s:6d}/s  errors {errors} noise {noise}  cpu {proxy_cpu_us} us/call"
            "  rss proxy {proxy_rss_mib} / tree {tree_rss_mib} MiB in {procs} processes".format(**got)
        )


if __name__ == "__main__":
    main()
