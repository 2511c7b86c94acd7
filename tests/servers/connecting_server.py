#!/usr/bin/env python3
"""A server with a credential for a service at a fixed address: SERVICE_TOKEN. Its tools connect as several programs do; `{token}`
in what they are told is that credential. Standard library only."""

import json
import os
import pathlib
import socket
import ssl
import subprocess
import urllib.error
import urllib.request

from stdio_mcp import Tool, serve

TOKEN = os.environ.get("SERVICE_TOKEN", "")

NODE = """
const {url, method, headers, body} = JSON.parse(process.argv[1]);
fetch(url, {method, headers, body, redirect: 'manual'}).then(
  async r => console.log(JSON.stringify({status: r.status, headers: Object.fromEntries(r.headers), body: await r.text()})),
  e => console.log(JSON.stringify({error: String(e.cause?.code ?? e)})))
"""


def filled(text):
    """With the credential in its place."""
    return text.replace("{token}", TOKEN)


class Unfollowed(urllib.request.HTTPRedirectHandler):
    """Redirects are answers."""

    def redirect_request(self, *_):
        return None


def by_python(url, method, headers, body):
    request = urllib.request.Request(url, body and body.encode(), headers, method=method)
    try:
        answer = urllib.request.build_opener(Unfollowed).open(request, timeout=30)
    except urllib.error.HTTPError as error:
        answer = error
    except OSError as error:
        return {"error": str(error)}
    with answer:
        headers = {name.lower(): value for name, value in answer.headers.items()}
        return {"status": answer.status, "headers": headers, "body": answer.read().decode("latin-1")}


def by_curl(url, method, headers, body):
    words = ["curl", "-sS", "--max-time", "30", "-X", method, "-w", "\n%{http_code}", url]
    for name, value in headers.items():
        words += ["-H", f"{name}: {value}"]
    if body is not None:
        words += ["--data-binary", body]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode:
        return {"error": done.stderr}
    text, _, status = done.stdout.rpartition("\n")
    return {"status": int(status), "body": text}


def by_node(url, method, headers, body):
    order = json.dumps({"url": url, "method": method, "headers": headers, "body": body})
    done = subprocess.run(["node", "-e", NODE, order], capture_output=True, text=True, check=False)
    return json.loads(done.stdout) if done.stdout else {"error": done.stderr}


def by_go(url, method, headers, body):
    order = json.dumps({"url": url, "method": method, "headers": headers, "body": body})
    # Built from shop.go, beside this.
    shop = pathlib.Path(__file__).with_name("shop")
    done = subprocess.run([shop, order], capture_output=True, text=True, check=False)
    return json.loads(done.stdout) if done.stdout else {"error": done.stderr}


PROGRAMS = {"python": by_python, "curl": by_curl, "node": by_node, "go": by_go}


def shop(arguments):
    """Sends a request; says status, headers and body, or what went wrong."""
    headers = {name: filled(value) for name, value in arguments.get("headers", {}).items()}
    body = arguments.get("body")
    run = PROGRAMS[arguments.get("program", "python")]
    url, method = filled(arguments["url"]), arguments.get("method", "GET")
    return json.dumps(run(url, method, headers, None if body is None else filled(body)))


def handshake(arguments):
    """Connects, and looks at who answers: names `name`, or nobody; trusts everybody, or only the file `trusts`."""
    context = ssl.create_default_context(cafile=arguments.get("trusts"))
    if "trusts" not in arguments:
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.check_hostname = False
    if "offers" in arguments:
        context.set_alpn_protocols([arguments["offers"]])
    try:
        with socket.create_connection((arguments["host"], arguments.get("port", 443)), 30) as plain:
            with context.wrap_socket(plain, server_hostname=arguments.get("name")) as peer:
                return "ours" if b"Firedoor" in peer.getpeercert(True) else "its own"
    except OSError as error:
        return f"failed: {error}"


def plainly(arguments):
    """Connects without TLS."""
    try:
        with socket.create_connection((arguments["host"], 443), 30) as peer:
            peer.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
            return f"got {len(peer.recv(1000))} bytes"
    except OSError as error:
        return f"failed: {error}"


def tcp(arguments):
    """Connects to a port."""
    try:
        with socket.create_connection((arguments["host"], arguments["port"]), 5):
            return "connected"
    except OSError as error:
        return f"denied: {type(error).__name__}"


def read(arguments):
    """Reads a file, or tries to write it."""
    try:
        with open(arguments["path"], arguments.get("mode", "r"), encoding="utf-8") as file:
            return file.read()
    except OSError as error:
        return f"denied: {type(error).__name__}"


serve(
    "connecting",
    [
        Tool("shop", "Buys.", shop, ["url"], url="string", program="string", method="string"),
        Tool("handshake", "Looks at who answers.", handshake, ["host"], host="string", name="string"),
        Tool("plainly", "Connects without TLS.", plainly, ["host"], host="string"),
        Tool("tcp", "Connects to a port.", tcp, ["host", "port"], host="string", port="integer"),
        Tool("read", "Reads a file.", read, ["path"], path="string"),
        Tool("variable", "Reads a variable.", lambda a: os.environ.get(a["name"], ""), ["name"], name="string"),
    ],
)
