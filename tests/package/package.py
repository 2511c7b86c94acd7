#!/usr/bin/env python3
"""Installs the package in a clean Debian or Ubuntu, uses it as a user would, removes and purges it, and compares everything.

usage: package.py PACKAGE_DIR      as root; the directory that `make package` writes

The clean system is of this machine's release, for whose libraries the programs were built. It is made once by debootstrap and kept
beside PACKAGE_DIR; each run works on a copy. Exits 1 when a step does not prove what it should, 2 when it cannot run here.
"""

import atexit
import contextlib
import hashlib
import json
import os
import pathlib
import platform
import re
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time

import contents
from contents import Failed, expect, step

TESTS = pathlib.Path(__file__).resolve().parent.parent
USER, HOME = "dev", "/home/dev"
# Where a clean system comes from, and the parts of it that have what the package depends on.
MIRRORS = {"debian": ("http://deb.debian.org/debian", "main"), "ubuntu": ("http://archive.ubuntu.com/ubuntu", "main,universe")}
# Somebody else on the same machine, with another client, and servers of their own.
OTHER, OTHERS_HOME = "eve", "/home/eve"
PATH = "/usr/sbin:/usr/bin:/sbin:/bin"
LIMIT = 20 << 20
SHIM_LIMIT = 4 << 20
# What apt and dpkg write about themselves.
OF_DPKG = (
    "/var/lib/dpkg/", "/var/lib/apt/", "/var/cache/apt/", "/var/log/", "/var/cache/debconf/", "/var/cache/ldconfig/",
    "/etc/ld.so.cache", "/tmp/", "/var/tmp/", "/run/", "/dev/", "/proc/", "/root/", "/var/cache/man/",
    "/usr/share/applications/mimeinfo.cache", "/usr/share/icons/hicolor/icon-theme.cache",
    # What libraries of any program with a window keep.
    f"{HOME}/.cache/fontconfig/", f"{HOME}/.cache/mesa_shader_cache/",
)
CONFIG = """{
    "numStartups": 17,  "theme": "dark",
    "mcpServers": { "files": {"command": "/usr/bin/python3", "args": ["/srv/servers/files_server.py", "%s/notes"]} }
}""" % HOME
OTHERS_CONFIG = """model = "gpt"   # as she likes it

[mcp_servers.files]
command = '/usr/bin/python3'
args = [ "/srv/servers/files_server.py", "%s/notes" ]\t# hers
""" % OTHERS_HOME
# Files that clients read, whose they are, and what stands in them before Firedoor comes.
CONFIGS = {f"{HOME}/.claude.json": (USER, CONFIG), f"{OTHERS_HOME}/.codex/config.toml": (OTHER, OTHERS_CONFIG)}
# What `firedoor doctor` checks on a Debian without a desktop, and what it may say there: nothing is amiss. Of the sandbox the kernel
# decides, which is this machine's.
DOCTOR = {
    "sandbox": r"files, .+ are confined[^;]*(; servers have no network [^;]*)?"
    r"(; missing: (Landlock [2-6] |seccomp user notification |pidfd_getfd of a child )[^;]*)*",
    "shim": "/usr/bin/firedoor-shim",
    "engine": "not running; it starts with the first protected server",
    "secrets": "secrets stay in the configurations: no keychain answers here .*",
    "configurations": "1 servers are not protected: `firedoor protect --all` protects them",
}
# Ways to take the package away: what debconf was told about keeping the log, the rules and the settings (its own answer is to keep
# them), and what apt-get is asked for, with whether they are left after it.
WAYS = (
    ("remove, then purge", None, (("remove", True), ("purge", False))),
    ("remove, told to keep, then purge", "true", (("remove", True), ("purge", False))),
    ("remove, told to keep nothing, then purge", "false", (("remove", False), ("purge", False))),
    ("purge at once", None, (("purge", False),)),
    ("purge at once, told to keep", "true", (("purge", False),)),
)


