#!/usr/bin/env python3
"""Escape probes: first without a sandbox, then inside `firedoor sandbox run`, as an ordinary user.

One line per probe: its name, the baseline, inside. A probe that is not open in the baseline proves nothing and does not
count; those against the guardian have no baseline and count. The last ones end their sandbox, so each gets its own. Exit
code 1 when one is open inside.

usage: escape.py [PROBE...]    with FIREDOOR_BIN_DIR; RUNS=20 TRIES=100000 for many runs and long races
"""
import ctypes, os, pathlib, shutil, signal, socket, subprocess, sys, tempfile, threading, time

HERE = pathlib.Path(__file__).resolve().parent
ORDINARY = 65534
libc = ctypes.CDLL(None, use_errno=True)
# Not a way out: what a server must be able to do.
MUST_WORK = {"tree_ordinary", "group_limit"}


class Outside:
    """What must not be reached: files, listeners, and a process of the same user."""

    def __init__(self, root):
        self.home, self.work = root / "home", root / "work"
        self.project = self.work / "project"
        self.hits = {}
        for d in (self.home / ".ssh", self.work, root / "run"):
            d.mkdir(parents=True)
        secret, startup = self.home / ".ssh/id_rsa", self.home / ".bashrc"
        secret.write_text("made up\n")
        startup.write_text("# made up\n")
        pathlib.Path("/dev/shm/firedoor-probe").write_text("made up")
        self.settings = {"HOME": self.home, "WORK": self.work, "SECRET": secret, "STARTUP": startup, "PROJECT": self.project}
        (root / "secret-in-cwd").write_text("made up")
        for name, family in (("TCP", socket.AF_INET), ("GOODTCP", socket.AF_INET)):
            self.stream(name, family, ("127.0.0.1", 0))
        (root / "run/d").mkdir()
        self.stream("UNIX", socket.AF_UNIX, str(root / "run/d/s"))
        self.settings["UNIXDIR"] = root / "run/d"
        self.stream("GOODUNIX", socket.AF_UNIX, str(root / "run/g"))
        self.stream("ABSTRACT", socket.AF_UNIX, "\0firedoor-probe-%d" % os.getpid())
        # The granted port, at an address that is not granted.
        self.stream("OTHERTCP", socket.AF_INET, ("127.0.0.2", self.settings["GOODTCP"]))
        self.stalled()
        self.datagrams("UDP", socket.AF_INET, ("127.0.0.1", 0))
        self.datagrams("UDP2", socket.AF_INET, ("127.0.0.1", 0))
        self.datagrams("UNIXD", socket.AF_UNIX, str(root / "run/u"))
        key = "firedoor-probe-%d" % os.getpid()
        libc.syscall(248, b"user", key.encode(), b"made up", 7, ctypes.c_long(-4))
        self.segment = libc.shmget(0x66640000 | os.getpid() & 0xFFFF, 4096, 0o1600)
        code = "import signal,time,ctypes\nn=[0]\ndef f(*a):\n open(%r,'a').write('x')\nsignal.signal(12,f)\nctypes.CDLL(None).prctl(0x59616d61,ctypes.c_ulong(-1))\nwhile 1: time.sleep(1)" % str(root / "signals")
        self.signals = root / "signals"
        self.victim = subprocess.Popen(["/usr/bin/python3", "-c", code], cwd=root)
        self.settings |= {"KEY": key, "SHM": str(0x66640000 | os.getpid() & 0xFFFF), "PID": self.victim.pid, "TRIES": os.environ.get("TRIES", "5000")}

    def stream(self, name, family, address):
        s = socket.socket(family)
        s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET:
            s.setsockopt(socket.IPPROTO_TCP, 23, 16)  # TCP_FASTOPEN
        s.bind(address)
        s.listen(1024)
        at = s.getsockname()
        self.settings[name] = at[1] if family == socket.AF_INET else (at.decode() if isinstance(at, bytes) else at).lstrip("\0")
        reply = b"unix" if name == "UNIX" else b"good"

        def serve():
            while True:
                c, _ = s.accept()
                self.hits[name] = self.hits.get(name, 0) + 1
                try:
                    c.settimeout(0.2)
                    c.recv(1)
                    c.sendall(reply)
                except OSError:
                    pass
                c.close()

        threading.Thread(target=serve, daemon=True).start()

    def stalled(self):
        """A listener whose queue is full: who connects waits."""
        self.full = socket.socket()
        self.full.bind(("127.0.0.1", 0))
        self.full.listen(0)
        self.settings["STALLED"] = self.full.getsockname()[1]
        self.waiting = [socket.socket() for _ in range(4)]
        for s in self.waiting:
            s.setblocking(False)
            s.connect_ex(self.full.getsockname())

    def datagrams(self, name, family, address):
        s = socket.socket(family, socket.SOCK_DGRAM)
        s.bind(address)
        self.settings[name] = s.getsockname()[1] if family == socket.AF_INET else s.getsockname()

        def serve():
            while True:
                _, sender = s.recvfrom(64)
                self.hits[name] = self.hits.get(name, 0) + 1
                if sender:
                    s.sendto(b"x", sender)

        threading.Thread(target=serve, daemon=True).start()

    def end(self):
        self.victim.kill()
        libc.shmctl(self.segment, 0, None)
        pathlib.Path("/dev/shm/firedoor-probe").unlink(missing_ok=True)


