#!/usr/bin/env python3
"""What Firedoor costs, beside the server alone and beside a blind byte pump, in one run.

  bench.py [--rounds N] [--calls N] [--servers N] [--json]

Each round measures the three one after the other, so that a load from elsewhere meets all of them; printed are medians
over the rounds, and ratios. Needs a C compiler for the pump. Exit code 1 when a bound below is exceeded.

  added p50, and CPU per call (shim + engine)   at most twice the pump's + 15 us
  shim                                          at most 6 MiB resident
  engine with 10 servers                        at most 40 MiB resident
"""

import argparse
import contextlib
import json
import os
import pathlib
import statistics
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "harness"))
from mcp_bench import NoAnswer, Peer, measure, options, resident, tree  # noqa: E402
from scratch import Missing, Scratch, as_ordinary_user  # noqa: E402

FACTOR, SLACK_US = 2.0, 15.0
SHIM_MIB, ENGINE_MIB = 6.0, 40.0
SHAPES = {"small": [], "64 KiB": ["--arg-bytes", "65536"], "8 open": ["--inflight", "8"]}


def build_pump(folder):
    """Compiles the pump."""
    pump = folder / "pump"
    subprocess.run(["cc", "-O2", "-o", str(pump), str(HERE / "pump.c")], check=True)
    pump.chmod(0o755)
    return pump


def median(rounds, side, key):
    """Over the rounds."""
    return statistics.median(each[side][key] for each in rounds)


def compare(shape, rounds):
    """One line per side, then the ratios; the figures as a dictionary."""
    figures = {side: {key: median(rounds, side, key) for key in ("p50_us", "p99_us", "per_s", "proxy_cpu_us", "start_ms")} for side in rounds[0]}
    figures["direct"]["proxy_cpu_us"] = 0.0
    print(f"\n{shape}: medians of {len(rounds)} rounds")
    for side, got in figures.items():
        print(
            "  {0:9s} p50 {p50_us:8.1f} us   p99 {p99_us:8.1f} us   {per_s:7.0f}/s   cpu {proxy_cpu_us:7.1f} us/call"
            "   start {start_ms:6.1f} ms".format(side, **got)
        )
    # Paired: each round's own difference, because the machine changes between rounds.
    added = {
        side: statistics.median(each[side]["p50_us"] - each["direct"]["p50_us"] for each in rounds)
        for side in ("pump", "firedoor")
    }
    spent = {side: figures[side]["proxy_cpu_us"] for side in ("pump", "firedoor")}
    bounds = {}
    for name, got in (("added p50", added), ("cpu per call", spent)):
        bound = FACTOR * got["pump"] + SLACK_US
        bounds[name] = got["firedoor"] <= bound
        ratio = got["firedoor"] / got["pump"] if got["pump"] > 0 else float("inf")
        verdict = "within" if bounds[name] else "ABOVE"
        print(f"  {name:13s} firedoor {got['firedoor']:.1f} us, pump {got['pump']:.1f} us: {ratio:.2f} x; {verdict} the bound of {bound:.1f} us")
    return {"figures": figures, "added_p50_us": added, "cpu_us": spent, "within": bounds}


def memory(scratch, servers):
    """Resident memory of the shims and of the engine while so many servers run."""
    names = [f"echo{n}" for n in range(servers)]
    entry = {"command": scratch.python, "args": [str(scratch.servers / "echo_server.py")]}
    config = scratch.write(".cursor/mcp.json", json.dumps({"mcpServers": {name: entry for name in names}}, indent=1))
    done = scratch.firedoor("protect", "--all", "--yes", "--no-verify")
    if done.returncode:
        raise Missing(f"firedoor protect: exit {done.returncode}: {done.stderr}")
    now = json.loads(config.read_text())["mcpServers"]
    with contextlib.ExitStack() as running:
        shims = []
        for name in names:
            peer = Peer([now[name]["command"], *now[name]["args"]], options([]), env=scratch.env)
            running.callback(peer.end)
            peer.result(0, "initialize", {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "b", "version": "1"}})
            peer.result(1, "tools/list", {})
            peer.result(2, "tools/call", {"name": "echo", "arguments": {"text": "x" * 1000}})
            for pid in tree(peer.process.pid):
                with contextlib.suppress(OSError):
                    if os.path.basename(os.readlink(f"/proc/{pid}/exe")).startswith("firedoor"):
                        shims.append((pid == peer.process.pid, resident([pid])))
        engine = resident([scratch.engine_pid()])
    # A guardian is the shim after a fork: most of its pages are the shim's own.
    shim = max(mib for own, mib in shims if own)
    guardian = max((mib for own, mib in shims if not own), default=0.0)
    print(f"\nmemory with {servers} servers")
    print(f"  shim     {shim:.1f} MiB resident (bound {SHIM_MIB:.0f}); its guardian {guardian:.1f} MiB, mostly shared with it")
    print(f"  engine   {engine:.1f} MiB resident (bound {ENGINE_MIB:.0f})")
    return {"shim_mib": shim, "guardian_mib": guardian, "engine_mib": engine, "within": {"shim": shim <= SHIM_MIB, "engine": engine <= ENGINE_MIB}}


def main():
    """All shapes, then memory."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--calls", type=int, default=2000)
    parser.add_argument("--servers", type=int, default=10)
    parser.add_argument("--json", action="store_true", help="one JSON document as the last line")
    asked = parser.parse_args()
    results = {}
    try:
        as_ordinary_user(__file__)
        with Scratch() as scratch:
            pump = build_pump(scratch.root)
            server = [scratch.python, str(scratch.servers / "echo_server.py")]
            sides = {"direct": server, "pump": [str(pump), *server], "firedoor": scratch.protect_one("echo", *server)}
            spawn = {"env": scratch.env, "cwd": scratch.home}
            for shape, extra in SHAPES.items():
                rounds = []
                for _ in range(asked.rounds):
                    got = {}
                    for side, command in sides.items():
                        also = (lambda: [scratch.engine_pid()]) if side == "firedoor" else None
                        got[side] = measure(command, options(["--calls", str(asked.calls), *extra]), also, **spawn)
                        if got[side]["errors"]:
                            raise NoAnswer(f"{side}: {got[side]['errors']} calls failed")
                    rounds.append(got)
                results[shape] = compare(shape, rounds)
            results["memory"] = memory(scratch, asked.servers)
    except (Missing, NoAnswer, subprocess.CalledProcessError) as error:
        print(f"bench: {error}", file=sys.stderr)
        return 2
    # Only the small call has a bound: the larger shapes are for comparing one version with the next.
    within = {**results["small"]["within"], **results["memory"]["within"]}
    above = [name for name, fine in within.items() if not fine]
    print(f"\n{'all bounds kept' if not above else 'ABOVE the bound: ' + ', '.join(above)}")
    if asked.json:
        print(json.dumps(results))
    return 1 if above else 0


sys.exit(main())