class Machine:
    """A copy of the clean system, as a root directory."""

    def __init__(self, archive):
        self.root = pathlib.Path(tempfile.mkdtemp(prefix="fd-package-"))
        atexit.register(self.close)
        subprocess.run(["tar", "-xf", archive, "-C", self.root], check=True)
        # A directory for temporary files is its owner's alone, also the one that the archive was made of.
        self.root.chmod(0o755)
        for place in ("proc", "sys", "dev"):
            subprocess.run(["mount", "--rbind", f"/{place}", self.root / place], check=True)
            subprocess.run(["mount", "--make-rslave", self.root / place], check=True)
        shutil.copy("/etc/resolv.conf", self.root / "etc/resolv.conf")

    def close(self):
        for place in ("proc", "sys", "dev"):
            subprocess.run(["umount", "-R", "-l", self.root / place], check=False, stderr=subprocess.DEVNULL)
        if not os.path.ismount(self.root / "proc"):
            shutil.rmtree(self.root, ignore_errors=True)

    def run(self, *command, user=None, ok=True, **options):
        """Its output; everything that it needs is in the copy."""
        env = {"PATH": PATH, "LANG": "C.UTF-8", "HOME": "/root", "DEBIAN_FRONTEND": "noninteractive"}
        env |= {k: v for k, v in os.environ.items() if k.lower().endswith("_proxy")}
        prefix = ["chroot", self.root]
        if user:
            env |= {"HOME": f"/home/{user}", "USER": user}
            prefix = ["chroot", f"--userspec={user}", self.root]
        # A session of its own: whoever started the test may be gone, and a command whose session has lost its leader is one
        # that hides who gave it.
        options = {"timeout": 1200, "start_new_session": True, **options}
        done = subprocess.run([*prefix, *command], env=env, capture_output=True, text=True, **options)
        if ok and done.returncode != 0:
            raise Failed(f"{' '.join(command)}: exit {done.returncode}\n{done.stdout[-3000:]}{done.stderr[-3000:]}")
        return done

    def listing(self):
        """Every file, with what it is, who may do what, and its content; without what apt and dpkg keep."""
        found = {}
        for directory, names, files in os.walk(self.root):
            for name in names + files:
                path = pathlib.Path(directory, name)
                inside = "/" + str(path.relative_to(self.root))
                if any(f"{inside}/".startswith(own) for own in OF_DPKG):
                    continue
                info = path.lstat()
                if stat.S_ISLNK(info.st_mode):
                    content = os.readlink(path)
                elif stat.S_ISREG(info.st_mode):
                    content = hashlib.sha256(path.read_bytes()).hexdigest()
                else:
                    content = ""
                found[inside] = (oct(info.st_mode), info.st_uid, info.st_gid, content)
            names[:] = [n for n in names if not (pathlib.Path(directory) == self.root and n in ("proc", "sys", "dev"))]
        return found


# Where Firedoor keeps what is its own, in a user's home.
OWN = (".config/firedoor", ".local/share/firedoor", ".local/state/firedoor", ".cache/firedoor")


def compare(before, after, what):
    changed = sorted(path for path in before.keys() | after.keys() if before.get(path) != after.get(path))
    expect(not changed, f"{what}:\n  " + "\n  ".join(changed[:40]))


def clean_system(beside):
    """The archive of a system with nothing but what apt needs, and Python for a server."""
    release = platform.freedesktop_os_release()
    suite, (mirror, components) = release["VERSION_CODENAME"], MIRRORS[release["ID"]]
    archive = beside / f"{suite}-minbase.tar"
    if not archive.exists():
        step(f"making a clean {suite} (once)")
        with tempfile.TemporaryDirectory(prefix="fd-debian-") as place:
            command = ["debootstrap", "--variant=minbase", "--include=python3", f"--components={components}", suite, place, mirror]
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
            beginning = archive.with_suffix(".part")
            subprocess.run(["tar", "-C", place, "-cf", beginning, "."], check=True)
            beginning.rename(archive)
    return archive


def session(machine):
    """What a client does: starts the entry's command and calls a tool."""
    entry, answers = ask(machine)
    expect(answers[-1].get("result", {}).get("content", [{}])[0].get("text") == "written before\n", f"the call's result: {answers}")
    return entry


