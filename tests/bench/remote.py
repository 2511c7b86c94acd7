#!/usr/bin/env python3
"""What Firedoor costs in front of a server over HTTP, and in broker mode in front of a server's service, beside the same direct,
in one run.

  remote.py [--calls N] [--rounds N]

Direct: one connection that stays open, each call a POST on it, by plain sockets. Through Firedoor: firedoor-shim --url over
stdio. The two take turns call by call, so that a load from elsewhere meets both. In broker mode: requests over TLS direct, and to the
address of Firedoor's that a server has, which puts the secret in and goes on over TLS. Exit code 1 when a bound is exceeded.

  added p50                      at most 150 us
  firedoor-remote, 200 streams   at most 40 MiB resident
"""

import argparse
import json
import os
import pathlib
import re
import socket
import ssl
import statistics
import sys
import threading
import time
import urllib.parse

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "harness"))
from mcp_bench import MODERN, Peer, options, resident, tree  # noqa: E402
from scratch import Missing, Scratch, as_ordinary_user  # noqa: E402

ADDED_US, STREAMS, STREAMS_MIB = 150.0, 200, 40.0
CONFIG = ".cursor/mcp.json"
SECRET = "ghp_MadeUpForThisBench00000000000000001"


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


def listen(work):
    """Starts a server that does this with each connection; its port."""
    listener = socket.create_server(("127.0.0.1", 0), backlog=256)

    def accept():
        while True:
            threading.Thread(target=work, args=(listener.accept()[0],), daemon=True).start()

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
    port, _alive = fork_server(serve)
    with Scratch() as scratch:
        # First, because this process counts as an AI client once it has started a server: those may not change secrets.
        place, secured, _service = brokered(scratch)
        code = measure(scratch, port, arguments)
        measure_broker(scratch, place, secured, arguments)
        return code


def fork_server(work):
    """Starts a server in a process that ends with this one; its port, and what keeps it alive."""
    reader, writer = os.pipe()
    alive_reader, alive_writer = os.pipe()
    if os.fork() == 0:
        os.close(alive_writer)
        os.write(writer, str(listen(work)).encode() + b"\n")
        os.read(alive_reader, 1)
        os._exit(0)
    os.close(alive_reader)
    return int(os.read(reader, 16)), alive_writer


def by_turns(arguments, sides):
    """The medians of each round, of both sides by turns. What is measured gets a number that is not used again."""
    medians, ident = [], 10
    for round_ in range(arguments.rounds + 1):
        times = {side: [] for side in sides}
        for _ in range(arguments.calls):
            ident += 1
            for side, once in sides.items():
                times[side].append(once(ident))
        # The first warms up.
        if round_:
            medians.append({side: statistics.median(all_) for side, all_ in times.items()})
    return medians


def report(what, arguments, medians, bound=""):
    """Says what was measured; what Firedoor adds, in microseconds."""
    sides = {side: statistics.median(each[side] for each in medians) for side in ("direct", "through")}
    added = statistics.median(each["through"] - each["direct"] for each in medians)
    print(f"{what}, {arguments.rounds} rounds of {arguments.calls}: direct p50 {sides['direct']:.0f} us, through Firedoor p50 "
          f"{sides['through']:.0f} us, added {added:.0f} us{bound}")
    return added


def measure(scratch, port, arguments):
    """Both ways in turn, then many streams."""
    url = f"http://127.0.0.1:{port}/mcp"
    command = [str(scratch.bin / "firedoor-shim"), "--entry", "bench/user/remote", "--url", url]
    spawn = {"env": scratch.env, "cwd": scratch.home}
    peer = Peer(command, options(["--", "x"]), **spawn)
    hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}
    peer.result(0, "initialize", hello)
    peer.write({"jsonrpc": "2.0", "method": "notifications/initialized"})
    peer.result(1, "tools/list", {})
    connection = socket.create_connection(("127.0.0.1", port))
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    medians = by_turns(
        arguments,
        {"direct": lambda ident: direct(connection, ident), "through": lambda ident: through(peer, ident)},
    )
    peer.end()
    added = report("a call", arguments, medians, f" (bound {ADDED_US:.0f})")

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


