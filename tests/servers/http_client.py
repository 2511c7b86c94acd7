#!/usr/bin/env python3
"""A client that speaks HTTP, one order a line: send a request, take an event of a stream, close a stream. Each request has a
connection of its own. Standard library only."""

import http.client
import json
import sys
from urllib.parse import urlsplit

streams = {}


def send(order):
    """Sends a request; says status, headers and body, or which stream of events came instead."""
    address = urlsplit(order["address"])
    connection = http.client.HTTPConnection(address.hostname, address.port, timeout=60)
    connection.putrequest(order["method"], address.path, skip_host=True, skip_accept_encoding=True)
    for name, value in order["headers"]:
        connection.putheader(name, value)
    body = order.get("body")
    if body is not None:
        connection.putheader("Content-Length", str(len(body.encode())))
    try:
        connection.endheaders(body.encode() if body is not None else None)
        response = connection.getresponse()
    except (http.client.HTTPException, OSError) as error:
        return {"error": type(error).__name__}
    headers = {name.lower(): value for name, value in response.getheaders()}
    said = {"status": response.status, "headers": headers}
    if headers.get("content-type") != "text/event-stream":
        return {**said, "body": response.read().decode()}
    streams[len(streams)] = (connection, response)
    return {**said, "stream": len(streams) - 1}


def event(order):
    """The next event of a stream: its id, its data, and when to come back."""
    _, response = streams[order["stream"]]
    found = {}
    while line := response.readline():
        text = line.decode().rstrip("\n")
        if not text and found:
            return found
        name, _, value = text.partition(": ")
        if name in ("id", "data", "retry"):
            found[name] = value
    return {"end": True}


def close(order):
    """Closes the connection that carries a stream."""
    connection, response = streams[order["stream"]]
    response.close()
    connection.close()
    return {}


for line in sys.stdin:
    order = json.loads(line)
    print(json.dumps({"send": send, "event": event, "close": close}[order["do"]](order)), flush=True)