def run(outside, command, settings, names):
    """State and detail of each probe. What a probe cannot see itself, the outside has seen."""
    file = outside.work / "settings"
    file.write_text("".join(f"{k}={v}\n" for k, v in (outside.settings | settings).items()))
    before = dict(outside.hits)
    env = {"HOME": str(outside.home), "PATH": "/usr/bin:/bin", "PROBE_API_TOKEN": "made up"}
    leaked = os.open(outside.home / ".ssh/id_rsa", os.O_RDONLY)
    os.set_inheritable(leaked, True)
    (outside.work / "survived").unlink(missing_ok=True)
    shutil.rmtree(outside.project, ignore_errors=True)
    for d in (".git/hooks", "sub"):
        (outside.project / d).mkdir(parents=True)
    for name in ("config", "HEAD"):
        (outside.project / ".git" / name).write_text("# made up\n")
    outside.signals.unlink(missing_ok=True)
    done = subprocess.run([*command, str(file), *names], env=env, cwd=outside.work, stdout=subprocess.PIPE, text=True, pass_fds=[leaked], timeout=1200)
    os.close(leaked)
    time.sleep(4.5)
    found = dict()
    for line in done.stdout.splitlines():
        name, state, detail = line.split("\t")
        found[name] = [state, detail]
    reached = {k: v - before.get(k, 0) for k, v in outside.hits.items()}
    seen = {
        "survivor": (outside.work / "survived").exists(),
        "signal_owner": outside.signals.exists(),
        "race_message_name": reached.get("UDP", 0) > 0,
        "race_messages_name": reached.get("UDP2", 0) > 0,
    }
    for name, yes in seen.items():
        if found.get(name, [""])[0] == "asked":
            found[name] = ["open" if yes else "blocked", "seen from outside"]
    return found, reached


