#!/usr/bin/env python3
"""Installs Firedoor under wine as a user of Windows would, replaces it while it runs, removes and purges it, and compares everything.

usage: installer.py SETUP.EXE            what scripts/package-windows makes; needs wine and mingw's C compiler

Exits 1 when a step does not prove what it should, 2 when it cannot run here.
"""

import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

from wine import COMPILER, HERE, Failed, Session, Windows, expect

PROGRAMS = {"firedoor.exe", "firedoor-shim.exe", "firedoor-remote.exe", "firedoor-wasm.exe", "firedoor-desktop.exe"}
FILES = PROGRAMS | {"WebView2Loader.dll", "uninstall.exe", "LICENSE.txt", "THIRD-PARTY-LICENSES.txt", "README.md", "RESTORE.txt"}
ENTRY = r"HKCU\Software\Microsoft\Windows\CurrentVersion\Uninstall\Firedoor"
ENVIRONMENT = r"HKCU\Environment"
# Where Microsoft's WebView2 runtime says that it is installed, for the machine and for one user; wine has none.
CLIENT = r"\Clients\{F3017226-FE2A-4295-8BDF-00C3A9A7E4C5}"
WEBVIEW = [rf"{place}\Microsoft\EdgeUpdate{CLIENT}" for place in (r"HKLM\Software\Wow6432Node", r"HKCU\Software")]
CONFIG = b'{\r\n\t"mcpServers": {\r\n\t\t"echo": {"command": "C:\\\\test\\\\server.exe", "args": ["one two"]}\r\n\t}\r\n}\r\n'

# The user's PATH before: the kind of its value and the value, or None; and what it is afterwards. {} is Firedoor's directory.
LONG = ";".join(rf"C:\a long directory\number {n}" for n in range(90))
PATHS = [
    (None, ("REG_SZ", "{}")),
    (("REG_SZ", ""), ("REG_SZ", "{}")),
    (("REG_SZ", r"C:\a b;D:\c"), ("REG_SZ", r"C:\a b;D:\c;{}")),
    (("REG_SZ", "C:\\a;"), ("REG_SZ", "C:\\a;{}")),
    (("REG_EXPAND_SZ", r"%SystemRoot%\x;%USERPROFILE%\bin"), ("REG_EXPAND_SZ", r"%SystemRoot%\x;%USERPROFILE%\bin;{}")),
    # There already, in other letters: it is somebody else's, and stays.
    (("REG_SZ", r"C:\A;{upper};C:\B"), ("REG_SZ", r"C:\A;{upper};C:\B")),
    # Longer than a string of NSIS, and too long for Windows' own window.
    (("REG_EXPAND_SZ", LONG[:1500]), ("REG_EXPAND_SZ", LONG[:1500] + ";{}")),
    (("REG_EXPAND_SZ", LONG[:2040]), ("REG_EXPAND_SZ", LONG[:2040])),
    # Nothing that programs could use.
    (("REG_DWORD", "0x7"), ("REG_DWORD", "0x7")),
]
# What somebody has made of it by the time of removal, and what is left then.
LATER = [
    ("C:\\a", "{};C:\\z", "C:\\z"),
    ("C:\\a", "C:\\a;{};C:\\z;", "C:\\a;C:\\z;"),
    ("C:\\a", "C:\\a", "C:\\a"),
    ("C:\\a", "C:\\a;{}\\deeper", "C:\\a;{}\\deeper"),
    ("C:\\a", "{}", ""),
]


