"""A scratch home with its own XDG directories, and programs started in it. Standard library only.

A program that begins with `as_ordinary_user()` may be run as root: it then starts itself again as an unprivileged user,
so that the sandbox is met as users meet it, and a mistake of ours cannot touch the machine.
"""

import contextlib
import json
import os
import pathlib
import pwd
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time

TESTS = pathlib.Path(__file__).resolve().parent.parent
ROOT = TESTS.parent
PROGRAMS = ("firedoor", "firedoor-shim", "firedoor-remote")
UNPRIVILEGED = "nobody"

# How this machine reaches the package registries is the user's own configuration. Everything else is left behind.
KEPT = (
    "LANG",
    "NODE_EXTRA_CA_CERTS",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "HTTPS_PROXY",
    "https_proxy",
    "NO_PROXY",
    "no_proxy",
    "npm_config_registry",
    "npm_config_cafile",
)


class Missing(Exception):
    """Something has to be built or installed first."""


def find_programs():
    """The directory with our programs: FIREDOOR_BIN_DIR, else the newer of the debug and release builds."""
    named = os.environ.get("FIREDOOR_BIN_DIR")
    target = pathlib.Path(os.environ.get("CARGO_TARGET_DIR") or ROOT / "target")
    places = [pathlib.Path(named)] if named else [target / "debug", target / "release"]
    found = [place for place in places if all((place / name).is_file() for name in PROGRAMS)]
    if not found:
        raise Missing(f"{' and '.join(PROGRAMS)} are not in {' or '.join(map(str, places))}: run make build")
    return max(found, key=lambda place: (place / PROGRAMS[0]).stat().st_mtime)


def reachable(directory):
    """Whether every user may enter it."""
    path = pathlib.Path(os.path.realpath(directory))
    try:
        return all(part.stat().st_mode & 0o001 for part in (path, *path.parents))
    except OSError:
        return False