def children(pid):
    try:
        return [int(n) for n in pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


def alive(program):
    """Processes that run it, whatever their parents and sessions."""
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and os.readlink(entry / "exe") == str(program):
                found.append(int(entry.name))
        except OSError:
            pass
    return found


def until(done, limit):
    """How long it took; None when it did not come to that."""
    start = time.monotonic()
    while time.monotonic() - start < limit:
        if done():
            return time.monotonic() - start
        time.sleep(0.02)
    return None


def hostile(outside, sandbox, probes, name, act):
    """A probe that ends its sandbox: it has to be gone soon, with nothing left. `act` is what happens from outside."""
    file = outside.work / "settings"
    file.write_text("".join(f"{k}={v}\n" for k, v in (outside.settings | {"INSIDE": "1"}).items()))
    env = {"HOME": str(outside.home), "PATH": "/usr/bin:/bin"}
    # A file: who is left holds a pipe open.
    log = tempfile.TemporaryFile("w+")
    run = subprocess.Popen([*sandbox, str(file), name], env=env, cwd=outside.work, stdout=subprocess.DEVNULL, stderr=log)
    # Both: a process of the sandbox before this one may still be on its way out.
    if until(lambda: alive(probes) and children(run.pid), 10) is None:
        run.kill()
        return ["missing", "it did not start"]
    guardian = children(run.pid)[0]
    began = time.monotonic()
    act(run.pid, guardian)
    took = until(lambda: run.poll() is not None and not alive(probes), 30)
    log.seek(0)
    said = log.read().strip().splitlines()
    if took is None:
        for pid in [run.pid, guardian, *alive(probes)]:
            try:
                os.kill(pid, signal.SIGKILL)
            except OSError:
                pass
        return ["open", "still there after 30 s"]
    detail = next((line for line in said if "used more" in line), f"all gone in {time.monotonic() - began:.1f} s")
    return ["blocked", detail]


def wait(seconds):
    return lambda *_: time.sleep(seconds)


def kill_caller(caller, _):
    time.sleep(0.5)
    os.kill(caller, signal.SIGKILL)


def kill_guardian(_, guardian):
    time.sleep(0.5)
    os.kill(guardian, signal.SIGKILL)


def stop_guardian(caller, guardian):
    time.sleep(0.5)
    os.kill(guardian, signal.SIGSTOP)
    os.kill(caller, signal.SIGKILL)


# Name in the table, probe, and what happens from outside.
HOSTILE = [
    ("fork_bomb", "fork_bomb", wait(0)),
    ("memory_hog", "memory_hog", wait(0)),
    ("flood_caller_killed", "flood", kill_caller),
    ("flood_guardian_killed", "flood", kill_guardian),
    ("flood_guardian_stopped", "flood", stop_guardian),
]


def main():
    binaries = pathlib.Path(os.environ["FIREDOOR_BIN_DIR"])
    root = pathlib.Path(tempfile.mkdtemp(prefix="fd-esc-"))
    probes, firedoor = root / "probes", root / "firedoor"
    subprocess.run(["cc", "-O1", "-static", "-pthread", "-o", probes, HERE / "probes.c"], check=True)
    shutil.copy(binaries / "firedoor", firedoor)
    if os.geteuid() == 0:
        for f in (probes, firedoor):
            f.chmod(0o755)
        os.chown(root, ORDINARY, ORDINARY)
        os.setgroups([])
        os.setresgid(ORDINARY, ORDINARY, ORDINARY)
        os.setresuid(ORDINARY, ORDINARY, ORDINARY)
        libc.prctl(4, 1, 0, 0, 0)  # dumpable again, as after a login
    outside = Outside(root)
    wanted = sys.argv[1:]
    runs = int(os.environ.get("RUNS", "1"))
    profiles = outside.home / ".config/firedoor/profiles"
    profiles.mkdir(parents=True)
    # Of its own, so that the bombs stay small.
    (profiles / "tight.toml").write_text('description = "probes"\nmatch = {}\n[limits]\nmemory = "512MiB"\nprocesses = 300\n')
    grants = ["--rw", outside.work, "--ro", probes, "--unix", outside.settings["GOODUNIX"]]
    for port in ("GOODTCP", "STALLED"):
        grants += ["--host", f"127.0.0.1:{outside.settings[port]}"]
    sandbox = [str(w) for w in (firedoor, "sandbox", "run", *grants)]
    tight = [*sandbox, "--profile", "tight", "--", str(probes)]
    sandbox += ["--", str(probes)]
    hits, opened = {}, set()
    try:
        time.sleep(0.5)
        names = [n for n in wanted if n not in {name for name, *_ in HOSTILE}]
        base, inside = {}, {}
        if names or not wanted:
            base, _ = run(outside, [str(probes)], {"BASE": "1"}, names)
        for number in range(runs):
            if names or not wanted:
                inside, reached = run(outside, sandbox, {"INSIDE": "1"}, names)
                hits = {k: hits.get(k, 0) + reached.get(k, 0) for k in hits | reached}
            for name, probe, act in HOSTILE:
                if not wanted or name in wanted:
                    base[name] = ["absent", "inside only"]
                    inside[name] = hostile(outside, tight, probes, probe, act)
            opened |= {(number, n) for n, (state, _) in inside.items() if state == "open"}
            if runs > 1:
                print(f"run {number + 1} of {runs}: open {sorted(n for i, n in opened if i == number and n not in MUST_WORK)}", file=sys.stderr, flush=True)
    finally:
        outside.end()
        shutil.rmtree(root, ignore_errors=True)
    counted = still_open = missing = broken = 0
    ever = {n for _, n in opened}
    for name, (state, before) in base.items():
        now, detail = inside.get(name, ["missing", "the probe did not run"])
        now = "open" if name in ever else now
        # Probes of the guardian have no baseline.
        counts = name not in MUST_WORK and (state == "open" or before in ("no guardian", "no shim", "inside only"))
        counted += counts
        still_open += now == "open" and counts
        missing += now == "missing"
        broken += name in MUST_WORK and now != "open" and not now == state == "absent"
        print(f"{name:26} {state:8} {now:8} {detail}")
    print(f"seen from outside: {hits}")
    if broken:
        print(f"{broken} that must work inside, and does not")
    print(f"open inside: {still_open} of {counted} ({runs} runs, {missing} did not run)")
    sys.exit(1 if still_open or missing or broken else 0)


main()
