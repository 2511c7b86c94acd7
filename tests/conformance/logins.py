#!/usr/bin/env python3
"""The MCP conformance suite's scenarios of clients that log in, with Firedoor as the client: `firedoor login` does so at the suite's own
issuers, and `firedoor-remote` speaks to the suite's servers with the token. Where a server wants more, what the error says is done, as a
person would.

  logins.py [--keep FILE] [SCENARIO…]

The suite starts this program as the client under test, with `client` before the address. Exit code 1 when a scenario does not succeed
and is none of EXCEPTIONS, or is one and does; 2 when the suite cannot be run."""

import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import termios
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
sys.path.insert(0, str(HERE.parent / "harness"))
from conformance import LOGINS, PATIENCE_FOR_ONE, SUITE, checks, install, revisions, succeeds, suite  # noqa: E402
from oauth import go, keychain  # noqa: E402
from scratch import Missing, Scratch, as_ordinary_user, run  # noqa: E402

# How often a person does what an error says.
TRIES = 3

# Where the client names a document about itself, which the suite's issuer knows and does not read.
DOCUMENTED = {"auth/basic-cimd"}
DOCUMENT = "https://conformance-test.local/client-metadata.json"

# Scenarios that do not succeed, and why.
NO_PERSON = "no person logs in there, and Firedoor does so with the user's browser alone"
NO_PROOF = "Firedoor shows tokens, and no proof of who holds them (DPoP)"
EXCEPTIONS = {
    "auth/client-credentials-jwt": NO_PERSON,
    "auth/client-credentials-basic": NO_PERSON,
    "auth/enterprise-managed-authorization": NO_PERSON,
    "auth/wif-jwt-bearer": NO_PERSON,
    "auth/dpop": NO_PROOF,
    "auth/dpop-nonce": NO_PROOF,
}


def scenarios(place, revision):
    """Those that log in, of a revision, and whether they are required."""
    text = (place / SUITE / f"requirements/{revision}.yaml").read_text(encoding="utf-8")
    return dict.fromkeys(re.findall(rf"^  - ({LOGINS}\S+)", text, re.MULTILINE), True) | dict.fromkeys(
        re.findall(rf"^  - scenario: ({LOGINS}\S+)", text, re.MULTILINE), False
    )


