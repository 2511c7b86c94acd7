"""The least an MCP server over stdio has to do, in both eras of the protocol. Standard library only.

The legacy era (2024-11-05 to 2025-11-25) opens with `initialize`; the modern one (2026-07-28) has no handshake and names
its version in the `_meta` of each request. One message per line.
"""

import json
import sys

LEGACY = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")
MODERN = "2026-07-28"
VERSION_KEY = "io.modelcontextprotocol/protocolVersion"

METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602


class Tool:
    """A tool: what the client is told about it, and `run(arguments) -> text`."""

    def __init__(self, name, description, run, required=(), /, **properties):
        self.run = run
        self.definition = {
            "name": name,
            "description": description,
            "inputSchema": {
                "type": "object",
                "properties": {key: {"type": kind} for key, kind in properties.items()},
                "required": list(required),
            },
        }


class Rejected(Exception):
    """A request that gets a JSON-RPC error."""

    def __init__(self, code, message):
        super().__init__(message)
        self.code = code


def text(body, failed=False):
    """A tool's result."""
    result = {"content": [{"type": "text", "text": body}]}
    if failed:
        result["isError"] = True
    return result


def send(message):
    """Writes one message at once."""
    sys.stdout.buffer.write(json.dumps(message, separators=(",", ":")).encode() + b"\n")
    sys.stdout.buffer.flush()


def answer(name, tools, method, params, modern):
    """The result of one request."""
    info = {"name": name, "version": "1.0.0"}
    if method == "initialize":
        asked = params.get("protocolVersion")
        return {
            "protocolVersion": asked if asked in LEGACY else LEGACY[0],
            "capabilities": {"tools": {}},
            "serverInfo": info,
        }
    if method == "server/discover":
        return {"supportedVersions": [MODERN], "capabilities": {"tools": {}}, "serverInfo": info}
    if method == "ping":
        return {}
    if method == "tools/list":
        cache = {"ttlMs": 0, "cacheScope": "private"} if modern else {}
        return {"tools": [tool.definition for tool in tools], **cache}
    if method == "tools/call":
        for tool in tools:
            if tool.definition["name"] == params.get("name"):
                try:
                    return text(tool.run(params.get("arguments") or {}))
                except (OSError, ValueError, KeyError, TypeError) as error:
                    return text(f"{type(error).__name__}: {error}", failed=True)
        raise Rejected(INVALID_PARAMS, "no such tool")
    raise Rejected(METHOD_NOT_FOUND, "no such method")


def serve(name, tools):
    """Answers requests until stdin ends."""
    for line in sys.stdin.buffer:
        if not line.strip():
            continue
        message = json.loads(line)
        if not isinstance(message, dict) or "id" not in message or "method" not in message:
            continue
        params = message.get("params") or {}
        modern = (params.get("_meta") or {}).get(VERSION_KEY) == MODERN
        reply = {"jsonrpc": "2.0", "id": message["id"]}
        try:
            result = answer(name, tools, message["method"], params, modern)
            reply["result"] = {"resultType": "complete", **result} if modern else result
        except Rejected as error:
            reply["error"] = {"code": error.code, "message": str(error)}
        send(reply)
