#!/usr/bin/env python3
"""Honest work in many sessions with real servers, through the engine: how often is somebody asked, and what is blocked?

honest.py [--direct] [--keep FILE] [--record FILE] [NAME...]   every session, or those whose names begin so
  --direct       without Firedoor: do the sessions work at all?
  --keep FILE    writes each question, and each event of the log with findings or a refusal, as JSON Lines
  --record FILE  writes each session that works, with what its servers answered, for `firedoor inspect`

A home is made once, and all servers are protected in it as a user would. Then each session (sessions.py) is a client of its own
that starts the servers it needs and makes its calls one after the other. The mode is Balanced, as after installing. A question is
counted, and answered with "allow once". At the end a made-up key leaves, which has to be asked about.

Exits 1 when a session does not work, something is blocked, more than one call in 200 is asked about, or the leak is not; 2 when
something has to be built or installed first.
"""

import argparse
import collections
import contextlib
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib

TESTS = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(TESTS / "harness"), str(TESTS / "e2e")]
import sessions  # noqa: E402
from agent import Agent, text_of  # noqa: E402
from real_servers import LIST, listens, pages, spare, uv  # noqa: E402
from scratch import Missing, Scratch, as_ordinary_user, run, until  # noqa: E402

SERVERS = pathlib.Path(__file__).resolve().parent / "servers.toml"
INSTALL_LIMIT = 1800.0
CALL_LIMIT = 90.0
# An answer that takes longer may wait for a person.
PROMPT = 0.7
CALLS_PER_QUESTION = 200


class Broken(Exception):
    """A session does not work."""


class Laptop:
    """The scratch home with its servers."""

    def __init__(self, scratch, places, direct):
        self.scratch, self.places, self.direct = scratch, places, direct
        self.work = scratch.home / "work"
        self.entries, self.grants, self.beside = {}, {}, {}

    def fill(self, value, further=()):
        """Puts the places, and what a session kept, in for {work}, {home} and so on."""
        known = {**self.places, **dict(further)}
        if isinstance(value, str):
            return re.sub(r"\{(\w+)\}", lambda found: known.get(found[1], found[0]), value)
        if isinstance(value, list):
            return [self.fill(part, further) for part in value]
        if isinstance(value, dict):
            return {name: self.fill(part, further) for name, part in value.items()}
        return value

    def add(self, name, entry):
        """Puts a server into the configuration, if everything is there that it needs."""
        absent = [program for program in entry.get("needs", []) if not shutil.which(program)]
        if absent:
            raise Missing(f"the server {name} needs {', '.join(absent)}")
        command, *arguments = self.fill(entry["run"])
        env = self.fill({**entry.get("env", {}), **(entry.get("unconfined", {}) if self.direct else {})})
        self.entries[name] = {"command": command, "args": arguments, "env": env}
        self.grants[name] = self.fill(entry.get("grants", []))
        self.beside[name] = self.fill(entry.get("beside", []))

    def protect(self):
        """Installs and reroutes every server, and grants what a user would."""
        config = self.scratch.home / ".claude.json"
        config.write_text(json.dumps({"mcpServers": self.entries}, indent=2))
        if self.direct:
            return
        self.told("protect", "--all", "--yes")
        self.entries = json.loads(config.read_text())["mcpServers"]
        for name, grants in self.grants.items():
            if grants:
                self.told("grants", "add", f"claude-code/user/{name}", *grants)

    def told(self, *arguments):
        """A command of ours that has to succeed."""
        done = self.scratch.firedoor(*arguments, timeout=INSTALL_LIMIT)
        if done.returncode:
            raise Missing(f"firedoor {' '.join(arguments)}: exit {done.returncode}: {(done.stdout + done.stderr)[-2000:]}")

    def fresh(self, session):
        """The working directory and the web's pages as a session finds them."""
        site = pathlib.Path(self.places["site"])
        for directory in (self.work, site):
            shutil.rmtree(directory, ignore_errors=True)
            directory.mkdir()
        for name, content in session.get("files", {}).items():
            self.scratch.write(name, self.fill(content))
        for name, content in session.get("pages", {}).items():
            page = site / name
            page.parent.mkdir(parents=True, exist_ok=True)
            page.write_text(self.fill(content))
        for command in session.get("prepare", []):
            done = self.scratch.run(*self.fill(command), cwd=self.work, timeout=CALL_LIMIT)
            if done.returncode:
                raise Broken(f"{command}: exit {done.returncode}: {done.stderr.strip()[-300:]}")

    @contextlib.contextmanager
    def agent(self, session):
        """A client with the servers of a session, and the programs that these need beside them."""
        names = sorted(sessions.servers([session]))
        if unknown := [name for name in names if name not in self.entries]:
            raise Broken(f"there is no server {', '.join(unknown)}")
        config = {"mcpServers": {name: self.entries[name] for name in names}}
        file = self.scratch.write("session.json", json.dumps(config))
        with contextlib.ExitStack() as stack:
            for command in (self.beside[name] for name in names if self.beside[name]):
                env = {**self.scratch.env, "HOME": str(self.scratch.root)}
                process = self.scratch.start(*command, env=env, stdout=subprocess.DEVNULL, start_new_session=True)
                stack.callback(process.wait)
                stack.callback(process.terminate)
                if not until(lambda: listens(int(self.places["spare"])), 20):
                    raise Missing(f"{command[0]} does not listen")
            log = stack.enter_context(open(self.scratch.root / "agent.log", "w+", encoding="utf-8"))
            yield stack.enter_context(Agent(self.scratch, file, log, cwd=self.work))

    def questions(self):
        """What waits for an answer."""
        return [] if self.direct else self.scratch.json("pending", codes=(0, 1))["questions"]


