#!/usr/bin/env python3
"""Logging in with a certified issuer of tokens (oidc-provider) and a server on the official SDK, a browser's part played by
this program: registration, consent, renewal with rotation while the server runs, revocation, an address that is pasted, a code
that is entered elsewhere; and with a browser that is misled, and issuers that stand before the real one: answers of another issuer,
codes that are wanted by somebody else, answers that come twice, logins that the issuer takes back. Exit code 1 when anything is not
as it should be, 2 when it cannot be run."""

import contextlib
import http.cookiejar
import json
import pathlib
import re
import subprocess
import sys
import urllib.error
import urllib.parse
import urllib.request

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
sys.path.insert(0, str(HERE.parent / "harness"))
from conformance import install, serving  # noqa: E402
from scratch import Missing, Scratch, as_ordinary_user, until  # noqa: E402

ENTRY = "cursor/user/s"
BUS = """<busconfig><type>session</type><listen>unix:path={path}</listen><auth>EXTERNAL</auth>
<policy context="default"><allow send_destination="*" eavesdrop="true"/><allow eavesdrop="true"/><allow own="*"/></policy>
</busconfig>"""


@contextlib.contextmanager
def keychain(scratch):
    """gnome-keyring on a bus of its own."""
    path = scratch.root / "bus"
    config = scratch.write("bus.conf", BUS.format(path=path))
    scratch.env["DBUS_SESSION_BUS_ADDRESS"] = f"unix:path={path}"
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    with contextlib.ExitStack() as stack:
        def begin(*command, **options):
            process = scratch.start(*command, **quiet, **options)
            stack.callback(process.wait)
            stack.callback(process.terminate)
            return process

        begin("dbus-daemon", f"--config-file={config}", "--nofork", "--nopidfile", "--nosyslog")
        until(path.exists, 10)
        keyring = begin(
            "gnome-keyring-daemon", "--foreground", "--unlock", "--components=secrets", stdin=subprocess.PIPE
        )
        keyring.stdin.write(b"made up")
        keyring.stdin.close()
        owner = ("--dest=org.freedesktop.DBus", "/", "org.freedesktop.DBus.GetNameOwner", "string:org.freedesktop.secrets")
        until(lambda: not scratch.run("dbus-send", "--session", "--print-reply", *owner).returncode, 10)
        yield


def filled(form, code):
    """What a person makes of a form."""
    fields = {}
    for tag in re.findall(r"<input[^>]*>", form):
        said = dict(re.findall(r'(\w+)="([^"]*)"', tag))
        fields[said["name"]] = said.get("value", {"login": "alice", "password": "x", "user_code": code}.get(said["name"]))
    return fields


class Unreachable(urllib.request.HTTPRedirectHandler):
    """A browser for which nobody listens at one place."""

    def __init__(self, place):
        self.place, self.ended_at = place, None

    def redirect_request(self, req, fp, code, msg, headers, newurl):
        if self.place and newurl.startswith(self.place):
            self.ended_at = newurl
            return None
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def consent(address, code=None, unreachable=None):
    """Goes where the browser would, enters the code if there is one, says who it is, agrees, and comes back. What the last page
    says; or the address that it ended at, if that is the place that it cannot reach."""
    redirects = Unreachable(unreachable)
    cookies = urllib.request.HTTPCookieProcessor(http.cookiejar.CookieJar())
    browser = urllib.request.build_opener(urllib.request.ProxyHandler({}), cookies, redirects)
    there, text = (address,), None
    while there:
        try:
            with browser.open(*there, timeout=30) as page:
                url, text = page.url, page.read().decode()
        except urllib.error.HTTPError as error:
            url, text = error.url, error.read().decode()
        form = re.search(r"<form.*?</form>", text, re.DOTALL)
        if redirects.ended_at or not form:
            return redirects.ended_at or text
        action = urllib.parse.urljoin(url, re.search(r'action="([^"]+)"', form.group()).group(1))
        there = action, urllib.parse.urlencode(filled(form.group(), code)).encode()


def place_of(address):
    """Where a login wants its answer to come."""
    return urllib.parse.parse_qs(urllib.parse.urlsplit(address).query)["redirect_uri"][0]