def ask(machine):
    """The entry as it stands, and what is answered."""
    entry = json.loads((machine.root / HOME[1:] / ".claude.json").read_text())["mcpServers"]["files"]
    messages = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
            "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "read_file", "arguments": {"path": "a.txt"}}},
    ]
    client = "\n".join([
        "import json, subprocess, sys",
        "command, messages = json.loads(sys.argv[1])",
        "server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)",
        "try:",
        "    for message in messages:",
        "        server.stdin.write(json.dumps(message) + '\\n'); server.stdin.flush()",
        "        if 'id' in message: print(server.stdout.readline(), end='')",
        "    server.stdin.close()",
        # One that was refused says why and ends.
        "except BrokenPipeError: pass",
        "server.wait(30)",
    ])
    argument = json.dumps([[entry["command"], *entry["args"]], messages])
    done = machine.run("/usr/bin/python3", "-c", client, argument, user=USER)
    return entry, [json.loads(line) for line in done.stdout.splitlines() if line]


def try_package(package, archive):
    machine = Machine(archive)
    root = machine.root
    depends = subprocess.run(["dpkg-deb", "-f", package, "Depends"], check=True, capture_output=True, text=True).stdout.strip()
    size = package.stat().st_size
    expect(size <= LIMIT, f"the package has {size} bytes, more than {LIMIT}")
    step(f"{package.name}: {size / (1 << 20):.1f} MiB; depends on {depends}")

    machine.run("apt-get", "update")
    machine.run("apt-get", "satisfy", "-y", "--no-install-recommends", f"{depends}, python3")
    shutil.copytree(TESTS / "servers", root / "srv/servers")
    for user in (USER, OTHER):
        machine.run("useradd", "-m", "-s", "/bin/sh", user)
        home = root / "home" / user
        for usual in ("notes", ".cache", ".config/autostart", ".local/share", ".local/state"):
            (home / usual).mkdir(parents=True)
        (home / "notes/a.txt").write_text("written before\n")
    for file, (user, config) in CONFIGS.items():
        (root / file[1:]).parent.mkdir(exist_ok=True)
        (root / file[1:]).write_text(config)
        machine.run("chown", "-R", f"{user}:{user}", f"/home/{user}")
    before = machine.listing()

    shutil.copy(package, root / "tmp/firedoor.deb")
    for way, told, commands in WAYS:
        machine.run("apt-get", "install", "-y", "--no-install-recommends", "/tmp/firedoor.deb")
        step("installed with apt")
        if way == WAYS[0][0]:
            look_at_programs(machine)
            try_doctor(machine)
        protect(machine)
        # An upgrade is an installation over an installation: what is protected stays so.
        machine.run("dpkg", "-i", "/tmp/firedoor.deb")
        session(machine)
        step("installed again over itself: still protected, still works")
        if told:
            machine.run("debconf-set-selections", input=f"firedoor firedoor/keep boolean {told}\n")
        for command, kept in commands:
            done = machine.run("apt-get", command, "-y", "firedoor")
            as_before(machine, done)
            for user in (USER, OTHER):
                left = [place for place in OWN if (root / "home" / user / place).exists()]
                expect(bool(left) == kept and (not kept or ".local/state/firedoor" in left), f"{way}: {command} leaves {left} of {user}")
            expect(not (root / "usr/bin/firedoor").exists(), "the program is still there")
            until(lambda: not any(running(root)), lambda: f"still running: {list(running(root))}")
            what = "the log is kept" if kept else "no log, no rules, no settings are left"
            step(f"{command}: the configurations of both users are as they were, byte for byte; {what}")
        compare(before, machine.listing(), f"{way}: differs from before")
        step(f"{way}: {len(before)} files are as before, nothing more and nothing less")
    try_removal_that_cannot_restore(machine)
    compare(before, machine.listing(), "after a removal that could not restore: differs from before")
    try_downgrade(machine, package)
    try_removal_beside_the_app(machine)
    compare(before, machine.listing(), "after a downgrade and a removal beside the app: differs from before")
    machine.close()


def protect(machine):
    """Both users protect what they have; a client of the first starts its server."""
    for file, (user, _) in CONFIGS.items():
        protected = machine.run("firedoor", "protect", "--all", "--yes", user=user)
        expect("/usr/bin/firedoor-shim" in (machine.root / file[1:]).read_text(), protected.stdout)
    machine.run("firedoor", "grants", "add", "claude-code/user/files", "--ro", f"{HOME}/notes", user=USER)
    entry = session(machine)
    step(f"protected by both users, and a client's session works through {entry['command']}")


