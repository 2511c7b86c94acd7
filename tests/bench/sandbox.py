#!/usr/bin/env python3
"""What the sandbox costs beside nothing, in pairs: launch, processor time of programs, a judged connect, the shim's size.

usage: sandbox.py [ROUNDS]    with FIREDOOR_BIN_DIR, as an ordinary user or as root (then as nobody)
Prints medians of both sides and of the differences of each pair, and of launches the least as well. Of programs it prints, too, what the
kernel takes for the smallest sandbox of this kind: a Landlock domain of three rules, and a filter that allows all but one call.
"""
import ctypes, os, pathlib, re, resource, shutil, socket, statistics, struct, subprocess, sys, tempfile, threading, time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "harness"))
from scratch import Scratch, as_ordinary_user, run  # noqa: E402

CONNECT = """
import socket, sys, time
to, n = ("127.0.0.1", int(sys.argv[1])), int(sys.argv[2])
took = []
for _ in range(n):
    s = socket.socket(); s.setblocking(False)
    begin = time.perf_counter(); s.connect_ex(to); took.append(time.perf_counter() - begin)
    s.close()
print(sorted(took)[n // 2] * 1e6)
"""
REQUIRE = "for(let i=0;i<400;i++){for(const m of ['http','https','crypto','zlib','url','stream'])require(m);JSON.parse(JSON.stringify(process.versions))}let x=0;for(let i=0;i<1e9;i++)x+=i"


def smallest(work):
    """Enters the smallest sandbox of this kind in this process: what `subprocess` calls between fork and exec."""
    libc = ctypes.CDLL(None, use_errno=True)
    all_files, to_read, write = (1 << 15) - 1, 1 | 1 << 2 | 1 << 3 | 1 << 14, 1 << 1  # linux/landlock.h, ABI 3
    load, equal, give = 0x20, 0x15, 0x06  # linux/bpf_common.h
    ptrace, allow, refuse = {"x86_64": 101, "aarch64": 117}[os.uname().machine], 0x7FFF0000, 0x00050001
    program = b"".join(struct.pack("HBBI", *i) for i in ((load, 0, 0, 0), (equal, 0, 1, ptrace), (give, 0, 0, refuse), (give, 0, 0, allow)))
    code = ctypes.create_string_buffer(program)
    whole = struct.pack("HxxxxxxQ", 4, ctypes.addressof(code))
    rules = [(os.fspath(work), all_files), ("/", to_read), ("/dev/null", 1 | 1 << 2 | 1 << 14 | write)]
    opened = [(os.open(path, os.O_PATH | os.O_CLOEXEC), rights) for path, rights in rules]

    def call(number, *arguments):
        result = libc.syscall(number, *arguments)
        if result < 0:
            raise OSError(ctypes.get_errno(), f"system call {number}")
        return result

    def enter():
        libc.prctl(38, 1, 0, 0, 0)  # PR_SET_NO_NEW_PRIVS
        ruleset = call(444, struct.pack("Q", all_files), 8, 0)
        for fd, rights in opened:
            call(445, ruleset, 1, struct.pack("=Qi", rights, fd), 0)
        call(446, ruleset, 0)
        if libc.prctl(22, 2, whole, 0, 0):  # PR_SET_SECCOMP, SECCOMP_MODE_FILTER
            raise OSError(ctypes.get_errno(), "PR_SET_SECCOMP")
        _ = code  # Lives as long as its address is needed.

    return enter


