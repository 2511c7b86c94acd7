#!/usr/bin/env python3
"""Runs the command line for Windows under wine: it finds the clients' files in Windows' places, protects and gives them back.

usage: wine.py FIREDOOR.EXE              needs wine and mingw's C compiler
       wine.py --tests TESTS.EXE [ARG]…  runs unit tests that were built for Windows, but for what wine cannot do; exits as they do

What stands for the shim here is an empty file: there is none for Windows yet, and nothing is started. Exits 1 when a step does
not prove what it should, 2 when it cannot run here.
"""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
COMPILER = "x86_64-w64-mingw32-gcc"

# Unit tests that wine cannot pass, and why.
BEYOND_WINE = {
    "pipe::tests::a_name_is_listened_on_once": "its CreateNamedPipeW gives a second listener an end, whatever FILE_FLAG_FIRST_PIPE_INSTANCE says",
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
        '"url": "https://example.com/mcp"}}}',
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
        (programs / "firedoor-shim.exe").write_bytes(b"")
        source, library = HERE / "bcryptprimitives.c", programs / "bcryptprimitives.dll"
        subprocess.run([COMPILER, "-shared", "-O2", source, "-o", library, "-ladvapi32"], check=True)

    def run(self, *command):
        """What it says, without Windows' line ends."""
        done = subprocess.run(["wine", *command], env=self.env, capture_output=True, timeout=300, check=False)
        done.stdout, done.stderr = (text.decode().replace("\r\n", "\n") for text in (done.stdout, done.stderr))
        return done

    def firedoor(self, *words, code=0):
        done = self.run(r"C:\firedoor\firedoor.exe", *words)
        expect(done.returncode == code, f"firedoor {' '.join(words)}: exit {done.returncode}\n{done.stdout}{done.stderr}")
        return done

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
    restored = machine.firedoor(*restore)
    expect("AI client asks for it is not available on this system" in restored.stderr, f"restoring: {restored.stderr}")
    for place, (path, was, _) in files.items():
        expect(path.read_bytes() == was, f"{place}: restored, it is {path.read_bytes()}")
    print(f"protected and given back byte for byte: {len(files)} files, {len(names)} servers", flush=True)

    # What was edited in between stays, and the saved copies are not needed. Nothing can be started to see whether it answers.
    seen = machine.firedoor(*(word for word in protect if word != "--no-verify")).stdout
    expect(seen.count("protected, not verified") == len(names), f"verifying: {seen}")
    expect("starting servers is not available on this system" in seen, f"verifying: {seen}")
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
    (machine.disk / "firedoor/firedoor-shim.exe").unlink()
    nothing = "starting servers through Firedoor is not available on this system"
    missing = machine.firedoor(*protect, code=2)
    expect(nothing in missing.stderr, f"without a shim: {missing.stderr}")
    for place, (path, was, _) in files.items():
        expect(path.read_bytes() == was + b"\r\n", f"{place}: without a shim, it is {path.read_bytes()}")
    for words in (["status"], ["daemon"], ["doctor"], ["log"], ["sandbox", "doctor"], ["protect", "cursor", "--endpoint", "--yes"]):
        done = machine.firedoor(*words, code=2)
        expect("not available on this system" in done.stderr, f"{words}: {done.stderr}")
    print("what is not there yet is said, and nothing is protected without a shim", flush=True)


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