def as_before(machine, done, but=()):
    """Every user's configuration is as it was, but those of some users."""
    for file, (user, config) in CONFIGS.items():
        if user not in but:
            expect((machine.root / file[1:]).read_bytes() == config.encode(), f"{file} is not restored:\n{done.stdout}{done.stderr}")


def try_doctor(machine):
    """It finds nothing amiss with a new installation, and names what somebody has taken away."""
    def ask():
        done = machine.run("firedoor", "doctor", "--json", user=USER, ok=False)
        expect(done.returncode in (0, 1), f"doctor: exit {done.returncode}: {done.stderr}")
        return done.returncode, {check["what"]: check for check in json.loads(done.stdout)["checks"]}

    code, checks = ask()
    expect(checks.keys() == DOCTOR.keys(), f"doctor checks {sorted(checks)}")
    for what, pattern in DOCTOR.items():
        expect(checks[what]["ok"] and re.fullmatch(pattern, checks[what]["detail"]), f"doctor: {checks[what]}")
    expect(code == 0, f"doctor finds nothing amiss: exit {code}")
    shim = machine.root / "usr/bin/firedoor-shim"
    aside = shim.rename(shim.with_name("aside"))
    try:
        code, checks = ask()
    finally:
        aside.rename(shim)
    amiss = {what: check["detail"] for what, check in checks.items() if not check["ok"]}
    expect((code, amiss) == (1, {"shim": "/usr/bin/firedoor-shim is missing"}), f"without the shim, doctor: exit {code}, {amiss}")
    step(f"doctor: exit 0, {', '.join(DOCTOR)}; without the shim exit 1, and it says so")


def try_removal_that_cannot_restore(machine):
    """What one user's rights do not allow is said and does not stop the removal; the other's is given back, and a script gives back the rest."""
    root = machine.root
    machine.run("apt-get", "install", "-y", "--no-install-recommends", "/tmp/firedoor.deb")
    protect(machine)
    (file,) = (file for file, (user, _) in CONFIGS.items() if user == OTHER)
    rerouted = (root / file[1:]).read_text()
    machine.run("chown", "root:root", f"{OTHERS_HOME}/.codex")
    removed = machine.run("apt-get", "remove", "-y", "firedoor")
    as_before(machine, removed, but=[OTHER])
    expect((root / file[1:]).read_text() == rerouted, f"{file} was changed")
    said = removed.stdout + removed.stderr
    expect(f"not everything of {OTHER} could be restored" in said, f"the removal says: {said}")
    expect(not (root / "usr/bin/firedoor").exists(), "it was not removed")
    machine.run("chown", f"{OTHER}:{OTHER}", f"{OTHERS_HOME}/.codex")
    shutil.copy(TESTS.parent / "installers/restore.sh", root / "tmp/restore.sh")
    done = machine.run("sh", "/tmp/restore.sh", "--yes", user=OTHER)
    as_before(machine, done)
    machine.run("apt-get", "purge", "-y", "firedoor")
    step(f"a configuration that {OTHER} may not write: said, nothing stops for it, and restore.sh gives it back without Firedoor")


def newer(package, place):
    """The same package with a higher version."""
    with tempfile.TemporaryDirectory(prefix="fd-newer-") as files:
        subprocess.run(["dpkg-deb", "-R", package, files], check=True)
        control = pathlib.Path(files, "DEBIAN/control")
        lines = control.read_text().splitlines()
        lines = [f"Version: 99:{line.split()[1]}" if line.startswith("Version:") else line for line in lines]
        control.write_text("\n".join(lines) + "\n")
        subprocess.run(["dpkg-deb", "--root-owner-group", "-Zgzip", "-z1", "-b", files, place], check=True, stdout=subprocess.DEVNULL)


def installed(machine):
    return machine.run("dpkg-query", "-W", "-f", "${Version}", "firedoor").stdout