class Machine(Windows):
    """A fresh Windows, with a setup program to start and servers to protect."""

    def __init__(self, place, setup):
        keep = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
        self.env = {**keep, "HOME": str(place), "WINEPREFIX": str(place / "prefix"), "WINEDEBUG": "-all"}
        # Nor what hands the Start menu on to this system's, and keeps a list of it.
        self.env["WINEDLLOVERRIDES"] = "mscoree,mshtml=;winemenubuilder.exe=d"
        self.disk = place / "prefix/drive_c"
        quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        subprocess.run(["wine", "wineboot", "--init"], env=self.env, timeout=300, check=True, **quiet)
        # Debian's says that it is Windows 7.
        subprocess.run(["wine", "winecfg", "-v", "win10"], env=self.env, timeout=300, check=True, **quiet)
        test = self.disk / "test"
        test.mkdir()
        shutil.copy(setup, test / "firedoor-setup.exe")
        for name in ("server", "desktop"):
            subprocess.run([COMPILER, "-O2", "-Wall", "-Werror", HERE / f"{name}.c", "-o", test / f"{name}.exe"], check=True)
        # Every Windows has this library, and wine has not.
        library = self.disk / "windows/system32/bcryptprimitives.dll"
        if not library.exists():
            source = HERE / "bcryptprimitives.c"
            subprocess.run([COMPILER, "-shared", "-O2", source, "-o", library, "-ladvapi32"], check=True)
        self.home = self.path("%LOCALAPPDATA%/Programs/Firedoor")
        # Windows' own, for programs of one user: they stay.
        self.home.parent.mkdir(exist_ok=True)
        self.run("reg", "add", ENTRY.rpartition("\\")[0], "/f")
        self.place = self.variable("LOCALAPPDATA") + r"\Programs\Firedoor"

    def run(self, *command):
        """As of any Windows; but what it starts in the background, such as wine's desktop, may hold its streams open, so they are files."""
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            options = {"stdin": subprocess.DEVNULL, "stdout": out, "stderr": err, "timeout": 300, "check": False}
            done = subprocess.run(["wine", *command], env=self.env, **options)
            for stream in (out, err):
                stream.seek(0)
            done.stdout, done.stderr = (stream.read().decode(errors="replace").replace("\r\n", "\n") for stream in (out, err))
        return done

    def install(self):
        done = self.run(r"C:\test\firedoor-setup.exe", "/S")
        expect(done.returncode == 0, f"installing: exit {done.returncode}\n{done.stdout}{done.stderr}")
        return done

    def uninstall(self, *words, code=0, typed=None):
        """As Windows' settings and package managers do: with the command that the registry names."""
        program, quiet, place = re.fullmatch(r'"(.*)" (/S) (_\?=.*)', self.value(ENTRY, "QuietUninstallString")[1]).groups()
        done = (typed or self.run)(program, quiet, *words, place)
        expect(done.returncode == code or (code is None and done.returncode != 1), f"removing: exit {done.returncode}\n{done.stdout}{done.stderr}")
        if code != 1:
            until(lambda: not self.home.exists(), lambda: f"left: {sorted(path.name for path in self.home.iterdir())}")
            # What deletes the last file ends a moment later.
            until(lambda: "cmd.exe" not in self.run("tasklist").stdout, lambda: "what deletes the last file does not end")
        return done

    def firedoor(self, *words, code=0):
        done = self.run(self.place + r"\firedoor.exe", *words)
        expect(done.returncode == code, f"firedoor {' '.join(words)}: exit {done.returncode}\n{done.stdout}{done.stderr}")
        return done

    def value(self, key, name):
        """Its kind and text, or nothing. What `reg query` shows, of a name that has no blanks."""
        for line in self.run("reg", "query", key, "/v", name).stdout.splitlines():
            if found := re.fullmatch(rf" +{name} +(REG_\w+)(?: +(.*))?", line, re.IGNORECASE):
                return found[1], found[2] or ""
        return None

    def path_is(self, value):
        """Makes it the user's PATH."""
        if value is None:
            self.run("reg", "delete", ENVIRONMENT, "/v", "Path", "/f")
        else:
            self.run("reg", "add", ENVIRONMENT, "/v", "Path", "/t", value[0], "/d", value[1], "/f")

    def registry(self):
        """All of the user's."""
        self.run("reg", "export", "HKCU", r"C:\test\registry", "/y")
        return (self.disk / "test/registry").read_bytes()

    def listing(self):
        """Every file with its content, without what Windows and the test keep."""
        own = ("test/registry", "windows/", "users/root/Temp", "ProgramData/")
        found = {}
        for path in sorted(self.disk.rglob("*")):
            inside = str(path.relative_to(self.disk))
            if not inside.startswith(own):
                found[inside] = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""
        return found


