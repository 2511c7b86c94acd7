#!/usr/bin/env python3
"""What WebAssembly costs: start of a module, compiled and kept; a call of an MCP tool beside the same tool native; scans.

usage: wasm.py [ROUNDS]    with FIREDOOR_BIN_DIR; needs clang, lld and wasi-libc (scripts/setup)
Prints medians, of pairs where two things are compared.
"""
import json, os, pathlib, resource, statistics, subprocess, sys, tempfile, time

CALLS = 2000


def took(command, **more):
    """Milliseconds of the clock, and of a processor."""
    before, begin = used(), time.perf_counter()
    subprocess.run(command, check=False, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, **more)
    return (time.perf_counter() - begin) * 1e3, used() - before


def used():
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (children.ru_utime + children.ru_stime) * 1e3


def call(command):
    """Microseconds of one call of the echo tool."""
    message = json.dumps({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": "echo", "arguments": {"text": "hello"}}}, separators=(",", ":"))
    server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
    out = server.stdout
    line = (message + "\n").encode()
    times = []
    for _ in range(CALLS):
        begin = time.perf_counter()
        server.stdin.write(line)
        answer = out.readline()
        times.append((time.perf_counter() - begin) * 1e6)
    assert b"hello" in answer, answer
    server.stdin.close()
    server.wait()
    return statistics.median(times)


def main():
    binaries = pathlib.Path(os.environ["FIREDOOR_BIN_DIR"])
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 15
    here = pathlib.Path(__file__).resolve().parent.parent / "wasm"
    median = statistics.median
    with tempfile.TemporaryDirectory(prefix="fd-wasm-") as scratch:
        root = pathlib.Path(scratch)
        subprocess.run([here / "build.sh", root / "m", "benign", "echo_server"], check=True)
        subprocess.run(["cc", "-O2", here / "echo_server.c", "-o", root / "native"], check=True)
        run = [binaries / "firedoor-wasm", "run"]
        cache = ["--cache", root / "cache"]
        plain, empty = root / "m/benign.wasm", ["true"]
        took([*run, *cache, plain])
        starts = [(took(empty), took([*run, plain]), took([*run, *cache, plain])) for _ in range(rounds)]
        for at, clock in enumerate(["clock", "processor"]):
            nothing, compiled, kept = (median(one[at] for one in column) for column in zip(*starts))
            added = median(k[at] - n[at] for n, _, k in starts)
            print(f"start, ms of {clock}: true {nothing:.1f}, module compiled {compiled:.1f}, module kept {kept:.1f} (+{added:.1f})")
        server = root / "m/echo_server.wasm"
        pairs = [(call([root / "native"]), call([*run, *cache, server])) for _ in range(max(3, rounds // 3))]
        native, wasm = (median(column) for column in zip(*pairs))
        print(f"call of an MCP tool over a pipe, us: native {native:.1f}, WebAssembly {wasm:.1f} (+{median(w - n for n, w in pairs):.1f})")
        many = root / "many"
        many.mkdir()
        for n in range(24):
            (many / f"{n}.wasm").write_bytes(plain.read_bytes())
        env = {"HOME": scratch, "PATH": os.environ["PATH"]}
        for jobs in ("1", "2"):
            command = [binaries / "firedoor", "wasm", "scan", many, "--env", "USER_INPUT=x", "--jobs", jobs]
            times = [took(command, env=env, stderr=subprocess.DEVNULL) for _ in range(3)]
            print(f"scan of 24 modules, {jobs} at a time: {24e3 / median(wall for wall, _ in times):.1f} modules a second")


main()