def try_downgrade(machine, package):
    """Back from a newer version: what is protected stays so, and what the newer one has written is refused, not lost."""
    root, home = machine.root, machine.root / HOME[1:]
    newer(package, root / "tmp/newer.deb")
    machine.run("apt-get", "install", "-y", "--no-install-recommends", "/tmp/newer.deb")
    later = installed(machine)
    machine.run("firedoor", "protect", "--all", "--yes", user=USER)
    machine.run("firedoor", "grants", "add", "claude-code/user/files", "--ro", f"{HOME}/notes", user=USER)
    session(machine)
    rows = logged(machine)
    expect(rows, "nothing was logged")
    config = (home / ".claude.json").read_text()
    machine.run("apt-get", "install", "-y", "--no-install-recommends", "--allow-downgrades", "/tmp/firedoor.deb")
    expect(installed(machine) != later, f"still {later}")
    expect((home / ".claude.json").read_text() == config, "the downgrade changed the configuration")
    session(machine)
    expect(set(rows) <= set(logged(machine)), "rows of the log are gone")
    step(f"{later}, then {installed(machine)}: still protected, still works, nothing of the log is lost")

    # A version that would have changed the database for good.
    end_engines(machine)
    database = home / ".local/state/firedoor/firedoor.db"
    version = as_schema(machine, 1000)
    before = hashlib.sha256(database.read_bytes()).hexdigest()
    told = ask(machine)[1][0].get("error", {}).get("message", "")
    expect("schema version 1000" in told and "install the newer Firedoor again" in told, f"what the client is told: {told}")
    for command in (["log"], ["mode"], ["daemon"]):
        done = machine.run("firedoor", *command, user=USER, ok=False, timeout=60)
        said = done.stdout + done.stderr
        expect(done.returncode != 0 and "install the newer Firedoor again" in said, f"firedoor {' '.join(command)}: exit {done.returncode}: {said}")
    expect(hashlib.sha256(database.read_bytes()).hexdigest() == before, "the newer database was changed")
    # Configurations come back without it.
    machine.run("firedoor", "restore", "--all", user=USER)
    expect((home / ".claude.json").read_text() == CONFIG, "restored, the configuration is not as it was")
    step("a newer version's database: said plainly, left as it is, and the configuration is given back")
    as_schema(machine, version)
    expect(set(rows) <= set(logged(machine)), "rows of the log are gone")
    machine.run("apt-get", "purge", "-y", "firedoor")


def logged(machine):
    return machine.run("firedoor", "log", "--json", user=USER).stdout.splitlines()


def as_schema(machine, version):
    """Gives the database this version of the schema; the one that it had."""
    code = (
        "import sqlite3, sys; db = sqlite3.connect(sys.argv[1]); "
        "print(db.execute('PRAGMA user_version').fetchone()[0]); "
        "db.execute(f'PRAGMA user_version = {int(sys.argv[2])}'); db.execute('PRAGMA wal_checkpoint(TRUNCATE)')"
    )
    path = f"{HOME}/.local/state/firedoor/firedoor.db"
    return int(machine.run("/usr/bin/python3", "-c", code, path, str(version), user=USER).stdout)


def end_engines(machine):
    """Ends the engine as a logout would, and waits until it is gone."""
    for pid in pids(machine.root, "firedoor"):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGTERM)
    until(lambda: not pids(machine.root, "firedoor"), lambda: "the engine does not end")


def until(happens, what, seconds=60):
    """Waits until something is so; else `what` says what is not."""
    end = time.monotonic() + seconds
    while not happens():
        if time.monotonic() >= end:
            raise Failed(what())
        time.sleep(0.1)


def try_removal_beside_the_app(machine):
    """The app asks its user about commands that weaken protection; a removal ends it first."""
    root, home = machine.root, machine.root / HOME[1:]
    machine.run("apt-get", "install", "-y", "--no-install-recommends", "/tmp/firedoor.deb")
    machine.run("firedoor", "protect", "--all", "--yes", user=USER)
    screen, display = start_screen()
    # Of the same machine, but not of this session: the screen is reached over the loopback interface.
    env = {"PATH": PATH, "HOME": HOME, "LANG": "C.UTF-8", "DISPLAY": display, "GDK_BACKEND": "x11"}
    command = ["chroot", f"--userspec={USER}", root, "/usr/bin/firedoor-desktop"]
    log, started, said = root / "tmp/desktop.log", [screen], ""

    def asks():
        nonlocal said
        said = answer_to_weakening(machine)
        if "confirm it on the desktop" in said:
            return True
        # It came before the app, and would weaken nothing a second time.
        machine.run("firedoor", "mode", "balanced", user=USER)
        return False

    try:
        with log.open("w") as output:
            app = subprocess.Popen(command, env=env, start_new_session=True, stdin=subprocess.DEVNULL, stdout=output, stderr=output)
        started.append(app)
        until(asks, lambda: f"the app asks nobody: {said!r}; exit {app.poll()}: {log.read_text()[-2000:]}", 300)
        removed = machine.run("apt-get", "remove", "-y", "firedoor")
        expect((home / ".claude.json").read_text() == CONFIG, f"not restored:\n{removed.stdout}{removed.stderr}")
        app.wait(60)
        expect(not pids(root, "firedoor-desktop"), "the app still runs")
    finally:
        for process in reversed(started):
            process.kill()
            process.wait()
    step("removed beside a running app: it was ended, and the configuration is as it was")
    log.unlink()
    machine.run("apt-get", "purge", "-y", "firedoor")


