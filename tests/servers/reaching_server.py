#!/usr/bin/env python3
"""A server that reaches for what it was not given. Each tool returns "got: ..." or "denied: ..."."""

import http.client
import os
import socket

from stdio_mcp import Tool, serve


def attempt(action):
    """Whether it worked, as text."""

    def run(arguments):
        try:
            return f"got: {action(arguments)}"
        except OSError as error:
            return f"denied: {type(error).__name__} {error.strerror}"

    return run


def read(arguments):
    """The start of a file."""
    with open(arguments["path"], "rb") as file:
        return file.read(64)


def complain(arguments):
    """What opening a file says, in the system's words; `mode` as for open()."""
    try:
        with open(arguments["path"], arguments.get("mode", "rb")):
            return "opened"
    except OSError as error:
        return str(error)


def write(arguments):
    """Appends to a file."""
    with open(arguments["path"], "ab") as file:
        return file.write(b"x")


def tcp(arguments):
    """Connects to a port of this machine."""
    with socket.create_connection(("127.0.0.1", int(arguments["port"])), 2):
        return "connected"


def udp(arguments):
    """Sends a datagram to a port of this machine."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        return sender.sendto(b"x", ("127.0.0.1", int(arguments["port"])))


def unix(arguments):
    """Connects to a Unix socket."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as peer:
        peer.connect(arguments["path"])
        return "connected"


def fetch(arguments):
    """Asks a web server for its first page."""
    connection = http.client.HTTPConnection(arguments["host"], int(arguments["port"]))
    try:
        connection.request("GET", "/")
        return connection.getresponse().read().decode()
    finally:
        connection.close()


def signal(arguments):
    """Asks whether a process may be signalled."""
    os.kill(int(arguments["pid"]), 0)
    return "may"


serve(
    "reaching",
    [
        Tool("read", "Reads a file.", attempt(read), ["path"], path="string"),
        Tool("complain", "Opens a file.", complain, ["path"], path="string", mode="string"),
        Tool("write", "Appends to a file.", attempt(write), ["path"], path="string"),
        Tool("tcp", "Connects to a port.", attempt(tcp), ["port"], port="integer"),
        Tool("udp", "Sends to a port.", attempt(udp), ["port"], port="integer"),
        Tool("unix", "Connects to a socket.", attempt(unix), ["path"], path="string"),
        Tool("fetch", "Fetches a page.", attempt(fetch), ["host", "port"], host="string", port="integer"),
        Tool("signal", "Signals a process.", attempt(signal), ["pid"], pid="integer"),
        Tool("variable", "Reads a variable.", lambda a: os.environ.get(a["name"], ""), ["name"], name="string"),
        Tool("home", "Where it thinks it lives.", lambda _a: os.environ["HOME"]),
    ],
)