class Desktop:
    """Starts what a person does."""

    def __init__(self, machine):
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        self.process = subprocess.Popen(["wine", r"C:\test\desktop.exe"], env=machine.env, **pipes)
        self.run("cmd", "/c", "ver")

    def run(self, program, *words):
        """A path without blanks, and words as NSIS reads them: the last is not in quotes."""
        line = " ".join([program, *words])
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        said = []
        while not (said and said[-1].startswith("--- ")):
            text = self.process.stdout.readline()
            expect(text, f"the desktop has gone: {said}")
            said.append(text.strip())
        return subprocess.CompletedProcess(line, int(said.pop()[4:]), "", "\n".join(said))

    def end(self):
        self.process.stdin.close()
        self.process.wait(60)


def until(happens, what, seconds=60):
    """Waits until something is so; else `what` says what is not."""
    end = time.monotonic() + seconds
    while not happens():
        if time.monotonic() >= end:
            raise Failed(what())
        time.sleep(0.2)


def step(text):
    print(f"- {text}", flush=True)


def compare(before, machine, what, but=()):
    """Against the registry and the listing of before; but for what lies in some places and is still there."""
    registry, listing = machine.registry(), machine.listing()
    changed = sorted(path for path in before[1].keys() | listing.keys() if before[1].get(path) != listing.get(path))
    changed = [path for path in changed if not (path.startswith(but) and path in listing)]
    expect(not changed, f"{what}:\n  " + "\n  ".join(changed[:40]))
    lines = [set(text.decode("utf-16").splitlines()) for text in (before[0], registry)]
    expect(registry == before[0], f"{what}, in the registry: {sorted(lines[0] ^ lines[1])[:40]}")


def put_config(machine):
    """A client's configuration as it was before Firedoor."""
    config = machine.path("%APPDATA%/Claude/claude_desktop_config.json")
    config.parent.mkdir(parents=True, exist_ok=True)
    config.write_bytes(CONFIG)
    return config


def try_path(machine):
    """Each kind of PATH, installed and removed."""
    def named(value):
        return value and (value[0], value[1].replace("{}", machine.place).replace("{upper}", machine.place.upper()))

    for before, after in PATHS:
        machine.path_is(named(before))
        was = machine.value(ENVIRONMENT, "Path")
        said = machine.install().stderr
        got = machine.value(ENVIRONMENT, "Path")
        expect(got == named(after), f"PATH {str(before)[:60]}: installed, it is {got}")
        untouched = before == after and "upper" not in before[1]
        expect(("PATH was left as it is" in said) == untouched, f"PATH {str(before)[:60]}: said {said!r}")
        machine.install()
        expect(machine.value(ENVIRONMENT, "Path") == got, f"PATH {str(before)[:60]}: installed twice, it is another")
        machine.uninstall()
        expect(machine.value(ENVIRONMENT, "Path") == was, f"PATH {str(before)[:60]}: removed, it is {machine.value(ENVIRONMENT, 'Path')}")
    for before, edited, after in LATER:
        machine.path_is(("REG_EXPAND_SZ", before))
        machine.install()
        machine.path_is(named(("REG_EXPAND_SZ", edited)))
        machine.uninstall()
        got = machine.value(ENVIRONMENT, "Path")
        expect(got == named(("REG_EXPAND_SZ", after)), f"PATH {before}, then {edited}: removed, it is {got}")
    step(f"PATH: {len(PATHS)} kinds are as before once it is removed, and {len(LATER)} that were edited meanwhile keep that")


