#!/usr/bin/env python3
"""What Firedoor costs in front of a server over HTTP, beside the same server direct, in one run.

  remote.py [--calls N] [--rounds N]

Direct: one connection that stays open, each call a POST on it, by plain sockets. Through Firedoor: firedoor-shim --url over
stdio. The two take turns call by call, so that a load from elsewhere meets both. Exit code 1 when a bound is exceeded.

  added p50                      at most 150 us
  firedoor-remote, 200 streams   at most 40 MiB resident
"""

import argparse
import json
import os
import pathlib
import socket
import statistics
import sys
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "harness"))
from mcp_bench import MODERN, Peer, options, resident, tree  # noqa: E402
from scratch import Scratch, as_ordinary_user  # noqa: E402

ADDED_US, STREAMS, STREAMS_MIB = 150.0, 200, 40.0


def answer(body):
    """The server: the result of one request, or None for what wants none."""
    message = json.loads(body)
    if "id" not in message or "method" not in message:
        return None
    results = {
        "initialize": {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "b", "version": "1"}},
        "server/discover": {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}, "resultType": "complete"},
        "tools/list": {"tools": [{"name": "echo", "description": "Returns its text.", "inputSchema": {"type": "object"}}]},
    }
    text = message.get("params", {}).get("arguments", {}).get("text", "")
    result = results.get(message["method"], {"content": [{"type": "text", "text": text}]})
    return json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}).encode()


def serve(connection):
    """One connection, as long as it lasts."""
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    buffer = b""
    with connection:
        while True:
            while (end := buffer.find(b"\r\n\r\n")) < 0:
                chunk = connection.recv(1 << 18)
                if not chunk:
                    return
                buffer += chunk
            head = buffer[:end].lower()
            if not head.startswith(b"post"):
                connection.sendall(b"HTTP/1.1 405 No\r\nContent-Length: 0\r\n\r\n")
                buffer = buffer[end + 4 :]
                continue
            length = int(head.split(b"content-length:")[1].split(b"\r\n")[0])
            while len(buffer) < end + 4 + length:
                buffer += connection.recv(1 << 18)
            body, buffer = buffer[end + 4 : end + 4 + length], buffer[end + 4 + length :]
            if b'"subscriptions/listen"' in body:
                connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: " + acknowledged(body) + b"\n\n")
                connection.recv(1)
                return
            got = answer(body)
            status = b"202 Accepted" if got is None else b"200 OK\r\nContent-Type: application/json"
            connection.sendall(b"HTTP/1.1 %s\r\nContent-Length: %d\r\n\r\n%s" % (status, len(got or b""), got or b""))


def acknowledged(body):
    """What opens a subscription."""
    meta = {"io.modelcontextprotocol/subscriptionId": json.loads(body)["id"]}
    return json.dumps({"jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged", "params": {"_meta": meta}}).encode()


def listen():
    """Starts the server; its port."""
    listener = socket.create_server(("127.0.0.1", 0), backlog=256)

    def accept():
        while True:
            threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    return listener.getsockname()[1]


def direct(connection, ident):
    """One call on an open connection, in microseconds."""
    call = {"jsonrpc": "2.0", "id": ident, "method": "tools/call", "params": {"name": "echo", "arguments": {"text": "hello"}}}
    begin = time.perf_counter()
    body = json.dumps(call, separators=(",", ":")).encode()
    head = b"POST /mcp HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\n"
    connection.sendall(head + b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
    got = connection.recv(1 << 16)
    json.loads(got.split(b"\r\n\r\n", 1)[1])
    return (time.perf_counter() - begin) * 1e6


def through(peer, ident):
    """One call through Firedoor, in microseconds."""
    begin = time.perf_counter()
    peer.result(ident, "tools/call", {"name": "echo", "arguments": {"text": "hello"}})
    return (time.perf_counter() - begin) * 1e6


def remote_of(peer):
    """The process that speaks HTTP for a session."""
    name = lambda pid: pathlib.Path(f"/proc/{pid}/comm").read_text(encoding="utf-8")  # noqa: E731
    return [pid for pid in tree(peer.process.pid) if name(pid).startswith("firedoor-remote")]


def main():
    """Measures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    as_ordinary_user(__file__)
    # The server is a process of its own: threads of one interpreter would wait for each other.
    port, _alive = fork_server()
    with Scratch() as scratch:
        return measure(scratch, port, arguments)


def fork_server():
    """Starts the server in a process that ends with this one; its port, and what keeps it alive."""
    reader, writer = os.pipe()
    alive_reader, alive_writer = os.pipe()
    if os.fork() == 0:
        os.close(alive_writer)
        os.write(writer, str(listen()).encode() + b"\n")
        os.read(alive_reader, 1)
        os._exit(0)
    os.close(alive_reader)
    return int(os.read(reader, 16)), alive_writer


def measure(scratch, port, arguments):
    """Both ways in turn, then many streams."""
    url = f"http://127.0.0.1:{port}/mcp"
    command = [str(scratch.bin / "firedoor-shim"), "--entry", "bench/user/remote", "--url", url]
    spawn = {"env": scratch.env, "cwd": scratch.home}
    medians = []
    peer = Peer(command, options(["--", "x"]), **spawn)
    hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}
    peer.result(0, "initialize", hello)
    peer.write({"jsonrpc": "2.0", "method": "notifications/initialized"})
    peer.result(1, "tools/list", {})
    connection = socket.create_connection(("127.0.0.1", port))
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    ident = 10
    for round_ in range(arguments.rounds + 1):
        times = {"direct": [], "through": []}
        for _ in range(arguments.calls):
            ident += 1
            times["direct"].append(direct(connection, ident))
            times["through"].append(through(peer, ident))
        # The first warms up.
        if round_:
            medians.append({side: statistics.median(all_) for side, all_ in times.items()})
    peer.end()
    sides = {side: statistics.median(each[side] for each in medians) for side in ("direct", "through")}
    added = statistics.median(each["through"] - each["direct"] for each in medians)
    print(f"{arguments.rounds} rounds of {arguments.calls} calls: direct p50 {sides['direct']:.0f} us, through Firedoor p50 "
          f"{sides['through']:.0f} us, added {added:.0f} us (bound {ADDED_US:.0f})")

    peer = Peer(command, options(["--era", "2026", "--", "x"]), **spawn)
    peer.result(0, "server/discover", {})
    idle = resident(remote_of(peer))
    for number in range(STREAMS):
        peer.request(100 + number, "subscriptions/listen", {"notifications": {}, "_meta": MODERN})
    for _ in range(STREAMS):
        peer.read()
    busy = resident(remote_of(peer))
    peer.end()
    print(f"firedoor-remote: {idle:.1f} MiB resident, {busy:.1f} MiB with {STREAMS} streams (bound {STREAMS_MIB:.0f})")
    return 1 if added > ADDED_US or busy > STREAMS_MIB else 0


if __name__ == "__main__":
    sys.exit(main())
