#!/usr/bin/env python3
"""Runs Firedoor for Windows under wine: the command line finds the clients' files in Windows' places, protects them and gives them
back; the shim starts an engine and a server of its own, and they talk as without it.

usage: wine.py FIREDOOR.EXE              needs wine, mingw's C compiler and clang, and the other programs beside it, with
                                         "--features firedoor-sandbox/wine": wine honours no restricted token
       wine.py --tests TESTS.EXE [ARG]…  runs unit tests that were built for Windows, but for what wine cannot do; exits as they do

Exits 1 when a step does not prove what it should, 2 when it cannot run here.
"""

import http.server
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
COMPILER = "x86_64-w64-mingw32-gcc"

# Unit tests that wine cannot pass, and why.
BEYOND_WINE = {
    "pipe::tests::a_name_is_listened_on_once": "its CreateNamedPipeW gives a second listener an end, whatever FILE_FLAG_FIRST_PIPE_INSTANCE says",
    "windows::tests::the_system_keeps_a_restricted_token_from_writing": "it makes such tokens and judges them as any other",
}

# Made up.
SECRET = "ghp_FAKE0000FAKE0000FAKE0000"

# Where a client looks, its text, and the servers that can be protected. With the lines of Windows where a client keeps them.
FILES = {
    "%APPDATA%/Claude/claude_desktop_config.json": (
        '{\r\n\t"mcpServers": {\r\n\t\t"files": {"command": "cmd", "args": ["/c", "npx", "-y", "x", "C:\\\\Users\\\\me"]}\r\n\t}\r\n}\r\n',
        {"files"},
    ),
    "%USERPROFILE%/.claude.json": (
        '{"numStartups": 12345678901234567890, "mcpServers": {"a": {"command": "C:\\\\tools\\\\a.exe"},\r\n "far": {"type": "http", '
        '"url": "http://127.0.0.1:9/mcp"}}}',
        {"a", "far"},
    ),
    "%APPDATA%/Code/User/mcp.json": (
        '\ufeff// mine\r\n{ "servers": { "a": { "command": "npx", "args": [ "x", /* why */ ], }, } }\r\n',
        {"a"},
    ),
    "%USERPROFILE%/.cursor/mcp.json": (
        '{"mcpServers": {"git": {"command": "npx", "args": ["x"], "env": {"GITHUB_TOKEN": "%s", "GOOGLE_APPLICATION_CREDENTIALS": '
        '"C:\\\\Users\\\\me\\\\key.json"}}}}' % SECRET,
        {"git"},
    ),
    "%USERPROFILE%/.codex/config.toml": (
        "model = 'x' # c\r\n\r\n[mcp_servers.a]\r\ncommand = 'C:\\tools\\a.exe'\r\nargs = [\"--x\"]\r\n",
        {"a"},
    ),
    "%APPDATA%/Block/goose/config/config.yaml": (
        "extensions:\r\n  a: # c\r\n    type: stdio\r\n    cmd: npx\r\n    args: [-y, x]\r\n    enabled: true\r\n",
        {"a"},
    ),
    "C:/work/.cursor/mcp.json": ('{"mcpServers":{"p":{"command":"node","args":[".\\\\s.mjs"]}}}\n', {"p"}),
}


class Failed(Exception):
    """A step did not prove what it should."""


def expect(condition, what):
    """Ends the test when something is not so."""
    if not condition:
        raise Failed(what)