class Run:
    """One session on the laptop, and who was asked in it."""

    def __init__(self, laptop, session):
        self.laptop, self.session = laptop, session
        self.calls, self.asked, self.record = 0, [], {}

    def steps(self):
        """Makes its calls."""
        self.laptop.fresh(self.session)
        kept = {}
        with self.laptop.agent(self.session) as agent:
            answered = []
            self.record = {"tools": agent.definitions, "steps": answered}
            for step in self.session["step"]:
                server, _, tool = step["call"].partition("/")
                given = self.laptop.fill(step.get("with", {}), kept.items())
                self.calls += 1
                result = self.result(agent, agent.send(server, tool, **given), step)
                answered.append({"server": server, "tool": tool, "arguments": given, "result": result})
                text, failed = text_of(result), bool(result.get("isError"))
                refused = "refused" in step and not self.laptop.direct
                if failed != (refused or step.get("fails", False)):
                    raise Broken(f"{step['call']} {json.dumps(given)[:300]}: {text[:600]}")
                for name, pattern in step.get("keep", {}).items():
                    found = re.search(pattern, text)
                    if not found:
                        raise Broken(f"{step['call']}: nothing like {pattern!r} in {text[:600]}")
                    kept[name] = found[1] if found.re.groups else found[0]

    def result(self, agent, tag, step):
        """What a call led to. Whoever is asked meanwhile allows it once."""
        for _look in range(int(CALL_LIMIT / PROMPT)):
            if until(lambda: agent.answered(tag), PROMPT):
                return agent.result(tag)
            for question in self.laptop.questions():
                self.asked.append({"session": self.session["name"], "call": step["call"], "question": question})
                # Meanwhile it may be gone.
                self.laptop.scratch.firedoor("answer", question["id"], "allow", "--for", "once")
        raise Broken(f"no answer to {step['call']} within {CALL_LIMIT:.0f} s")

    def whole(self):
        """Runs it to its end; what went wrong, if something did."""
        try:
            self.steps()
        except (Broken, RuntimeError) as error:
            return str(error)
        return None


def blocked(what):
    """Whether an event of the log says that a call or a start did not pass, or that something failed."""
    call = what.get("verdict") == "block" and what["method"] not in ("connect", "read", "write")
    return call or what["kind"] in ("refused", "unanswered", "denied", "failed")


def refusals(rows):
    """What servers tried beside their calls and the sandbox refused, and how often."""
    tried = [row["what"] for row in rows if row["what"].get("verdict") == "block" and not blocked(row["what"])]
    return collections.Counter(f"{what['method']} {what['subject']}" for what in tried)


def described(question):
    """A question in a line."""
    found = [finding["summary"] for finding in question["findings"]]
    return f"{question['entry']} {question['tool']}: {' '.join(found)}"


