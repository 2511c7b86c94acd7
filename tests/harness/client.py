#!/usr/bin/env python3
"""An MCP client without an agent: client.py CONFIG

Starts every server of a Claude Code configuration exactly as the file says, opens a session with each, and then does what
it is told on stdin, one JSON object a line: {"tag": any, "server": name, "tool": name, "arguments": {...}}, and "beside": {...}
for what else its params have. Answers come back on stdout as {"tag": any, "answer": the JSON-RPC message}, in the order in which they arrive; the first line is
{"ready": {server: [names of tools]}, "definitions": {server: [what tools/list says]}} or {"failed": reason}. Ends when stdin does.
"""

import json
import os
import subprocess
import sys
import threading

PATIENCE = 180.0


class Session:
    """One server."""

    def __init__(self, entry):
        self.process = subprocess.Popen(
            [entry["command"], *entry.get("args", [])],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, **entry.get("env", {})},
        )
        self.lock = threading.Lock()
        self.next, self.waiting = 1, {}
        threading.Thread(target=self.listen, daemon=True).start()

    def listen(self):
        """Hands each answer to whoever waits for it."""
        for line in self.process.stdout:
            # Some servers print other things, too, which clients skip.
            try:
                message = json.loads(line)
            except ValueError:
                continue
            if not isinstance(message, dict) or "method" in message:
                continue
            with self.lock:
                done = self.waiting.pop(message.get("id"), None)
            if done:
                done(message)
        with self.lock:
            waiting, self.waiting = self.waiting, {}
        for done in waiting.values():
            done({"error": {"code": 0, "message": "the server closed its output"}})

    def write(self, message):
        """Writes one message."""
        self.process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        self.process.stdin.flush()

    def ask(self, method, params, done):
        """Sends a request; `done` gets the answer."""
        with self.lock:
            ident, self.next = self.next, self.next + 1
            self.waiting[ident] = done
        self.write({"id": ident, "method": method, "params": params})

    def ask_and_wait(self, method, params):
        """Sends a request and returns its result."""
        event, box = threading.Event(), []
        self.ask(method, params, lambda message: (box.append(message), event.set()))
        if not event.wait(PATIENCE):
            raise RuntimeError(f"no answer to {method} within {PATIENCE:.0f} s")
        if "result" not in box[0]:
            raise RuntimeError(f"{method}: {box[0]['error']['message']}")
        return box[0]["result"]

    def open(self):
        """The handshake; returns the definitions of the tools."""
        self.ask_and_wait(
            "initialize",
            {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "demo", "version": "1"}},
        )
        self.write({"method": "notifications/initialized"})
        return self.ask_and_wait("tools/list", {})["tools"]


def main():
    """Starts, opens, obeys."""
    with open(sys.argv[1], encoding="utf-8") as file:
        entries = json.load(file)["mcpServers"]
    out = threading.Lock()

    def say(message):
        with out:
            print(json.dumps(message), flush=True)

    sessions = {name: Session(entry) for name, entry in entries.items()}
    try:
        definitions = {name: session.open() for name, session in sessions.items()}
    except (RuntimeError, OSError) as error:
        say({"failed": str(error)})
        return 1
    names = {name: [tool["name"] for tool in tools] for name, tools in definitions.items()}
    say({"ready": names, "definitions": definitions})
    for line in sys.stdin:
        told = json.loads(line)
        tag = told["tag"]
        sessions[told["server"]].ask(
            "tools/call",
            {"name": told["tool"], "arguments": told["arguments"], **told.get("beside", {})},
            lambda message, tag=tag: say({"tag": tag, "answer": message}),
        )
    for session in sessions.values():
        session.process.stdin.close()
    for session in sessions.values():
        session.process.wait(10)
    return 0


sys.exit(main())
