#!/usr/bin/env python3
"""A server that does one thing wrong: misbehave.py MODE.

exit         ends at once, with status 3
flood        answers initialize, then writes notifications as fast as it can, for ever
mute         reads everything and never answers
noise        a line that is not JSON before every answer
ignore-eof   answers, and does not end when stdin does
orphan       answers; starts a grandchild in a session of its own that outlives its parents and writes its pid to the
             file orphan.pid in HOME
huge         tool `huge` answers with one message of {mib} MiB
deep         tool `deep` answers with JSON nested {depth} levels
garbled      tools `nan` and `latin1` answer with what is JSON to Python alone, and with bytes that are no UTF-8
open-line    tool `endless` writes a line that never ends
"""

import json
import os
import signal
import sys
import time

from stdio_mcp import METHOD_NOT_FOUND, Rejected, Tool, answer, send, serve

MODE = sys.argv[1]


def write(data):
    """All of it, at once."""
    view = memoryview(data)
    while view:
        view = view[os.write(1, view) :]


def orphan():
    """A daemon as the textbooks make one: fork, setsid, fork."""
    if os.fork():
        return
    os.setsid()
    if os.fork():
        os._exit(0)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    with open(os.path.join(os.environ["HOME"], "orphan.pid"), "w", encoding="ascii") as file:
        file.write(str(os.getpid()))
    while True:
        time.sleep(1)


def loop(tools, before=lambda request: None, raw=None):
    """As `serve`, with something done before each answer; `raw` names tools that write their answer themselves."""
    for line in sys.stdin.buffer:
        if not line.strip():
            continue
        request = json.loads(line)
        if "id" not in request or "method" not in request:
            continue
        before(request)
        params = request.get("params") or {}
        if request["method"] == "tools/call" and params.get("name") in (raw or {}):
            raw[params["name"]](request["id"], params["arguments"])
            continue
        reply = {"jsonrpc": "2.0", "id": request["id"]}
        try:
            reply["result"] = answer(MODE, tools, request["method"], params, False)
        except Rejected as error:
            reply["error"] = {"code": METHOD_NOT_FOUND, "message": str(error)}
        send(reply)


def huge(ident, arguments):
    """One message above any sensible bound."""
    head = b'{"jsonrpc":"2.0","id":%d,"result":{"content":[{"type":"text","text":"' % ident
    write(head)
    chunk = b"x" * (1 << 20)
    for _ in range(int(arguments["mib"])):
        write(chunk)
    write(b'"}]}}\n')


def deep(ident, arguments):
    """Nesting that ends a recursive parser."""
    depth = int(arguments["depth"])
    nested = b"[" * depth + b"]" * depth
    write(b'{"jsonrpc":"2.0","id":%d,"result":{"content":[],"structuredContent":{"deep":%s}}}\n' % (ident, nested))


def nan(ident, _arguments):
    """What json.dumps makes of a float that is no number."""
    write(b'{"jsonrpc":"2.0","id":%d,"result":{"content":[],"structuredContent":{"mean":NaN}}}\n' % ident)


def latin1(ident, _arguments):
    """A text in the wrong encoding."""
    write(b'{"jsonrpc":"2.0","id":%d,"result":{"content":[{"type":"text","text":"caf\xe9"}]}}\n' % ident)


def endless(_ident, _arguments):
    """A line without an end; stops when nobody reads any more."""
    chunk = b"y" * (1 << 16)
    try:
        while True:
            write(chunk)
    except BrokenPipeError:
        sys.exit(0)


def flood(request):
    """After the first answer, notifications without end."""
    if request["method"] == "initialize":
        return
    line = b'{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"flood"}}\n' * 64
    try:
        while True:
            write(line)
    except BrokenPipeError:
        sys.exit(0)


OK = Tool("ok", "Says ok.", lambda _arguments: "ok")

if MODE == "exit":
    sys.exit(3)
elif MODE == "flood":
    loop([OK], before=flood)
elif MODE == "mute":
    for _line in sys.stdin.buffer:
        pass
elif MODE == "noise":
    loop([OK], before=lambda request: write(b"Listening on stdio...\n"))
elif MODE == "ignore-eof":
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    serve(MODE, [OK])
    while True:
        time.sleep(1)
elif MODE == "orphan":
    orphan()
    serve(MODE, [OK])
elif MODE == "huge":
    loop([OK, Tool("huge", "Answers at length.", None, ["mib"], mib="integer")], raw={"huge": huge})
elif MODE == "deep":
    loop([OK, Tool("deep", "Answers deeply.", None, ["depth"], depth="integer")], raw={"deep": deep})
elif MODE == "garbled":
    tools = [OK, Tool("nan", "Answers with NaN.", None), Tool("latin1", "Answers in Latin-1.", None)]
    loop(tools, raw={"nan": nan, "latin1": latin1})
elif MODE == "open-line":
    loop([OK, Tool("endless", "Answers without end.", None)], raw={"endless": endless})
else:
    sys.exit(f"misbehave.py: unknown mode {MODE!r}")