class Windows:
    """A fresh Windows of wine's."""

    def __init__(self, place, program):
        keep = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
        self.env = {**keep, "HOME": str(place), "WINEPREFIX": str(place / "prefix"), "WINEDEBUG": "-all", "WINEDLLOVERRIDES": "mscoree,mshtml="}
        self.disk = place / "prefix/drive_c"
        self.run("wineboot", "--init")
        programs = self.disk / "firedoor"
        programs.mkdir()
        self.program = shutil.copy(program, programs / "firedoor.exe")
        self.shim = pathlib.Path(program).with_name("firedoor-shim.exe")
        others = [*(f"firedoor-{name}.exe" for name in ("shim", "remote", "wasm", "desktop")), "WebView2Loader.dll"]
        for other in map(self.shim.with_name, others):
            if other.exists():
                shutil.copy(other, programs)
        source, library = HERE / "bcryptprimitives.c", programs / "bcryptprimitives.dll"
        subprocess.run([COMPILER, "-shared", "-O2", source, "-o", library, "-ladvapi32"], check=True)
        for name in ("server", "desktop"):
            subprocess.run([COMPILER, "-O2", "-Wall", "-Werror", HERE / f"{name}.c", "-o", programs / f"{name}.exe"], check=True)

    def run(self, *command):
        """What it says, without Windows' line ends. An engine that it starts may hold its streams open, so they are files."""
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            done = subprocess.run(["wine", *command], env=self.env, stdout=out, stderr=err, timeout=300, check=False)
            for stream in (out, err):
                stream.seek(0)
            done.stdout, done.stderr = (stream.read().decode().replace("\r\n", "\n") for stream in (out, err))
        return done

    def firedoor(self, *words, code=0):
        done = self.run(r"C:\firedoor\firedoor.exe", *words)
        expect(done.returncode == code, f"firedoor {' '.join(words)}: exit {done.returncode}\n{done.stdout}{done.stderr}")
        return done

    def running(self, program):
        """Whether a program of that name runs in it, by what this system knows."""
        of_it = f"WINEPREFIX={self.env['WINEPREFIX']}".encode()
        for process in pathlib.Path("/proc").iterdir():
            try:
                name, _, _ = (process / "cmdline").read_bytes().partition(b"\0")
                if name.decode(errors="replace").lower().endswith(program) and of_it in (process / "environ").read_bytes().split(b"\0"):
                    return True
            except OSError:  # No process, or one that has ended meanwhile.
                continue
        return False

    def variable(self, name):
        return self.run("cmd", "/c", f"echo %{name}%").stdout.strip()

    def path(self, windows):
        """Where a path of it lies here."""
        for name in ("APPDATA", "USERPROFILE", "LOCALAPPDATA"):
            if f"%{name}%" in windows:
                windows = windows.replace(f"%{name}%", self.variable(name))
        return self.disk / windows.replace("\\", "/").removeprefix("C:/")

    def entries(self):
        found = json.loads(self.firedoor("scan", "--json", "--project", r"C:\work").stdout)["clients"]
        return {entry["id"]: entry for client in found for file in client["files"] for entry in file["entries"]}


