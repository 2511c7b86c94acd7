#!/usr/bin/env python3
"""A server that says what it is told to: scripted_server.py

Tool `say` writes its argument `line` to stdout as it is, with every @ID in it replaced by the request's id, and answers
nothing else; a call that brings a `requestState` back gets "gone on". Tool `heard` returns every line that was read so far. Answers `initialize`; ignores the rest.
"""

import json
import sys

from stdio_mcp import Tool, answer, send, text

HEARD = []
TOOLS = [Tool("say", "Says a line.", None, ["line"], line="string"), Tool("heard", "What was heard.", lambda _: "".join(HEARD))]

for raw in sys.stdin.buffer:
    HEARD.append(raw.decode())
    message = json.loads(raw)
    if message.get("method") == "tools/call" and "requestState" in message["params"]:
        send({"jsonrpc": "2.0", "id": message["id"], "result": {"resultType": "complete", **text("gone on")}})
    elif message.get("method") == "tools/call" and message["params"]["name"] == "say" and "id" in message:
        sys.stdout.write(message["params"]["arguments"]["line"].replace("@ID", str(message["id"])) + "\n")
        sys.stdout.flush()
    elif message.get("method") in ("initialize", "tools/list", "tools/call") and "id" in message:
        result = answer("scripted", TOOLS, message["method"], message.get("params") or {}, False)
        send({"jsonrpc": "2.0", "id": message["id"], "result": result})