def way_back(address):
    """The answer to a login, as an address that nobody has gone to yet."""
    return consent(address, unreachable=place_of(address))


def go(address):
    """What the browser shows at an address, or nothing where nobody listens."""
    try:
        return consent(address)
    except OSError:
        return None


@contextlib.contextmanager
def login(scratch, *more, entry=ENTRY):
    """`firedoor login`, which waits, and the address for the browser."""
    command = scratch.bin / "firedoor", "login", entry, *more
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with scratch.start(*command, **pipes, text=True, start_new_session=True) as process:
        process.stdout.readline()
        yield process, process.stdout.readline().strip()


def log_in(scratch, *more):
    """`firedoor login`, to its end; what it says, and what the browser shows."""
    with login(scratch, *more) as (process, address):
        if "--paste" in more:
            shown = way_back(address)
            print(shown, file=process.stdin, flush=True)
        else:
            code = process.stdout.readline().strip().rpartition(" ")[2] if "--device" in more else None
            shown = consent(address, code)
        said = process.stdout.read()
    return process.returncode, said, shown


class Session:
    """The server as its client starts it."""

    def __init__(self, scratch):
        entry = json.loads((scratch.home / ".cursor/mcp.json").read_text(encoding="utf-8"))["mcpServers"]["s"]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        # A script is the client: what descends from one may not log in.
        script = scratch.write("client.sh", '"$@"\nexit $?\n')
        self.process = scratch.start("sh", script, entry["command"], *entry["args"], text=True, **pipes)
        self.last = 0
        self.ask("initialize", protocolVersion="2025-11-25", capabilities={}, clientInfo={"name": "t", "version": "1"})

    def ask(self, method, **params):
        """The whole answer."""
        self.last += 1
        message = {"jsonrpc": "2.0", "id": self.last, "method": method, "params": params}
        print(json.dumps(message), file=self.process.stdin, flush=True)
        while (answer := json.loads(self.process.stdout.readline())).get("id") != self.last:
            pass
        return answer

    def whoami(self):
        """What the tool says, or the error."""
        answer = self.ask("tools/call", name="whoami", arguments={})
        return answer["error"]["message"] if "error" in answer else answer["result"]["content"][0]["text"]

    def end(self):
        """Closes it."""
        self.process.stdin.close()
        self.process.wait(30)
        self.process.stdout.close()


def asking(url):
    """Asks the server about its issuer."""
    def get(path):
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(url.removesuffix("/mcp") + path) as answer:
            return json.load(answer)

    return get


def configure(scratch, **urls):
    """Servers of the client."""
    servers = {name: {"url": url} for name, url in urls.items()}
    scratch.write(".cursor/mcp.json", json.dumps({"mcpServers": servers}))


def look(scratch, url):
    """What is seen, and whether it is as it should be."""
    get = asking(url)
    configure(scratch, s=url)
    yield "protecting names the command", f"firedoor login {ENTRY}" in scratch.firedoor("protect", "--all", "--yes").stdout
    code, said, shown = log_in(scratch)
    yield "logging in", (code, "Logged in" in said, "is logged in" in shown) == (0, True, True)
    yield "protecting", scratch.firedoor("protect", "--all", "--yes").returncode == 0
    session = Session(scratch)
    yield "calls with the token for this resource", session.whoami() == "alice tools"
    for round_ in (1, 2):
        get("/end")
        yield f"renewal {round_} while it runs", session.whoami() == "alice tools"
        yield f"rotation {round_}", get("/tokens")["refreshes"] == round_
    yield "logging out", "the issuer was told" in scratch.firedoor("logout", ENTRY).stdout
    yield "no token is left at the issuer", get("/tokens")["alive"] == 0
    yield "what was revoked is asked for again", f"firedoor login {ENTRY}" in session.whoami()
    yield "logging in again", log_in(scratch)[0] == 0
    session.end()
    session = Session(scratch)
    yield "calls with the new token", session.whoami() == "alice tools"
    session.end()
    for way in ("--paste", "--device"):
        scratch.firedoor("logout", ENTRY)
        code, said, _ = log_in(scratch, way)
        yield f"logging in with {way}", (code, "Logged in" in said) == (0, True)
        session = Session(scratch)
        yield f"calls with the token of {way}", session.whoami() == "alice tools"
        get("/end")
        yield f"renewal of the token of {way}", session.whoami() == "alice tools"
        session.end()