def check(machine):
    """The whole way."""
    files = {}
    for place, (text, servers) in FILES.items():
        path = machine.path(place)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode())
        files[place] = (path, text.encode(), servers)

    found = machine.entries()
    names = sorted(name for _, servers in FILES.values() for name in servers)
    expect(sorted(id.rsplit("/", 1)[1] for id in found) == names, f"found: {sorted(found)}")
    expect(all(entry["state"] == "unprotected" for entry in found.values()), f"before: {found}")

    protect = ("protect", "--all", "--yes", "--no-verify", "--project", r"C:\work")
    restore = ("restore", "--all", "--project", r"C:\work")
    machine.firedoor(*protect)
    expect({entry["state"] for entry in machine.entries().values()} == {"protected"}, f"after: {machine.entries()}")
    desktop = files["%APPDATA%/Claude/claude_desktop_config.json"][0].read_bytes().decode()
    entry = json.loads(desktop)["mcpServers"]["files"]
    expect(entry["command"] == r"C:\firedoor\firedoor-shim.exe", f"the entry starts {entry['command']}")
    own = ["--entry", "claude-desktop/user/files"]
    expect(entry["args"] == [*own, "--", "cmd", "/c", "npx", "-y", "x", r"C:\Users\me"], f"its arguments: {entry['args']}")
    expect(desktop.count("\r\n") == desktop.count("\n"), "a line has lost its end")
    expect("Nothing to change" in machine.firedoor(*protect).stdout, "protecting twice is not once")
    cursor = files["%USERPROFILE%/.cursor/mcp.json"][0].read_text()
    expect(SECRET not in cursor and r"C:\\Users\\me\\key.json" in cursor, f"what moved into the Credential Manager: {cursor}")
    machine.firedoor(*restore)
    for place, (path, was, _) in files.items():
        expect(path.read_bytes() == was, f"{place}: restored, it is {path.read_bytes()}")
    print(f"protected and given back byte for byte: {len(files)} files, {len(names)} servers", flush=True)

    # What was edited in between stays, and the saved copies are not needed.
    machine.firedoor(*protect)
    for place, (path, was, _) in files.items():
        path.write_bytes(path.read_bytes() + b"\r\n")
    shutil.rmtree(machine.path("%LOCALAPPDATA%/firedoor/state"))
    machine.firedoor(*restore)
    for place, (path, was, _) in files.items():
        expect(path.read_bytes() == was + b"\r\n", f"{place}: entry by entry, it is {path.read_bytes()}")
    print("entry by entry too, with the saved copies gone and later edits kept", flush=True)

    code, _, _ = files["%APPDATA%/Code/User/mcp.json"]
    code.chmod(0o444)
    refused = machine.firedoor("protect", "vscode", "--yes", "--no-verify", code=1)
    expect("read-only" in refused.stdout + refused.stderr, f"a read-only file: {refused.stdout}{refused.stderr}")
    code.chmod(0o644)
    os.link(code, code.with_name("other.json"))
    refused = machine.firedoor("protect", "vscode", "--yes", "--no-verify", code=1)
    expect("2 hard links" in refused.stdout + refused.stderr, f"a hard link: {refused.stdout}{refused.stderr}")
    shim = machine.disk / "firedoor/firedoor-shim.exe"
    shim.unlink()
    missing = machine.firedoor(*protect, code=2)
    expect("nothing was changed: there is no" in missing.stderr, f"without a shim: {missing.stderr}")
    for place, (path, was, _) in files.items():
        expect(path.read_bytes() == was + b"\r\n", f"{place}: without a shim, it is {path.read_bytes()}")
    shutil.copy(machine.shim, shim)
    done = machine.firedoor("observe", "cursor/user/git", "on", code=2)
    expect("not available on this system" in done.stderr, f"observing: {done.stderr}")
    # An administrator's policy is not read there yet, so nothing runs; whoever starts an engine cannot say that it lies elsewhere.
    policy = machine.path("C:/ProgramData/firedoor/policy.toml")
    policy.parent.mkdir(parents=True)
    policy.write_text('mode = "strict"\n')
    for elsewhere in ({}, {"ProgramData": r"C:\elsewhere"}):
        machine.env.update(elsewhere)
        refused = machine.firedoor("daemon", code=2)
        expect("an administrator's policy is not available" in refused.stderr, f"with a policy: {refused.stderr}")
        for name in elsewhere:
            del machine.env[name]
    policy.unlink()
    print("what is not there yet is said, and nothing is protected without a shim", flush=True)


class Session:
    """One server's client."""

    def __init__(self, machine, command, **variables):
        self.errors = tempfile.TemporaryFile()
        env = {**machine.env, **variables}
        self.process = subprocess.Popen(["wine", *command], env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.errors)
        self.number = 0

    def ask(self, method, **params):
        """The whole answer, as it came. What is no answer is passed over."""
        self.number += 1
        message = {"jsonrpc": "2.0", "id": self.number, "method": method, "params": params}
        self.process.stdin.write(json.dumps(message, separators=(",", ":")).encode() + b"\n")
        self.process.stdin.flush()
        while True:
            line = self.process.stdout.readline()
            expect(line, f"{method}: no answer; {self.said()}")
            if json.loads(line).get("id") == self.number:
                return line

    def open(self):
        return [self.ask("initialize", protocolVersion="2025-06-18", capabilities={}), self.ask("tools/list")]

    def call(self, text):
        return self.ask("tools/call", name="echo", arguments={"text": text})

    def text(self, text):
        answer = json.loads(self.call(text))
        expect("result" in answer, f"{text[:40]}: {answer}")
        return answer["result"]["content"][0]["text"]

    def end(self):
        self.process.stdin.close()
        return self.process.wait(timeout=60)

    def said(self):
        self.errors.seek(0)
        return self.errors.read().decode()


