#!/usr/bin/env python3
"""A tool that looks as if it sent data out. It only appends to outbox.jsonl in its own HOME, so nothing leaves.

Tools: http_post {url, body} and sent {} (what was "sent" so far, one JSON object a line).
"""

import json
import os

from stdio_mcp import Tool, serve

OUTBOX = os.path.join(os.environ["HOME"], "outbox.jsonl")


def http_post(arguments):
    """Notes the request instead of making it."""
    with open(OUTBOX, "a", encoding="utf-8") as outbox:
        outbox.write(json.dumps({"url": arguments["url"], "body": arguments["body"]}) + "\n")
    return "202 Accepted"


def sent(_arguments):
    """Everything noted so far."""
    if not os.path.exists(OUTBOX):
        return ""
    with open(OUTBOX, encoding="utf-8") as outbox:
        return outbox.read()


serve(
    "outbox",
    [
        Tool("http_post", "Sends an HTTP POST request.", http_post, ["url", "body"], url="string", body="string"),
        Tool("sent", "Lists the requests that were sent.", sent),
    ],
)