def as_ordinary_user(script, *further):
    """Returns unless we are root. As root: runs a copy of the tests as an unprivileged user, and exits as that does.
    `further` programs are copied if they are there."""
    if os.geteuid() != 0:
        return
    user = pwd.getpwnam(UNPRIVILEGED)
    # That user may not be able to enter the directories of the sources, the build, or the interpreter.
    with tempfile.TemporaryDirectory(prefix="fd-tests-", dir="/tmp") as place:
        place = pathlib.Path(place)
        place.chmod(0o755)
        (place / "bin").mkdir()
        for name in PROGRAMS:
            shutil.copy2(find_programs() / name, place / "bin" / name)
        for name in further:
            if (find_programs() / name).is_file():
                shutil.copy2(find_programs() / name, place / "bin" / name)
        for part in ("bench", "conformance", "demo", "desktop", "e2e", "harness", "honest", "servers"):
            shutil.copytree(TESTS / part, place / "tests" / part, ignore=shutil.ignore_patterns("__pycache__"))
        for path in (place, *place.rglob("*")):
            os.chown(path, user.pw_uid, user.pw_gid)
        path = [directory for directory in os.environ.get("PATH", os.defpath).split(os.pathsep) if reachable(directory)]
        python = shutil.which("python3", path=os.pathsep.join(path))
        if not python:
            fail(f"there is no python3 that the user {UNPRIVILEGED} may run: run this as an ordinary user")
        env = {**os.environ, "PATH": os.pathsep.join(path), "FIREDOOR_BIN_DIR": str(place / "bin"), "HOME": str(place)}
        copy = place / "tests" / pathlib.Path(script).resolve().relative_to(TESTS)
        identity = {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
        done = subprocess.run([python, str(copy), *sys.argv[1:]], env=env, cwd=place, check=False, **identity)
    sys.exit(done.returncode if done.returncode >= 0 else 128 - done.returncode)


class Scratch:
    """The home and what is started in it. A context manager: at its end the engine is stopped and the home removed."""

    def __init__(self):
        programs = find_programs()
        # Short, because a socket's path has at most 107 bytes (unix(7)).
        self.root = pathlib.Path(tempfile.mkdtemp(prefix="fd-", dir="/tmp"))
        self.home, self.bin, self.servers = self.root / "home", self.root / "bin", self.root / "servers"
        self.runtime = self.root / "run"
        for directory in (self.home, self.bin, self.runtime, self.root / "tmp"):
            directory.mkdir()
        self.runtime.chmod(0o700)
        for name in PROGRAMS:
            shutil.copy2(programs / name, self.bin / name)
        shutil.copytree(TESTS / "servers", self.servers, ignore=shutil.ignore_patterns("__pycache__"))
        self.env = {name: os.environ[name] for name in KEPT if name in os.environ}
        self.env |= {
            "HOME": str(self.home),
            "PATH": os.pathsep.join([str(self.bin), os.environ.get("PATH", os.defpath)]),
            "TMPDIR": str(self.root / "tmp"),
            "XDG_CACHE_HOME": str(self.home / ".cache"),
            "XDG_CONFIG_HOME": str(self.home / ".config"),
            "XDG_DATA_HOME": str(self.home / ".local/share"),
            "XDG_RUNTIME_DIR": str(self.runtime),
            "XDG_STATE_HOME": str(self.home / ".local/state"),
        }
        self.python = self.run("python3", "-c", "import os, sys; print(os.path.realpath(sys.executable))").stdout.strip()

    def __enter__(self):
        return self

    def __exit__(self, *_error):
        self.close()

    def write(self, path, content):
        """Writes a file below the home, with its directories."""
        path = self.home / path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    def start(self, *command, **options):
        """Starts a program in the scratch home."""
        options = {"env": self.env, "cwd": self.home, **options}
        return subprocess.Popen([str(word) for word in command], **options)

    def run(self, *command, timeout=60, **options):
        """Runs a program to its end; its output is text."""
        # A session of its own: whoever started us may be gone, and a command whose session has lost its leader is one that
        # hides who gave it.
        ours = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "start_new_session": True}
        options = {**ours, **options}
        with self.start(*command, text=True, **options) as process:
            try:
                out, err = process.communicate(timeout=timeout)
            except subprocess.TimeoutExpired:
                # With what it has started, which may hold its output open.
                (os.killpg if options["start_new_session"] else os.kill)(process.pid, signal.SIGKILL)
                raise
        return subprocess.CompletedProcess(command, process.returncode, out, err)

    def firedoor(self, *arguments, timeout=120):
        """Runs our command line."""
        return self.run(self.bin / "firedoor", *arguments, timeout=timeout)

    def json(self, *arguments, codes=(0,), timeout=120):
        """Runs our command line with --json and reads what it prints."""
        done = self.firedoor(*arguments, "--json", timeout=timeout)
        if done.returncode not in codes:
            raise Missing(f"firedoor {' '.join(arguments)}: exit {done.returncode}: {done.stderr.strip()}")
        return json.loads(done.stdout)

    def protect_one(self, name, command, *arguments):
        """Puts one server into a Cursor configuration, protects it, and returns the command line it has now."""
        entry = {"command": str(command), "args": [str(word) for word in arguments]}
        config = self.write(".cursor/mcp.json", json.dumps({"mcpServers": {name: entry}}, indent=2) + "\n")
        done = self.firedoor("protect", "--all", "--yes", "--no-verify")
        if done.returncode:
            raise Missing(f"firedoor protect: exit {done.returncode}: {done.stdout}{done.stderr}")
        now = json.loads(config.read_text())["mcpServers"][name]
        return [now["command"], *now["args"]]

    def engine_pid(self):
        """The engine behind the socket, or None."""
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as peer:
            try:
                peer.connect(str(self.runtime / "firedoor" / "engine.sock"))
            except OSError:
                return None
            # struct ucred of unix(7): pid, uid, gid of the process that listens.
            pid, _uid, _gid = struct.unpack("3i", peer.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
            return pid

    def close(self):
        """Stops the engine and removes the home."""
        pid = self.engine_pid()
        if pid:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGTERM)
            if not until(lambda: not alive(pid), 5):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        shutil.rmtree(self.root, ignore_errors=True)


def alive(pid):
    """Whether a process runs. A zombie does not."""
    try:
        state = pathlib.Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rsplit(")", 1)[1].split()[0]
    except OSError:
        return False
    return state != "Z"


def family(pid):
    """A process and its descendants."""
    children = {}
    for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        children.setdefault(int(fields[1]), []).append(int(stat.parent.name))
    found = [pid]
    for parent in found:
        found += children.get(parent, [])
    return found


def descendants(pid, name):
    """Those of a process that have a name, which the kernel cuts (proc_pid_comm(5))."""

    def has_it(member):
        try:
            return pathlib.Path(f"/proc/{member}/comm").read_text().strip() == name[:15]
        except OSError:
            return False

    return [member for member in family(pid) if has_it(member)]


def until(true, seconds):
    """Looks again until something is true, at most so many seconds. Returns the last answer."""
    end = time.monotonic() + seconds
    while not (answer := true()) and time.monotonic() < end:
        time.sleep(0.01)
    return answer


def fail(message):
    """Ends the program with a message."""
    sys.exit(f"{pathlib.Path(sys.argv[0]).name}: {message}")


def run(main):
    """Ends the program as `main` says; with 2 when something has to be built or installed first, with 1 when a program did not
    come to its end."""
    try:
        sys.exit(main())
    except subprocess.TimeoutExpired as late:
        fail(f"not at its end within {late.timeout:.0f} s: {' '.join(map(str, late.cmd))}")
    except Missing as missing:
        print(f"{pathlib.Path(sys.argv[0]).name}: {missing}", file=sys.stderr)
        sys.exit(2)
