#!/usr/bin/env python3
"""Tools with no effect, for measuring and for passing through: echo, blob, sleep, whereami."""

import json
import os
import time

from stdio_mcp import Tool, serve


def whereami(_arguments):
    """What the server can see of its surroundings."""
    return json.dumps({"cwd": os.getcwd(), "env": dict(os.environ), "pid": os.getpid()})


def sleep(arguments):
    """Waits as long as it was told."""
    time.sleep(arguments["ms"] / 1000)
    return "awake"


serve(
    "echo",
    [
        Tool("echo", "Returns its text.", lambda a: a["text"], ["text"], text="string"),
        Tool("blob", "Returns that many letters.", lambda a: "x" * int(a["bytes"]), ["bytes"], bytes="integer"),
        Tool("sleep", "Waits that many milliseconds.", sleep, ["ms"], ms="integer"),
        Tool("whereami", "Returns its working directory, environment and pid.", whereami),
    ],
)