def measure(command, env, cwd, before_exec=None):
    """Wall time and processor time of a command and everything it waited for, which is its whole tree with the guardian."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    begin = time.perf_counter()
    done = subprocess.run(command, env=env, cwd=cwd, stdin=subprocess.DEVNULL, capture_output=True, text=True, preexec_fn=before_exec)
    wall = time.perf_counter() - begin
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        sys.exit(f"sandbox.py: {command[:8]} ended with {done.returncode}: {done.stderr[-400:]}")
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, done.stdout


def in_pairs(rounds, bare, inside):
    """Both sides of each pair, bare first in every other one: what the one before leaves behind costs the next something."""
    pairs = []
    for number in range(rounds):
        first = bare() if number % 2 == 0 else None
        second = inside()
        pairs.append((bare() if first is None else first, second))
    return pairs


def shim(scratch):
    """Starts through the shim, an engine running: the pairs, and the most memory of a shim whose server runs."""
    line = scratch.protect_one("echo", scratch.python, scratch.servers / "echo_server.py")
    with scratch.start(*line, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        process.stdin.write(b'{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{}}\n')
        process.stdin.flush()
        process.stdout.readline()
        memory = re.search(r"VmHWM:\s+(\d+) kB", pathlib.Path(f"/proc/{process.pid}/status").read_text())[1]
        process.stdin.close()
    return scratch.protect_one("true", shutil.which("true")), int(memory) / 1024


def main():
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 11
    as_ordinary_user(__file__)
    with Scratch() as scratch:
        compare(scratch, rounds)


def compare(scratch, rounds):
    # In memory where that is possible: ext4 without a journal takes longer to make a file the more were removed in the last minute
    # (`recently_deleted` in fs/ext4/ialloc.c), on either side of a pair.
    memory = pathlib.Path("/dev/shm")
    with tempfile.TemporaryDirectory(prefix="firedoor-bench-", dir=memory if os.access(memory, os.W_OK) else scratch.home) as work:
        compare_in(pathlib.Path(work), scratch, rounds)


def compare_in(work, scratch, rounds):
    env = scratch.env
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    listener.listen(4096)
    threading.Thread(target=lambda: [c.close() for c, _ in iter(listener.accept, None)], daemon=True).start()
    port = str(listener.getsockname()[1])
    firedoor = str(scratch.bin / "firedoor")
    sandbox = [firedoor, "sandbox", "run", "--rw", str(work), "--host", f"127.0.0.1:{port}", "--"]
    if shutil.which("git"):
        subprocess.run(["git", "init", "-q", "."], cwd=work, env=env, check=True)
        for n in range(200):
            (work / f"f{n}").write_text("x")
        for n in range(1400):
            place = work / "large" / f"d{n // 20 % 10}" / f"e{n // 200}"
            place.mkdir(parents=True, exist_ok=True)
            (place / f"f{n}").write_text("x")
        commit = "git init -q . && git add . && git -c user.name=a -c user.email=a@a.example commit -qm a && git status"
        subprocess.run(["sh", "-c", commit], cwd=work / "large", env=env, check=True, stdout=subprocess.DEVNULL)
    programs = [
        ("python imports", ["python3", "-ISc", "import subprocess,sys\nfor _ in range(12): subprocess.run([sys.executable,'-ISc','import json,asyncio,email,http.client,unittest,sqlite3'],check=True)"]),
        ("node requires", ["node", "-e", REQUIRE]),
        ("git status of 200 files", ["sh", "-c", "i=0; while [ $i -lt 450 ]; do git status >/dev/null || exit; i=$((i+1)); done"]),
        ("git status of 1400 files", ["sh", "-c", "cd large && i=0; while [ $i -lt 200 ]; do git status >/dev/null || exit; i=$((i+1)); done"]),
        ("npm ls", ["sh", "-c", "for i in 1 2 3; do npm ls --all >/dev/null 2>&1; done; true"]),
    ]
    through, memory = shim(scratch)
    for name, command in (("sandbox run", [*sandbox, "true"]), ("the shim", through)):
        measure(command, env, work)
        pairs = in_pairs(rounds * 4, lambda: measure(["true"], env, work)[0], lambda: measure(command, env, work)[0])
        show(f"launch of true by {name}, ms", [(a * 1e3, b * 1e3) for a, b in pairs])
        least = min(b for _, b in pairs) - min(a for a, _ in pairs)
        print(f"launch of true by {name}, ms, the least of each side: more {least * 1e3:+.3f}", flush=True)
    for name, command in programs:
        if not shutil.which(command[0]) or not shutil.which(name.split()[0].replace("python", "python3")):
            print(f"{name}: NOT MEASURED, not installed")
            continue
        pairs = in_pairs(rounds, lambda: measure(command, env, work)[1], lambda: measure([*sandbox, *command], env, work)[1])
        show(f"{name}, s of processor time", pairs)
        # This sandbox forks for `preexec_fn`, and not with vfork: the other side does it, too.
        pairs = in_pairs(rounds, lambda: measure(command, env, work, lambda: None)[1], lambda: measure(command, env, work, smallest(work))[1])
        show(f"{name} in the smallest sandbox, s of processor time", pairs)
    one = ["python3", "-ISc", CONNECT, port, "2000"]
    pairs = in_pairs(
        rounds, lambda: float(measure(one, env, work)[2]), lambda: float(measure([*sandbox, *one], env, work)[2])
    )
    show("non-blocking connect, us", pairs)
    size = (scratch.bin / "firedoor-shim").stat().st_size
    print(f"firedoor-shim: {size / 2**20:.2f} MiB on disk, {memory:.2f} MiB at most in memory beside a running server")


def show(name, pairs):
    bare, inside = (statistics.median(side) for side in zip(*pairs))
    more = statistics.median(b - a for a, b in pairs)
    short = ", too short to count" if "processor time" in name and bare < 0.5 else ""
    print(f"{name}: bare {bare:.3f}, inside {inside:.3f}, more {more:+.3f} ({100 * more / bare:+.1f} %), {len(pairs)} pairs{short}", flush=True)


run(main)