def try_upgrade(machine):
    """Installed, used, replaced while it runs, and removed."""
    machine.path_is(("REG_EXPAND_SZ", r"%SystemRoot%\x"))
    expect("need Microsoft's WebView2 runtime" in machine.install().stderr, "what shows windows is missing, which is not said")
    for key in WEBVIEW:
        machine.run("reg", "add", key, "/v", "pv", "/d", "130.0.2849.80", "/f")
        said = machine.install().stderr
        machine.run("reg", "delete", key.removesuffix(CLIENT), "/f")
        expect("WebView2" not in said, f"what shows windows is there, and it says {said}")
    files = {path.name for path in machine.home.iterdir()}
    expect(files == FILES, f"installed: {sorted(files)}")
    licences = (machine.home / "THIRD-PARTY-LICENSES.txt").read_text(encoding="utf-8")
    for library in ("rusqlite", "svelte", "tauri", "tokio", "wasmtime", "windows-sys", "WebView2Loader.dll"):
        expect(re.search(rf"^{library} (\d|is Microsoft's)", licences, re.MULTILINE), f"there are no licences of {library}")
    version = machine.value(ENTRY, "DisplayVersion")[1]
    expect(machine.firedoor("--version").stdout.split() == ["firedoor", version], f"not version {version}")
    expect(machine.value(ENTRY, "UninstallString")[1] == rf'"{machine.place}\uninstall.exe" _?={machine.place}', "how to remove it")
    size = int(machine.value(ENTRY, "EstimatedSize")[1], 16)
    expect(size > sum((machine.home / name).stat().st_size for name in PROGRAMS) >> 10, f"its size: {size} KiB")
    # As a terminal that was opened since has it.
    found = machine.run("cmd", "/c", "firedoor --version")
    expect(version in found.stdout, f"not on PATH: {found.stdout}{found.stderr}")
    step(f"installed, version {version}: on PATH, with an entry for removing")

    config = put_config(machine)
    # What a person has open since before any client: what nobody else has started, and is younger, may not restore while a client runs.
    desktop = Desktop(machine)
    machine.firedoor("protect", "claude-desktop", "--yes", "--no-verify")
    entry = json.loads(config.read_text())["mcpServers"]["echo"]
    expect(entry["command"] == machine.place + r"\firedoor-shim.exe", f"the entry starts {entry['command']}")
    engine = subprocess.Popen(["wine", machine.place + r"\firedoor.exe", "daemon"], env=machine.env, stdin=subprocess.DEVNULL)
    until(lambda: machine.run(machine.place + r"\firedoor.exe", "status").returncode == 0, lambda: "no engine runs")
    pid = json.loads(machine.firedoor("status", "--json").stdout)["pid"]
    shim = Session(machine, [entry["command"], *entry["args"]])
    first = shim.ask("initialize", protocolVersion="2025-06-18", capabilities={})
    machine.install()
    expect(json.loads(machine.firedoor("status", "--json").stdout)["pid"] == pid, "another engine runs")
    expect(engine.poll() is None and shim.process.poll() is None, "what ran has ended")
    again = shim.ask("tools/list")
    expect(("result" in json.loads(first)) == ("result" in json.loads(again)), f"before: {first}, after: {again}")
    old = {path.name.split(".exe.")[0] for path in machine.home.glob("*.old")}
    expect(old == {"firedoor", "firedoor-shim"}, f"set aside: {sorted(path.name for path in machine.home.iterdir())}")
    expect(json.loads(config.read_text())["mcpServers"]["echo"] == entry, "the configuration is another")
    answered = "a server's session" if "result" in json.loads(first) else "a shim"
    step(f"replaced while an engine and {answered} run, which go on")
    refused = machine.uninstall(code=1).stderr
    expect("younger than an AI client" in refused, f"removing, from nowhere: {refused}")
    expect(json.loads(config.read_text())["mcpServers"]["echo"] == entry, "refused, the configuration is another")
    machine.uninstall(typed=desktop.run)
    desktop.end()
    engine.wait(60)
    shim.process.wait(60)
    expect(config.read_bytes() == CONFIG, f"removed, the configuration is {config.read_bytes()}")
    expect(machine.value(ENTRY, "DisplayName") is None, "the entry for removing is left")
    expect(machine.value(ENVIRONMENT, "Path") == ("REG_EXPAND_SZ", r"%SystemRoot%\x"), "PATH is another")
    expect((machine.path("%LOCALAPPDATA%/firedoor") / "state").is_dir(), "the log is gone")
    step("removed beside them: they have ended, the configuration is byte for byte as before, log and backups are kept")


