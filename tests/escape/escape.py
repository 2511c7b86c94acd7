#!/usr/bin/env python3
"""Escape probes: first without a sandbox, then inside `firedoor sandbox run`, as an ordinary user.

One line per probe: its name, the baseline, inside. A probe that is not open in the baseline proves nothing and does not
count. Exit code 1 when one is open inside.

usage: escape.py [PROBE...]    with FIREDOOR_BIN_DIR; TRIES=100000 for long races
"""
import ctypes, os, pathlib, shutil, signal, socket, subprocess, sys, tempfile, threading, time

HERE = pathlib.Path(__file__).resolve().parent
ORDINARY = 65534
libc = ctypes.CDLL(None, use_errno=True)
# Not a way out: what a server must be able to do.
MUST_WORK = {"tree_ordinary"}


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
        self.datagrams("UDP", socket.AF_INET, ("127.0.0.1", 0))
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
    }
    for name, yes in seen.items():
        if found.get(name, [""])[0] == "asked":
            found[name] = ["open" if yes else "blocked", "seen from outside"]
    return found, reached


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
    try:
        names = sys.argv[1:]
        time.sleep(0.5)
        base, _ = run(outside, [str(probes)], {"BASE": "1"}, names)
        sandbox = [str(firedoor), "sandbox", "run", "--rw", str(outside.work), "--ro", str(probes), "--host", f"127.0.0.1:{outside.settings['GOODTCP']}", "--unix", str(outside.settings["GOODUNIX"]), "--", str(probes)]
        inside, reached = run(outside, sandbox, {"INSIDE": "1"}, names)
    finally:
        outside.end()
        shutil.rmtree(root, ignore_errors=True)
    open_before = open_now = missing = broken = 0
    for name, (state, _) in base.items():
        now, detail = inside.get(name, ["missing", "the probe did not run"])
        # Probes of the guardian have no baseline.
        counts = name not in MUST_WORK and (state == "open" or state == "absent" and now == "open")
        open_before += counts
        open_now += now == "open" and counts
        missing += now == "missing"
        broken += name in MUST_WORK and now != "open"
        print(f"{name:26} {state:8} {now:8} {detail}")
    print(f"{open_before} open without a sandbox, {open_now} of them open inside; from outside: {reached}")
    if broken:
        print(f"{broken} that must work inside, and does not")
    sys.exit(1 if open_now or missing or broken else 0)


main()