def mislead(scratch, url):
    """The same, where somebody stands in between."""
    get, origin = asking(url), url.removesuffix("/mcp")
    configure(scratch, s=url, mixed=f"{origin}/mixed/mcp", posing=f"{origin}/posing/mcp")

    def redeemed():
        return [get("/tokens")["redeemed"][where] for where in ("here", "between")]

    def kept(entry):
        return "is not logged in" not in scratch.firedoor("logout", entry).stdout

    # The issuer is the real one, and what its answer says of it was changed on the way.
    for what, change, why in (
        ("an answer of another issuer", {"iss": ["https://evil.example"]}, "another issuer"),
        ("an answer of nobody", {"iss": []}, "does not say"),
    ):
        with login(scratch) as (process, address):
            place, _, query = way_back(address).partition("?")
            changed = urllib.parse.urlencode(urllib.parse.parse_qs(query) | change, doseq=True)
            shown = go(f"{place}?{changed}")
            process.stdout.read()
        yield what, process.returncode == 1 and why in shown
        yield f"{what}: nothing is kept", not kept(ENTRY)
    # The browser ends up at the real issuer all the same, which says who it is.
    with login(scratch, entry="cursor/user/mixed") as (process, address):
        shown = go(address)
        process.stdout.read()
    yield "a code that another issuer wants", process.returncode == 1 and "another issuer" in shown
    yield "a code that another issuer wants: nothing is kept", not kept("cursor/user/mixed")
    done = scratch.firedoor("login", "cursor/user/posing")
    yield "an issuer that poses as another", done.returncode == 1 and "says that it is" in done.stderr
    yield "no issuer was asked for tokens", redeemed() == [0, 0]
    with login(scratch) as (process, address), login(scratch, entry="cursor/user/mixed") as (other, elsewhere):
        back = way_back(address)
        query = back.partition("?")[2]
        yield "an answer to another login", "does not belong to this login" in go(f"{place_of(elsewhere)}?{query}")
        yield "the answer at its own place", "is logged in" in go(back)
        process.stdout.read()
        yield "the same answer again: nobody listens", go(back) is None
        # It waits for its own answer still.
        go(way_back(elsewhere))
        other.stdout.read()
    yield "one login of two", (process.returncode, other.returncode) == (0, 1)
    with login(scratch) as (process, address):
        yield "the same answer at a later login", "does not belong to this login" in go(f"{place_of(address)}?{query}")
        yield "the later login's own answer", "is logged in" in go(way_back(address))
        process.stdout.read()
    yield "each code went to the issuer that gave it, once", redeemed() == [2, 0]
    configure(scratch, s=url)
    yield "protecting after all of that", scratch.firedoor("protect", "--all", "--yes").returncode == 0
    session = Session(scratch)
    # An issuer takes back what it gave for a code that comes twice (RFC 6749 §4.1.2).
    yield "calls after an answer that came twice", session.whoami() == "alice tools"
    get("/revoke")
    yield "what the issuer took back is asked for again", f"firedoor login {ENTRY}" in session.whoami()
    yield "nothing is kept of it", not kept(ENTRY)
    yield "logging in after that", log_in(scratch)[0] == 0
    yield "calls after that", session.whoami() == "alice tools"
    session.end()


def main():
    """Looks at everything."""
    as_ordinary_user(__file__)
    with Scratch() as scratch:
        place, node = install(scratch)
        seen = []
        with keychain(scratch):
            for part in (look, mislead):
                with serving(scratch, place, node, "protected.mjs") as url:
                    for what, good in part(scratch, url):
                        seen.append(good)
                        if not good:
                            print(f"  {what}: not as it should be")
                scratch.firedoor("logout", ENTRY)
                scratch.firedoor("restore", "--all")
        print(f"{len(seen)} things looked at: {seen.count(False)} not as they should be")
    return 0 if all(seen) else 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Missing as error:
        print(f"oauth.py: {error}", file=sys.stderr)
        sys.exit(2)