def serve(machine):
    """A server behind the shim, and the engine that the shim starts."""
    # What a person has opened before any client: what descends from it may change what protects.
    desktop = subprocess.Popen(
        ["wine", r"C:\firedoor\desktop.exe"], env=machine.env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )

    def typed(*words):
        """What a person sees who types this there, and its exit code behind it."""
        desktop.stdin.write(" ".join([r"C:\firedoor\firedoor.exe", *words]) + "\n")
        desktop.stdin.flush()
        said = []
        while not (said and said[-1].startswith("--- ")):
            line = desktop.stdout.readline()
            expect(line, f"the desktop has gone: {said}")
            said.append(line.strip())
        return "\n".join(said)

    typed("--version")
    config = machine.path("%APPDATA%/Claude/claude_desktop_config.json")
    servers = {
        "echo": {"command": r"C:\firedoor\server.exe", "args": ["one two"], "env": {"GIVEN_TOKEN": SECRET}},
        "bad": {"command": r"C:\firedoor\server.exe", "args": ["poisoned"]},
        "gone": {"command": r"C:\firedoor\nothing.exe", "args": []},
        "module": {"command": "wasmtime", "args": ["run", r"C:\tools\echo_server.wasm"]},
    }
    config.write_text(json.dumps({"mcpServers": servers}))
    subprocess.run([HERE.parent / "wasm/build.sh", machine.disk / "tools", "echo_server"], check=True)
    seen = typed("protect", "claude-desktop", "--yes")
    for name in ("echo", "bad"):
        expect(f"claude-desktop/user/{name}: protected, answers as before (1 tools)" in seen, f"verifying: {seen}")
    expect("claude-desktop/user/gone: protected, not verified" in seen, f"verifying: {seen}")
    protected = json.loads(config.read_text())["mcpServers"]
    expect(SECRET not in config.read_text(), "the secret is still in the file")

    def session(name):
        entry = protected[name]
        return Session(machine, [entry["command"], *entry["args"]], **entry.get("env", {}), OTHER_TOKEN="u")

    direct = Session(machine, [servers["echo"]["command"], "one two"], GIVEN_TOKEN=SECRET)
    through = session("echo")
    expect(through.open() == direct.open(), "the handshake and the list are not what the server says")
    for text in ("a line", "x" * 300_000):
        said, want = through.call(text), direct.call(text)
        expect(said == want, f"not what the server says: {said[:300]} instead of {want[:300]}")
    expect((said := through.text("hello")) == f"hello|{SECRET}||one two", f"arguments, secret and environment: {said}")
    expect(direct.end() == 0, "the server itself")
    status = json.loads(machine.firedoor("status", "--json").stdout)
    sessions = status["sessions"]
    expect(len(sessions) == 1 and sessions[0]["level"].startswith("writes:"), f"status: {status}")
    # Not listed: wine's CredEnumerateW gives structures that are not aligned, which a debug build of the keyring's library ends for.
    expect("another Firedoor engine is running" in machine.firedoor("daemon", code=2).stderr, "a second engine")
    child = through.text("child")
    expect(machine.running("ping.exe"), "the server's child does not run")
    expect(through.end() == 0, f"the end: {through.said()}")
    expect(not machine.running("ping.exe"), f"left behind: {child}")
    print("a server behind the shim says what it says without it, gets its secret, and leaves nothing behind", flush=True)

    bad = session("bad")
    bad.open()
    refused = json.loads(bad.call("x"))
    expect("Firedoor" in json.dumps(refused), f"a poisoned tool: {refused}")
    accept = ("pins", "accept", "claude-desktop/user/bad", "--tool", "echo")
    stranger = machine.firedoor(*accept, code=1)
    expect("younger than an AI client" in stranger.stderr, f"accepting, from nowhere: {stranger.stderr}")
    person = typed(*accept)
    expect("--- 0" in person, f"accepting, from a shell of before: {person}")
    expect(bad.text("x") == "x|||poisoned", "accepted, it is not called")
    expect("bad" in machine.firedoor("log", "--json").stdout, "the log")
    print("a poisoned tool is refused until a person accepts it, and nobody else may", flush=True)

    module = session("module")
    module.open()
    for text in ("a line", "x" * 100_000):
        expect(module.text(text) == text, "what a WebAssembly tool says")
    expect(module.end() == 0, f"the end: {module.said()}")
    print("a WebAssembly tool answers, run by Firedoor's own runtime", flush=True)

    with Remote() as remote:
        far(machine, remote, typed)

    gone = session("gone")
    answer = json.loads(gone.ask("initialize"))
    expect("nothing.exe" in answer["error"]["message"], f"a program that is not there: {answer}")
    gone.end()
    engine = json.loads(machine.firedoor("status", "--json").stdout)["pid"]
    machine.run("taskkill", "/f", "/pid", str(engine))
    answer = json.loads(bad.ask("tools/list"))
    expect("engine has gone" in answer["error"]["message"], f"without an engine: {answer}")
    expect(not machine.running("server.exe"), "the server runs on without an engine")
    expect(bad.end() != 0, "the shim ends as if nothing had happened")
    expect(machine.firedoor("status", code=2).stderr.count("no Firedoor engine is running") == 1, "an engine is left")
    again = session("echo")
    again.open()
    expect(again.text("again").startswith("again|"), "a new engine")
    again.end()
    desktop.stdin.close()
    desktop.wait(timeout=60)
    print("a server ends with its engine, and the next one starts another", flush=True)