def try_refusal(machine):
    """Where a configuration cannot be given back, nothing is removed."""
    config = put_config(machine)
    machine.install()
    machine.firedoor("protect", "claude-desktop", "--yes", "--no-verify")
    config.chmod(0o444)
    # That it was tried is written there.
    journal = "users/root/AppData/Local/firedoor/state/backups/"
    before = machine.registry(), machine.listing()
    said = machine.uninstall("/PURGE", code=1).stderr
    expect("nothing was removed" in said and "read-only" in said, f"it says: {said}")
    compare(before, machine, "refused, something is another", journal)
    # Nor where the program cannot say.
    program = machine.home / "firedoor.exe"
    aside = program.rename(machine.disk / "test/aside.exe")
    said = machine.uninstall("/PURGE", code=1).stderr
    expect("install it again" in said, f"without firedoor.exe it says: {said}")
    aside.rename(program)
    compare(before, machine, "refused, something is another", journal)
    config.chmod(0o644)
    machine.uninstall()
    expect(config.read_bytes() == CONFIG, "the configuration is another")
    step("a configuration that cannot be given back: exit code 1, it says which, and nothing is removed")


def try_purge(machine, before):
    """Nothing of Firedoor's is left, and nothing else is gone."""
    config = put_config(machine)
    machine.install()
    machine.firedoor("protect", "claude-desktop", "--yes", "--no-verify")
    data = machine.path("%LOCALAPPDATA%/firedoor")
    deep = data / "data"
    for _ in range(12):
        deep /= "a directory with a long name"
    deep.mkdir(parents=True)
    (deep / "read only").write_bytes(b"x")
    (deep / "read only").chmod(0o444)
    # A junction to wine, too. Some versions remove what it leads to instead of the link, and only where that is empty: it is left there.
    link = data / "data/link"
    link.symlink_to(machine.disk / "test")
    machine.path("%APPDATA%/firedoor").mkdir(exist_ok=True)
    machine.path("%APPDATA%/firedoor/config.toml").write_text("")
    done = machine.uninstall("/PURGE", code=None)
    expect((done.returncode == 2) == link.is_symlink(), f"exit {done.returncode}: {done.stderr}")
    if link.is_symlink():
        expect("3 files or directories" in done.stderr and r"firedoor\data\link" in done.stderr, f"it says: {done.stderr}")
        link.unlink()
        link.parent.rmdir()
        data.rmdir()
    config.unlink()
    config.parent.rmdir()
    compare(before, machine, "changed or left")
    step("purged: nothing is left, and what a link in its directories leads to is untouched")


def look_at_lists(setup):
    """Beside it lies what each program is made of, and a checksum of each file."""
    for program in sorted(PROGRAMS):
        crate = "firedoor-cli" if program == "firedoor.exe" else program.removesuffix(".exe")
        made = json.loads((setup.parent / f"{crate}.x86_64-pc-windows-gnu.cdx.json").read_text())
        expect(made["metadata"]["component"]["name"] == crate and made.get("components"), f"what {program} is made of is not said")
    sums = dict(reversed(line.split(maxsplit=1)) for line in (setup.parent / "SHA256SUMS.windows").read_text().splitlines())
    expect({setup.name, *(path.name for path in setup.parent.glob("*windows-gnu.cdx.json"))} == sums.keys(), f"with a checksum: {sorted(sums)}")
    for name, digest in sums.items():
        expect(hashlib.sha256((setup.parent / name).read_bytes()).hexdigest() == digest, f"{name} has another checksum")
    step(f"lists of contents of {len(PROGRAMS)} programs, {len(sums)} files with a checksum")


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    for tool in ("wine", COMPILER):
        if not shutil.which(tool):
            print(f"installer.py: there is no {tool}: scripts/setup cross installs it", file=sys.stderr)
            return 2
    with tempfile.TemporaryDirectory(prefix="fd-wine-", dir="/tmp") as place:
        machine = None
        try:
            machine = Machine(pathlib.Path(place), sys.argv[1])
            look_at_lists(pathlib.Path(sys.argv[1]))
            machine.path_is(None)
            # What wine itself makes with the first program that is started.
            machine.run("cmd", "/c", "ver")
            before = machine.registry(), machine.listing()
            try_purge(machine, before)
            try_upgrade(machine)
            try_refusal(machine)
            try_path(machine)
        except Failed as failure:
            print(f"FAILED: {failure}", file=sys.stderr)
            return 1
        finally:
            if machine:
                subprocess.run(["wineserver", "-k"], env=machine.env, check=False)
                subprocess.run(["wineserver", "-w"], env=machine.env, check=False)
    print("it installs, goes on while it is replaced, gives everything back, and leaves nothing")
    return 0


if __name__ == "__main__":
    sys.exit(main())
