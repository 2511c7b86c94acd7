#!/usr/bin/env python3
"""A server whose tool's description is the content of a file beside it: changing_server.py FILE."""

import sys

from stdio_mcp import Tool, serve

with open(sys.argv[1], encoding="utf-8") as file:
    DESCRIPTION = file.read().strip()

serve("changing", [Tool("add", DESCRIPTION, lambda a: str(a["a"] + a["b"]), ["a", "b"], a="integer", b="integer")])