def replay(laptop, honest, keep, record):
    """Runs the sessions and prints how it went; the exit code."""
    runs, broken = [Run(laptop, session) for session in honest], 0
    for one in runs:
        wrong = one.whole()
        broken += wrong is not None
        print(f"{one.session['name']:<60} {'ok' if wrong is None else f'FAILED  {wrong}'}", flush=True)
        if record and wrong is None:
            with record.open("a") as file:
                print(json.dumps({"id": one.session["name"], "kind": "session", "payload": one.record}), file=file)
        for asked in one.asked:
            print(f"    asked at {asked['call']}: {described(asked['question'])}", flush=True)
    rows = [] if laptop.direct else [json.loads(row) for row in laptop.scratch.firedoor("log", "--json").stdout.splitlines()]
    # A connection's question may be gone again before anybody looks.
    asked = [row["what"] for row in rows if row["what"].get("verdict") == "ask"]
    if keep:
        kept = [row for row in rows if blocked(row["what"]) or row["what"].get("findings")]
        answered = [question for one in runs for question in one.asked]
        keep.write_text("".join(json.dumps(row) + "\n" for row in [*answered, *kept]))
    found = collections.Counter(finding["detector"] for row in rows for finding in row["what"].get("findings", []))
    print("on record:", ", ".join(f"{count} {detector}" for detector, count in found.most_common()) or "nothing")
    for tried, count in refusals(rows).most_common():
        print(f"    refused by the sandbox: {count} times {tried}")
    for what in asked:
        print(f"    asked: {what['method']} {what['subject']}: {', '.join(finding['detector'] for finding in what.get('findings', []))}")
    stopped = [row["what"] for row in rows if blocked(row["what"])]
    for what in stopped:
        print(f"    blocked: {json.dumps(what)[:600]}")
    calls = sum(one.calls for one in runs)
    print(f"{len(runs)} sessions, {calls} calls: {len(asked)} questions, {len(stopped)} blocked, {broken} sessions that do not work")
    if laptop.direct:
        return 1 if broken else 0
    leak = Run(laptop, sessions.leak())
    wrong = leak.whole()
    found = {finding["detector"] for one in leak.asked for finding in one["question"]["findings"]}
    if wrong or "flow/secret" not in found:
        print(f"a leak was not asked about: {wrong or f'found was {found}'}")
        return 1
    return 1 if broken or stopped or len(asked) * CALLS_PER_QUESTION > calls else 0


def tools(place):
    """A directory with uv, and with Python under the name that programs which run code call it by."""
    directory = place / "tools"
    directory.mkdir()
    for name in ("uv", "uvx"):
        (directory / name).symlink_to(uv(place / "uv") / name)
    (directory / "python").symlink_to(pathlib.Path(shutil.which("python3")).resolve())
    return directory


def dojo(place, package):
    """A Python environment with AgentDojo; its interpreter."""
    for command in (["python3", "-m", "venv", place], [place / "bin/pip", "install", "-q", package]):
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise Missing(f"{package} cannot be installed from PyPI: {done.stderr.strip()[-300:]}")
    return place / "bin/python"


def main():
    """Makes the home and runs the sessions; the exit code."""
    options = argparse.ArgumentParser()
    options.add_argument("--direct", action="store_true")
    options.add_argument("--keep", type=pathlib.Path)
    options.add_argument("--record", type=pathlib.Path)
    options.add_argument("names", nargs="*")
    chosen = options.parse_args()
    as_ordinary_user(__file__)
    for file in filter(None, (chosen.keep, chosen.record)):
        try:
            file.touch()
        except OSError as error:
            raise Missing(f"{file} cannot be written by the ordinary user that the sessions run as: {error.strerror}") from error
    listed = tomllib.loads(SERVERS.read_text())
    known = {entry["name"]: entry for entry in tomllib.loads(LIST.read_text())["server"]}
    known = {name: {**known[name], **listed["other"].get(name, {})} for name in listed["real"]}
    known |= {name: {"run": command} for name, command in listed["own"].items()}
    known |= {name: {"run": [*listed["dojo-run"], *arguments]} for name, arguments in listed["dojo"].items()}
    with tempfile.TemporaryDirectory(prefix="fd-honest-", dir="/tmp") as place, Scratch() as scratch:
        place, work = pathlib.Path(place), scratch.home / "work"
        scratch.env["PATH"] += f":{tools(place)}"
        python = dojo(scratch.home / "dojo", listed["agentdojo"])
        every = [*sessions.written(), *sessions.agentdojo(python, listed["dojo"])]
        honest = [one for one in every if not chosen.names or one["name"].startswith(tuple(chosen.names))]
        if not honest:
            raise Missing(f"no session's name begins with {' or '.join(chosen.names)}")
        for directory in (work, place / "site"):
            directory.mkdir()
        with pages(place / "site", {}) as port:
            places = {"home": scratch.home, "work": work, "port": port, "spare": spare(), "site": place / "site"}
            places |= {"servers": scratch.servers, "python": scratch.python}
            laptop = Laptop(scratch, {name: str(value) for name, value in places.items()}, chosen.direct)
            for name in sorted(sessions.servers([*honest, *([] if chosen.direct else [sessions.leak()])])):
                if name in known:
                    laptop.add(name, known[name])
            laptop.protect()
            return replay(laptop, honest, chosen.keep, chosen.record)


if __name__ == "__main__":
    run(main)
