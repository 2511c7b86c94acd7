#!/usr/bin/env python3
"""A server with a credential for a service: SERVICE_TOKEN, at SERVICE_BASE_URL. `{token}` in what its tools are told is that
credential, `{base}` the path of the address."""

import http.client
import json
import os
import socket
from urllib.parse import urlsplit

from stdio_mcp import Tool, serve

TOKEN = os.environ.get("SERVICE_TOKEN", "")
BASE = urlsplit(os.environ.get("SERVICE_BASE_URL", ""))


def filled(text):
    """With the credential and the address in their places."""
    return text.replace("{token}", TOKEN).replace("{base}", BASE.path).replace("{port}", str(BASE.port))


def request(arguments):
    """Sends a request; says status, headers and body."""
    connection = http.client.HTTPConnection(BASE.hostname, BASE.port, timeout=30)
    headers = {name: filled(value) for name, value in arguments.get("headers", {}).items()}
    body = arguments.get("body")
    pieces = arguments.get("pieces")
    if pieces:
        body = (filled(piece).encode() for piece in pieces)
    elif body is not None:
        body = filled(body)
    path = filled(arguments.get("path", "{base}/me"))
    try:
        connection.request(arguments.get("method", "GET"), path, body, headers, encode_chunked=bool(pieces))
        response = connection.getresponse()
        if arguments.get("first"):
            return json.dumps({"status": response.status, "body": response.read1(200).decode()})
        text = response.read().decode("latin-1")
    except (http.client.HTTPException, OSError) as error:
        return json.dumps({"error": type(error).__name__})
    finally:
        connection.close()
    headers = {name.lower(): value for name, value in response.getheaders()}
    return json.dumps({"status": response.status, "headers": headers, "body": text})


def tcp(arguments):
    """Connects to a port of this machine."""
    try:
        with socket.create_connection(("127.0.0.1", int(arguments["port"])), 2):
            return "connected"
    except OSError as error:
        return f"denied: {type(error).__name__}"


def look_up(arguments):
    """Looks a name up."""
    try:
        with socket.create_connection((filled(arguments["name"]), 443), 5):
            return "connected"
    except OSError as error:
        return f"denied: {type(error).__name__}"


serve(
    "spending",
    [
        Tool("shop", "Buys.", request, path="string", method="string"),
        Tool("tcp", "Connects to a port.", tcp, ["port"], port="integer"),
        Tool("look_up", "Connects to a host.", look_up, ["name"], name="string"),
        Tool("variable", "Reads a variable.", lambda a: os.environ.get(a["name"], ""), ["name"], name="string"),
        Tool("note", "Writes a note down.", lambda _a: "noted", text="string"),
    ],
)