class Client:
    """What the suite starts: a person with an AI client and a browser."""

    def __init__(self, url):
        self.scenario, self.url = os.environ["MCP_CONFORMANCE_SCENARIO"], url
        self.revision = os.environ["MCP_CONFORMANCE_PROTOCOL_VERSION"]
        self.context = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT") or "{}")
        self.name = re.sub(r"\W", "-", f"{self.revision}-{self.scenario}")
        self.entry = f"cursor/user/{self.name}"
        self.config = pathlib.Path.home() / ".cursor/mcp.json"
        self.config.parent.mkdir(exist_ok=True)
        self.config.write_text(json.dumps({"mcpServers": {self.name: {"url": url}}}), encoding="utf-8")

    def log_in(self, *more):
        """`firedoor login`, with a browser that agrees to everything. Whether that was of use."""
        words = ["firedoor", "login", self.entry, *more]
        secret = self.context.get("client_secret", "")
        if "client_id" in self.context:
            words += ["--client-id", self.context["client_id"], *(["--client-secret"] if secret else [])]
        if self.scenario in DOCUMENTED:
            words += ["--client-id", DOCUMENT]
        print("$", *words, file=sys.stderr)
        person, terminal = os.openpty() if secret else (None, subprocess.DEVNULL)
        pipes = {"stdin": terminal, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        with subprocess.Popen(words, start_new_session=True, **pipes) as process:
            if secret:
                # Nothing is typed before it is unseen.
                while process.poll() is None and termios.tcgetattr(person)[3] & termios.ECHO:
                    time.sleep(0.02)
                os.write(person, f"{secret}\n".encode())
            said = process.stdout.readline()
            address = process.stdout.readline().strip()
            shown = go(address) if address.startswith("http") else None
            rest, wrong = process.communicate(timeout=40)
        print(said, address, shown, rest, wrong, sep="\n", file=sys.stderr)
        if process.returncode or (secret and secret in said + address + rest + wrong):
            return False
        # With what the login gave.
        protecting = ["firedoor", "protect", "--all", "--yes", "--no-verify"]
        return subprocess.run(protecting, check=False, capture_output=True, timeout=60).returncode == 0

    def talk(self):
        """What a client does that has found a server; the errors that it gets."""
        meta = {
            "io.modelcontextprotocol/protocolVersion": self.revision,
            "io.modelcontextprotocol/clientInfo": {"name": "t", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": {},
        }
        modern = {"_meta": meta} if self.revision >= "2026-07-28" else {}
        opening = {"protocolVersion": self.revision, "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
        # A script is the client: what descends from one may not log in.
        script = pathlib.Path.home() / "client.sh"
        script.write_text('"$@"\nexit $?\n', encoding="utf-8")
        entry = json.loads(self.config.read_text(encoding="utf-8"))["mcpServers"][self.name]
        entry = entry if "command" in entry else {"command": "firedoor-shim", "args": ["--entry", self.entry, "--url", self.url]}
        command = ["sh", script, entry["command"], *entry["args"]]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        with subprocess.Popen(command, **pipes) as process:

            def ask(number, method, params):
                say({"jsonrpc": "2.0", "id": number, "method": method, "params": params | modern})
                while (answer := json.loads(process.stdout.readline())).get("id") != number:
                    pass
                return answer

            def say(message):
                print(json.dumps(message), file=process.stdin, flush=True)

            try:
                answers = [ask(1, "server/discover", {}) if modern else ask(1, "initialize", opening)]
                if "error" not in answers[0] and not modern:
                    say({"jsonrpc": "2.0", "method": "notifications/initialized"})
                if "error" not in answers[0]:
                    answers.append(ask(2, "tools/list", {}))
                for number, tool in enumerate(answers[-1].get("result", {}).get("tools", []), 3):
                    answers.append(ask(number, "tools/call", {"name": tool["name"], "arguments": {}}))
            finally:
                process.stdin.close()
        errors = [answer["error"]["message"] for answer in answers if "error" in answer]
        print(*errors, sep="\n", file=sys.stderr)
        return errors

    def run(self):
        """Does what the errors say, as often as there is a point in it."""
        errors = self.talk()
        for _ in range(TRIES):
            command = re.search(r"`(firedoor login [^`]+)`", " ".join(errors))
            if not command or not self.log_in(*shlex.split(command.group(1))[3:]):
                break
            errors = self.talk()
        return 1 if errors else 0


def main():
    """Runs each scenario."""
    as_ordinary_user(__file__)
    words = sys.argv[1:]
    keep = pathlib.Path(words[1]) if words[:1] == ["--keep"] else None
    wanted = words[2:] if keep else words
    kept, wrong = {}, 0
    with Scratch() as scratch:
        place, node = install(scratch)
        with keychain(scratch):
            for revision in revisions(place):
                for name, required in scenarios(place, revision).items():
                    of = f"{revision} {name}"
                    if wanted and not any(part in of for part in wanted):
                        continue
                    results = place / "results" / revision / name.replace("/", "-")
                    command = f"{sys.executable} {HERE / 'logins.py'} client"
                    words = ("client", "--command", command, "--scenario", name, "--spec-version", revision)
                    code, late = suite(scratch, place, node, results, *words, seconds=PATIENCE_FOR_ONE)
                    found = {key: said for file in results.rglob("checks.json") for key, said in checks(file).items()}
                    log = "".join(file.read_text(encoding="utf-8") for file in results.rglob("stderr.txt"))
                    kept[of] = {"required": required, "code": code, "checks": found, "log": log}
                    good = code == 0 and succeeds(found)
                    as_said = good != (name in EXCEPTIONS)
                    wrong += not as_said
                    print(f"  {of}{'' if required else ' (not required)'}: {'succeeds' if good else late or 'does not succeed'}", flush=True)
                    for check, (status, why) in found.items():
                        if status not in ("SUCCESS", "SKIPPED") and not as_said:
                            print(f"    {check}: {status} {why}")
                    if keep:
                        keep.write_text(json.dumps(kept, indent=1), encoding="utf-8")
    if not kept:
        raise Missing("the suite has no such scenario")
    excepted = sum(of.partition(" ")[2] in EXCEPTIONS for of in kept)
    print(f"{len(kept)} scenarios of clients that log in, {excepted} of them exceptions: {wrong} not as they should be")
    return 1 if wrong else 0


if __name__ == "__main__":
    if sys.argv[1:2] == ["client"]:
        sys.exit(Client(sys.argv[-1]).run())
    run(main)
