#!/usr/bin/env python3
"""The tables of docs/sandboxscan.md: the paper's tools, built here, scanned with its matcher and with ours.

usage: tests/wasm/tables.py    with FIREDOOR_BIN_DIR; needs clang, lld and wasi-libc (scripts/setup)
"""
import json, os, pathlib, subprocess, sys, tempfile

LONG = "SEKRET_0123456789abcdef0123456789abcdef"
SECRET = "FILESECRET_9f2c1a7b"
GIVEN = ["API_KEY=shh-secret", "USER_INPUT=hello", "FILE_TO_READ=secret.txt"]


def main():
    firedoor = pathlib.Path(os.environ["FIREDOOR_BIN_DIR"]) / "firedoor"
    with tempfile.TemporaryDirectory(prefix="fd-tables-") as scratch:
        root = pathlib.Path(scratch)
        subprocess.run([pathlib.Path(__file__).with_name("build.sh"), root], check=True)
        (root / "data").mkdir()
        (root / "data/secret.txt").write_text(SECRET + "\n")
        home = {"HOME": str(root), "PATH": os.environ["PATH"]}

        def scan(tool, env=(), more=(), paper=False):
            command = [firedoor, "wasm", "scan", root / f"{tool}.wasm", "--json", *more]
            command += [word for pair in env for word in ("--env", pair)] + ["--paper"] * paper
            done = subprocess.run(command, env=home, capture_output=True, text=True)
            if done.returncode not in (0, 1):
                sys.exit(f"tables.py: {tool}: {done.stderr}")
            return json.loads(done.stdout)

        def numbers(report):
            s = report["summary"]
            return f"{report['exec']['exit_code']} | {s['sinks']} | {s['sources']} | {s['flows']} | {s['violations']}"

        def flow(report):
            return "flow" if report["summary"]["flows"] else "–"

        def how(report):
            return ", ".join(sorted({f.get("transform", "verbatim") for f in report["flows"]})) or "–"

        print("### Table I: three tools\n")
        print("| tool | matcher | exit | sinks | sources | flows | violations | evidence |\n|---|---|--:|--:|--:|--:|--:|---|")
        for tool in ["benign", "evil_prompt", "fs_violation"]:
            for paper in [True, False]:
                r = scan(tool, GIVEN, paper=paper)
                told = [f"{r['sources'][f['source']]['name']} in {r['sinks'][f['sink']].get('path', r['sinks'][f['sink']]['type'])}" for f in r["flows"]]
                told += [v["evidence"] for v in r["violations"][:1]]
                print(f"| {tool} | {'paper' if paper else 'ours'} | {numbers(r)} | {'; '.join(told) or '–'} |")
        print("\n### Table II: what a look at the file shows, and what a run shows\n")
        print("| tool | looked for in the file | found | matcher of the paper | ours |\n|---|---|---|---|---|")
        for tool, text, more in [("hidden_path", "/etc/passwd", ()), ("file_exfil", SECRET, ("--dir", root / "data"))]:
            seen = "yes" if text.encode() in (root / f"{tool}.wasm").read_bytes() else "no"
            runs = [scan(tool, more=more, paper=p)["summary"] for p in (True, False)]
            cells = [f"{r['flows']} flows, {r['violations']} violations" for r in runs]
            print(f"| {tool} | `{text}` | {seen} | {cells[0]} | {cells[1]} |")
        print("\n### Table III: changes on the way, and noise\n")
        print("| tool | case | matcher of the paper | ours | how ours saw it |\n|---|---|---|---|---|")
        modes = "plain split base64 truncate meta_path hex base32 rot13 reverse chunked xor name twice drip".split()
        cases = [("leak", f"{m}", [f"DEMO_SECRET={LONG}", f"MODE={m}"]) for m in modes]
        cases[5:5] = [
            ("noise", "a token of 4 letters", ["DEMO_SECRET=abcd"]),
            ("noise", "a long token", [f"DEMO_SECRET={LONG}"]),
            ("noise", "no variable", []),
        ]
        for tool, name, env in cases:
            theirs, ours = scan(tool, env, paper=True), scan(tool, env)
            print(f"| {tool} | {name} | {flow(theirs)} | {flow(ours)} | {how(ours)} |")


main()