def answer_to_weakening(machine):
    """What a command that weakens protection says first. Where it waits for somebody at the app, nothing is changed."""
    command = ["chroot", f"--userspec={USER}", machine.root, "/usr/bin/firedoor", "mode", "watch"]
    env = {"PATH": PATH, "HOME": HOME, "LANG": "C.UTF-8"}
    output = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    asking = subprocess.Popen(command, env=env, start_new_session=True, **output)
    try:
        return asking.stdout.readline()
    finally:
        asking.kill()
        asking.communicate()


def start_screen():
    """An X server for the copy, and what it is called there."""
    reader, writer = os.pipe()
    command = ["Xvfb", "-displayfd", str(writer), "-screen", "0", "1024x768x24", "-listen", "tcp", "-ac"]
    screen = subprocess.Popen(command, pass_fds=[writer], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    os.close(writer)
    with os.fdopen(reader) as said:
        number = said.readline().strip()
    expect(number, "the X server does not start")
    return screen, f"127.0.0.1:{number}"


def pids(root, program):
    """Processes of that root that run this program."""
    found = []
    for exe in pathlib.Path("/proc").glob("[0-9]*/exe"):
        with contextlib.suppress(OSError):
            if os.readlink(exe).removesuffix(" (deleted)") == f"{root}/usr/bin/{program}":
                found.append(int(exe.parent.name))
    return found


def running(root):
    """Programs of the package that still run in that root."""
    for exe in pathlib.Path("/proc").glob("[0-9]*/exe"):
        try:
            target = os.readlink(exe)
        except OSError:
            continue
        if target.startswith(f"{root}/usr/bin/firedoor"):
            yield target


def look_at_programs(machine):
    """Sizes, and that each finds what it links on a Debian without anything else."""
    shim = machine.root / "usr/bin/firedoor-shim"
    expect(shim.stat().st_size <= SHIM_LIMIT, f"the shim has {shim.stat().st_size} bytes")
    for program in contents.MAY_NEED:
        missing = [line for line in machine.run("ldd", f"/usr/bin/{program}").stdout.splitlines() if "not found" in line]
        expect(not missing, f"{program} misses {missing}")
    step(f"shim {shim.stat().st_size / (1 << 20):.1f} MiB; what the programs link is there")


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    if os.geteuid() != 0:
        print("package.py: changing the root directory needs root", file=sys.stderr)
        return 2
    if platform.freedesktop_os_release()["ID"] not in MIRRORS:
        print(f"package.py: a clean system can be made of {' and '.join(MIRRORS)} only", file=sys.stderr)
        return 2
    place = pathlib.Path(sys.argv[1]).resolve()
    packages, others = sorted(place.glob("*.deb")), sorted(place.glob("*.rpm"))
    if len(packages) != 1 or len(others) != 1:
        print(f"package.py: there is not one .deb and one .rpm in {place}: run make package", file=sys.stderr)
        return 2
    subprocess.run(["sha256sum", "--check", "--quiet", "SHA256SUMS"], cwd=place, check=True)
    try:
        contents.look_at_metadata()
        contents.look_at_lists(place, packages[0])
        contents.look_at_rpm(others[0], packages[0])
        contents.try_signing(place)
        with contents.unpacked(packages[0]) as files:
            contents.look_at_links(files)
            contents.look_at_documents(files)
            contents.look_at_licences(files)
        try_package(packages[0], clean_system(place.parent))
    except Failed as failure:
        print(f"FAILED: {failure}", file=sys.stderr)
        return 1
    print("the package installs, works, and leaves nothing")
    return 0


if __name__ == "__main__":
    sys.exit(main())
