#!/usr/bin/env python3
"""What `firedoor scan` costs in a home with 200 projects and 60 configuration files, beside a plain walk of that home.

usage: scan.py [ROUNDS]    with FIREDOOR_BIN_DIR
Each round times both, warm, one after the other. Prints medians, the worst, the memory, and whether both bounds hold
(exit code 1 when one does not).
"""
import json, os, pathlib, resource, shutil, statistics, subprocess, sys, tempfile, time

PROJECTS, FILES = 200, 60
MOST_MS, MOST_MIB = 150, 30
SERVERS = {
    "github": {"command": "npx", "args": ["-y", "@modelcontextprotocol/server-github"], "env": {"LOG": "info"}},
    "files": {"command": "npx", "args": ["-y", "@modelcontextprotocol/server-filesystem@2025.8.21", "/srv"]},
    "time": {"command": "uvx", "args": ["mcp-server-time==1.2.3"]},
    "web": {"url": "https://mcp.example.com/mcp"},
    "own": {"command": "/usr/bin/python3", "args": ["server.py", "--verbose"]},
}
# Below the home: file and the key above its servers.
USER = [
    (".cursor/mcp.json", "mcpServers"),
    (".gemini/settings.json", "mcpServers"),
    (".config/Code/User/mcp.json", "servers"),
    (".config/Claude/claude_desktop_config.json", "mcpServers"),
    (".codeium/windsurf/mcp_config.json", "mcpServers"),
    (".factory/mcp.json", "mcpServers"),
    (".kiro/settings/mcp.json", "mcpServers"),
    (".qwen/settings.json", "mcpServers"),
    (".config/opencode/opencode.json", "mcp"),
]
PROJECT = [(".mcp.json", "mcpServers"), (".cursor/mcp.json", "mcpServers"), (".vscode/mcp.json", "servers")]


def write(path, value):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value, indent=2))


def furnish(home):
    """As a developer's home looks: projects with sources in them, most without a configuration."""
    roots = [home / "src" / f"project-{n:03}" for n in range(PROJECTS)]
    for n, root in enumerate(roots):
        for part in ("src", "src/lib", "tests", "docs", ".git/objects"):
            (root / part).mkdir(parents=True)
            for file in range(8):
                (root / part / f"f{file}.txt").write_text("x" * 200)
    for file, key in USER:
        write(home / file, {key: SERVERS})
    write(home / ".claude.json", {
        "mcpServers": SERVERS,
        "projects": {str(root): {"history": [{"display": "x" * 400}] * 20, "mcpServers": {}} for root in roots},
    })
    for n in range(FILES - len(USER) - 1):
        file, key = PROJECT[n % len(PROJECT)]
        write(roots[n * 3] / file, {key: SERVERS})


def timed(command, env, home):
    begin = time.perf_counter()
    pid = os.posix_spawn(command[0], command, env, file_actions=[(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)])
    _, status, used = os.wait4(pid, 0)
    took = (time.perf_counter() - begin) * 1e3
    if status:
        sys.exit(f"scan.py: {command[:3]} ended with {os.waitstatus_to_exitcode(status)}")
    return took, used.ru_maxrss / 1024, (used.ru_utime + used.ru_stime) * 1e3


def main():
    firedoor = str(pathlib.Path(os.environ["FIREDOOR_BIN_DIR"]) / "firedoor")
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 31
    root = pathlib.Path(tempfile.mkdtemp(prefix="fd-scan-"))
    try:
        home = root / "home"
        furnish(home)
        env = {"HOME": str(home), "PATH": os.environ["PATH"]}
        os.chdir(home)
        found = json.loads(subprocess.run([firedoor, "scan", "--json"], env=env, check=True, capture_output=True).stdout)
        files = [f for c in found["clients"] for f in c["files"]]
        entries = sum(len(f["entries"]) for f in files)
        if len(files) != FILES or entries != FILES * len(SERVERS):
            sys.exit(f"scan.py: {len(files)} files and {entries} servers were found, not {FILES} and {FILES * len(SERVERS)}")
        scan, walk = [firedoor, "scan", "--json"], [shutil.which("find"), str(home), "-printf", ""]
        pairs = [(timed(walk, env, home), timed(scan, env, home)) for _ in range(rounds)]
        walks, scans = zip(*pairs)
        middle = lambda of, n: statistics.median(one[n] for one in of)
        wall, memory = middle(scans, 0), max(one[1] for one in scans)
        print(f"home: {PROJECTS} projects, {FILES} configuration files, {entries} servers; {rounds} pairs, warm")
        print(f"plain walk (find): {middle(walks, 0):.1f} ms, of the processor {middle(walks, 2):.1f} ms")
        print(f"firedoor scan: {wall:.1f} ms (worst {max(one[0] for one in scans):.1f}), of the processor {middle(scans, 2):.1f} ms")
        print(f"memory of firedoor scan: {memory:.1f} MiB at most")
        bad = [text for held, text in ((wall <= MOST_MS, f"{MOST_MS} ms"), (memory <= MOST_MIB, f"{MOST_MIB} MiB")) if not held]
        print("FAIL: more than " + " and ".join(bad) if bad else f"PASS: at most {MOST_MS} ms and {MOST_MIB} MiB")
        return 1 if bad else 0
    finally:
        shutil.rmtree(root, ignore_errors=True)


sys.exit(main())