class Remote:
    """A server with an address, on this machine."""

    def __enter__(self):
        asked = self.asked = []

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                message = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                asked.append((message.get("method"), self.headers.get("Authorization"), self.headers.get("Mcp-Session-Id")))
                self.send_response(200 if "id" in message else 202)
                body = b""
                if "id" in message:
                    text = message["params"].get("arguments", {}).get("text", "")
                    result = {
                        "initialize": {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "far", "version": "1"}},
                        "tools/list": {"tools": [{"name": "echo", "description": "Returns its text.", "inputSchema": {"type": "object"}}]},
                        "tools/call": {"content": [{"type": "text", "text": f"far: {text}"}]},
                    }[message["method"]]
                    body = json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}).encode()
                    self.send_header("Content-Type", "application/json")
                    if message["method"] == "initialize":
                        self.send_header("Mcp-Session-Id", "s1")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def do_GET(self):
                self.send_response(405)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def do_DELETE(self):
                asked.append(("DELETE", self.headers.get("Authorization"), self.headers.get("Mcp-Session-Id")))
                self.send_response(200)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()


def far(machine, remote, typed):
    """A server with an address, behind the shim and the program that speaks to it."""
    config = machine.path("%USERPROFILE%/.cursor/mcp.json")
    url = f"http://127.0.0.1:{remote.server.server_port}/mcp"
    text = json.dumps({"mcpServers": {"far": {"url": url, "headers": {"Authorization": f"Bearer {SECRET}"}}}})
    config.write_text(text)
    seen = typed("protect", "cursor/user/far", "--yes")
    expect("cursor/user/far: protected, answers through Firedoor (1 tools)" in seen, f"verifying: {seen}")
    entry = json.loads(config.read_text())["mcpServers"]["far"]
    expect("url" not in entry and SECRET not in config.read_text(), f"the protected entry: {entry}")
    session = Session(machine, [entry["command"], *entry["args"]], **entry.get("env", {}))
    session.open()
    for text_said in ("hello", "x" * 300_000):
        expect(session.text(text_said) == f"far: {text_said}", "what the server with an address says")
    expect(machine.running("firedoor-remote.exe"), "nothing speaks to it")
    expect(session.end() == 0, f"the end: {session.said()}")
    expect(not machine.running("firedoor-remote.exe"), "what speaks to it is left behind")
    expect({authorization for _, authorization, _ in remote.asked} == {f"Bearer {SECRET}"}, f"its secret: {remote.asked}")
    expect(remote.asked[-1] == ("DELETE", f"Bearer {SECRET}", "s1"), f"taking leave: {remote.asked[-3:]}")
    typed("restore", "cursor/user/far")
    expect(config.read_text() == text, f"restored: {config.read_text()}")
    print("a server with an address answers through Firedoor, gets its secret, and is taken leave of", flush=True)


