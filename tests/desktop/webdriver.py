"""A WebDriver session (W3C WebDriver, recommendation of 2018) with the windows of one app. Standard library only."""

import base64
import json
import socket
import time
import urllib.error
import urllib.request

# Web element identifier, WebDriver section 11.
ELEMENT = "element-6066-11e4-a52e-4f735466cecf"


class NoSuch(Exception):
    """What was looked for is not there."""


def free_port():
    """A port that nobody listens on right now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Session:
    """Drives the app's windows. The driver starts the app."""

    def __init__(self, port, binary, arguments=(), patience=30):
        self.base = f"http://127.0.0.1:{port}"
        always = {"browserName": "wry", "webkitgtk:browserOptions": {"binary": str(binary), "args": list(arguments)}}
        end = time.monotonic() + patience
        while True:
            try:
                made = self.request("POST", "/session", {"capabilities": {"alwaysMatch": always}}, timeout=60)
                break
            except urllib.error.URLError:
                # The driver is not listening yet.
                if time.monotonic() > end:
                    raise
                time.sleep(0.05)
        self.id = made["sessionId"]

    def request(self, method, path, body=None, timeout=30):
        """One command; an error of the driver is an exception with its message."""
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.base + path, data, {"Content-Type": "application/json"}, method=method)
        try:
            with urllib.request.urlopen(request, timeout=timeout) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as error:
            value = json.load(error).get("value", {})
            raise NoSuch(f"{value.get('error')}: {value.get('message')}") from None

    def do(self, method, path, body=None):
        """A command of this session."""
        return self.request(method, f"/session/{self.id}{path}", body)

    def window(self, title):
        """Goes to the window with that title; False when there is none."""
        for handle in self.do("GET", "/window/handles"):
            try:
                self.do("POST", "/window", {"handle": handle})
                if self.do("GET", "/title") == title:
                    return True
            except NoSuch:
                continue
        return False

    def find(self, css):
        """An element's id, or None."""
        try:
            return self.do("POST", "/element", {"using": "css selector", "value": css})[ELEMENT]
        except NoSuch:
            return None

    def text(self, css="body"):
        """The rendered text of an element, or an empty one."""
        found = self.find(css)
        try:
            return self.do("GET", f"/element/{found}/text") if found else ""
        except NoSuch:
            return ""

    def attribute(self, css, name):
        """An attribute, or None."""
        found = self.find(css)
        try:
            return self.do("GET", f"/element/{found}/attribute/{name}") if found else None
        except NoSuch:
            return None

    def click(self, css):
        """Clicks as a user does."""
        found = self.find(css)
        if not found:
            raise NoSuch(css)
        self.do("POST", f"/element/{found}/click", {})

    def script(self, source, *arguments):
        """Runs a function's body in the window."""
        return self.do("POST", "/execute/sync", {"script": source, "args": list(arguments)})

    def picture(self):
        """The window's content as PNG."""
        return base64.b64decode(self.do("GET", "/screenshot"))

    def end(self):
        """Ends the session, and with it the app."""
        self.do("DELETE", "")