def certified(scratch):
    """A certificate for this machine of an authority of its own, in a directory."""
    place = scratch.write("service/ext", "subjectAltName=IP:127.0.0.1").parent
    key = "-newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes"
    for line in (
        f"req -x509 {key} -keyout ca.key -out ca.pem -days 2 -subj /CN=bench",
        f"req {key} -keyout key.pem -out req.pem -subj /CN=service",
        "x509 -req -in req.pem -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -extfile ext -out cert.pem",
    ):
        done = scratch.run("openssl", *line.split(" "), cwd=place)
        if done.returncode:
            raise Missing(f"openssl: {done.stderr.strip()[-500:]}")
    return place


def service(context):
    """What a server has a credential for, over TLS. Says nothing to whoever has not got it."""

    def work(connection):
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        buffer = b""
        with context.wrap_socket(connection, server_side=True) as connection:
            while True:
                while (end := buffer.find(b"\r\n\r\n")) < 0:
                    chunk = connection.recv(1 << 16)
                    if not chunk:
                        return
                    buffer += chunk
                right = b"bearer " + SECRET.lower().encode() in buffer[:end].lower()
                body, buffer = b'{"ok": true}' if right else b"{}", buffer[end + 4 :]
                head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body)
                connection.sendall(head + body)

    return work


def used(connection, path, secret):
    """One request on an open connection, in microseconds."""
    begin = time.perf_counter()
    head = f"GET {path}/me HTTP/1.1\r\nHost: 127.0.0.1:{connection.getpeername()[1]}\r\nAuthorization: Bearer {secret}\r\n\r\n"
    connection.sendall(head.encode())
    got = b""
    while b"\r\n\r\n" not in got or not got.endswith(b"}"):
        piece = connection.recv(1 << 16)
        if not piece:
            raise RuntimeError(f"closed after {got!r}")
        got += piece
    if not got.endswith(b'{"ok": true}'):
        raise RuntimeError(f"not served: {got!r}")
    return (time.perf_counter() - begin) * 1e6


def brokered(scratch):
    """A service, and a server whose secret for it is in broker mode: where its certificate is, its port, and what keeps it alive."""
    place = certified(scratch)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(place / "cert.pem", place / "key.pem")
    port, alive = fork_server(service(context))
    scratch.write(".config/firedoor/config.toml", f"[broker]\ncertificates = {json.dumps(str(place / 'ca.pem'))}\n")
    entry = {"command": scratch.python, "args": [str(scratch.servers / "spending_server.py")], "env": {"SERVICE_TOKEN": SECRET}}
    scratch.write(CONFIG, json.dumps({"mcpServers": {"s": entry}}))
    url = f"https://127.0.0.1:{port}/v1"
    for command in (
        # There is no keychain here.
        ("secrets", "keep-in-file", "--identity", str(scratch.home / "identity.txt")),
        ("protect", "--all", "--yes", "--no-verify"),
        ("broker", "add", "cursor/user/s", "SERVICE_TOKEN", "--variable", "SERVICE_BASE_URL", "--url", url),
    ):
        done = scratch.firedoor(*command)
        if done.returncode:
            raise Missing(f"firedoor {' '.join(command)}: exit {done.returncode}: {done.stdout}{done.stderr}")
    return place, port, alive


def measure_broker(scratch, place, port, arguments):
    """The service asked direct, and by Firedoor in the place of a server that has no secret."""
    config = scratch.home / CONFIG
    entry = json.loads(config.read_text(encoding="utf-8"))["mcpServers"]["s"]
    environment = {**scratch.env, **entry["env"]}
    peer = Peer([entry["command"], *entry["args"]], options(["--", "x"]), env=environment, cwd=scratch.home)
    hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}
    peer.result(0, "initialize", hello)
    peer.write({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def variable(ident, name):
        return peer.result(ident, "tools/call", {"name": "variable", "arguments": {"name": name}})["content"][0]["text"]

    placeholder, address = variable(1, "SERVICE_TOKEN"), urllib.parse.urlsplit(variable(2, "SERVICE_BASE_URL"))
    if not re.fullmatch(r"firedoor-broker-\w+", placeholder):
        raise RuntimeError(f"the server has no placeholder: {placeholder}")
    trusting = ssl.create_default_context(cafile=place / "ca.pem")
    sides = [socket.create_connection(("127.0.0.1", each)) for each in (port, address.port)]
    for side in sides:
        side.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    straight, plain = trusting.wrap_socket(sides[0], server_hostname="127.0.0.1"), sides[1]
    medians = by_turns(
        arguments,
        {"direct": lambda _: used(straight, "/v1", SECRET), "through": lambda _: used(plain, address.path, placeholder)},
    )
    peer.end()
    report("a request in broker mode", arguments, medians)


if __name__ == "__main__":
    sys.exit(main())