def app(machine):
    """The app in the tray holds the engine, and is there once. There is no screen, which wine is told, so none of its windows is seen."""
    if not (machine.disk / "firedoor/firedoor-desktop.exe").exists():
        print("the app was NOT TRIED: it was not built", flush=True)
        return
    for program in ("firedoor", "firedoor-shim"):
        machine.run("taskkill", "/f", "/im", f"{program}.exe")
    until(lambda: machine.run(r"C:\firedoor\firedoor.exe", "status").returncode == 2, "an engine is left")
    machine.run("reg", "add", r"HKCU\Software\Wine\Drivers", "/v", "Graphics", "/d", "null", "/f")
    start = ["wine", r"C:\firedoor\firedoor-desktop.exe", "--background"]
    with tempfile.TemporaryFile() as said:
        process = subprocess.Popen(start, env=machine.env, stdin=subprocess.DEVNULL, stdout=said, stderr=said)
        until(lambda: machine.run(r"C:\firedoor\firedoor.exe", "status").returncode == 0, "the app holds no engine")
        expect(process.poll() is None, "the app has ended")
        expect(not machine.running("firedoor.exe"), "the engine is a program of its own")
        again = subprocess.run(start, env=machine.env, stdin=subprocess.DEVNULL, stdout=said, stderr=said, timeout=60, check=False)
        expect(again.returncode == 0 and process.poll() is None, f"a second app: exit {again.returncode}")
        machine.run("taskkill", "/f", "/im", "firedoor-desktop.exe")
        process.wait(60)
        until(lambda: machine.run(r"C:\firedoor\firedoor.exe", "status").returncode == 2, "an engine is left behind by the app")
    print("the app holds the engine, without a tray and windows, and is there once", flush=True)


def until(happens, what, seconds=60):
    """Waits until something is so; else says what is not."""
    end = time.monotonic() + seconds
    while not happens():
        expect(time.monotonic() < end, what)
        time.sleep(0.2)


def main():
    match sys.argv[1:]:
        case ["--tests", program, *arguments]:
            pass
        case [program]:
            arguments = None
        case _:
            sys.exit(__doc__)
    for tool in ("wine", COMPILER):
        if not shutil.which(tool):
            print(f"wine.py: there is no {tool}: scripts/setup cross installs it", file=sys.stderr)
            return 2
    with tempfile.TemporaryDirectory(prefix="fd-wine-", dir="/tmp") as place:
        machine = None
        try:
            machine = Windows(pathlib.Path(place), program)
            if arguments is not None:
                skipped = [word for name in BEYOND_WINE for word in ("--skip", name)]
                return subprocess.run(["wine", machine.program, *arguments, *skipped], env=machine.env, check=False).returncode
            check(machine)
            serve(machine)
            app(machine)
        except Failed as failure:
            print(f"FAILED: {failure}", file=sys.stderr)
            return 1
        finally:
            if machine:
                subprocess.run(["wineserver", "-k"], env=machine.env, check=False)
                subprocess.run(["wineserver", "-w"], env=machine.env, check=False)
    return 0


if __name__ == "__main__":
    sys.exit(main())
