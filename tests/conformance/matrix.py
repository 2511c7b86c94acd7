#!/usr/bin/env python3
"""Official SDKs' clients see through Firedoor what they see direct, of official SDKs' servers, in each era and over each
transport: results, errors, progress, sampling, elicitation, changes, cancellation, results of 20 MiB (15 with the Rust client), 1,000 calls at once;
and tasks, where both sides have them: TypeScript's and Python's 1.x those of 2025-11-25, Rust's the extension of 2026-07-28. A client that knows both eras also finds out by itself
(auto) which one a server of the older speaks. Over HTTP+SSE (sse), which is deprecated, are those that speak it. Clients of one era at
servers of the other alone get the same error.

  matrix.py [CELL…]        a cell is named as it is printed, or a part of that

Direct a client speaks the server's own transport; through Firedoor it starts the shim, which starts the server or speaks
HTTP to it. What both see has to be right, too (RIGHT), but for what is in EXCEPTIONS. Exit code 1 when anything differs or is not
right, 2 when something cannot be installed."""

import contextlib
import json
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
sys.path.insert(0, str(HERE.parent / "harness"))
from conformance import install, serving  # noqa: E402
from scratch import Missing, Scratch, as_ordinary_user, find_programs, run  # noqa: E402

RUST = "firedoor-matrix-rust"
ECHOED = 'é🚀 \u2028 "'
TOOLS = {"ask", "blob", "change", "echo", "fail", "given_up", "model", "steps", "wait"}


def says(*words):
    """Whether an answer is no error and says these words."""
    return lambda seen: isinstance(seen, dict) and not seen.get("isError") and all(word in written(seen) for word in words)


def written(seen):
    """What was seen, as text."""
    return json.dumps(seen, ensure_ascii=False)


def is_error(seen):
    """Whether this is an error of any kind."""
    return isinstance(seen, str) or bool(seen.get("isError"))


# What has to be seen, by what is looked at.
RIGHT = {
    "server": lambda seen: "matrix-" in written(seen),
    # By the era of the server, which a client that finds it out has to find.
    "version": {"modern": lambda seen: seen >= "2026-07-28", "legacy": lambda seen: "2024" < seen < "2026"},
    "capabilities": lambda seen: {"tools", "prompts", "resources"} <= seen.keys(),
    "tools": lambda seen: TOOLS <= {tool["name"] for tool in seen["tools"]},
    "prompts": lambda seen: seen[0]["prompts"][0]["name"] == "greet" and "Greet Ada" in written(seen[1]),
    "resources": lambda seen: all(
        part in written(each)
        for each, part in zip(seen, ("matrix://notes", "matrix://rows/{id}", "A text with é and 🚀", "row 7"), strict=True)
    ),
    "result": lambda seen: seen["content"][0]["text"] == ECHOED and not seen.get("isError"),
    "tool_error": lambda seen: is_error(seen) and "fail" in written(seen),
    "errors": lambda seen: len(seen) == 2 and all(map(is_error, seen)),
    "progress": lambda seen: seen == [[1, 3], [2, 3], [3, 3]],
    "elicitation": says("accept Ada"),
    "sampling": says("the model: said"),
    "changes": lambda seen: seen is True,
    "cancelled": lambda seen: isinstance(seen, str),
    "given_up": lambda seen: seen == 1,
    "large": lambda seen: seen[0] >= 15 << 20 and seen[1],
    "at_once": lambda seen: seen == 1000,
    "refused": lambda seen: isinstance(seen, str) and bool(seen),
    "tasks": {
        "legacy": lambda seen: seen["kinds"] == ["taskCreated", "taskStatus", "result"]
        and says("later: é🚀")(seen["result"])
        and seen["again"] == seen["result"]
        and (seen["state"]["status"], seen["cancelled"]["status"]) == ("completed", "cancelled")
        and seen["listed"] == ["cancelled", "completed"],
        "modern": lambda seen: says("later: é🚀 Ada")(seen["state"]["result"])
        and says("Who?")(seen["requests"])
        and (seen["created"]["status"], seen["state"]["status"], seen["cancelled"]["status"]) == ("working", "completed", "cancelled")
        and bool(seen["unknown"]),
    },
}
# A server that is another one without its older era: what it does for clients of its own is looked at there.
MODERN_ONLY = "typescript-2-modern-only"
# What need not be right, and has to be the same all the same: client, server, transport, era (or a * for all) and what is looked at.
KEEPS_NONE = "this server keeps no session over HTTP in the era that has them, so it cannot speak first"
EXCEPTIONS = {
    ("*", "typescript-2", "http", "legacy", "changes"): KEEPS_NONE,
    ("*", "typescript-2", "http", "legacy", "elicitation"): KEEPS_NONE,
    ("*", "typescript-2", "http", "legacy", "sampling"): KEEPS_NONE,
    ("python-2", "*", "*", "modern", "server"): "told which revision to speak, this client does not ask who the server is",
}
# What need not even be the same.
MAY_DIFFER = {
    ("python-1", MODERN_ONLY, "http", "legacy", "refused"): "over HTTP this client looks at the status (400) and not at the server's "
    "error, which it is told through Firedoor",
    ("*", "typescript-2", "http", "legacy", "given_up"): "without a session it cannot be told of a cancellation either. It sees that "
    "a request was closed, which some clients do, and Firedoor does not: by the specification that is no cancellation (2025-11-25, "
    "basic/transports)",
}


# The transport of before 2025-03-26, of the era with sessions; some servers speak the other over it as well.
OLD = "sse"
BOTH_OVER_OLD = ("python-2",)
NEW = ("stdio", "http")
# These have tasks, as clients and as servers.
TASKS = {"legacy": ("typescript-1", "python-1"), "modern": ("rust-3",)}


def python_with(scratch, requirements):
    """A Python with these packages and no others."""
    home = scratch.home / requirements.stem
    python = home / "bin/python"
    for command in (["python3", "-m", "venv", home], [python, "-m", "pip", "install", "-q", "-r", requirements]):
        done = scratch.run(*command, timeout=600)
        if done.returncode:
            raise Missing(f"{command[-1]}: {done.stderr.strip()[-500:]}")
    return python


def programs(scratch):
    """The clients and the servers, with the eras and the transports that they know: name -> (eras, transports, command). Over HTTP+SSE
    Python's client takes no event above 1 MiB, and TypeScript's 2.x and Rust's servers do not speak it."""
    place, node = install(scratch)
    python = python_with(scratch, place / "python/requirements.txt")
    python_v1 = python_with(scratch, place / "python/requirements_v1.txt")
    rust = find_programs() / RUST
    if not rust.is_file():
        raise Missing(f"{RUST} is not beside our programs: run make conformance")
    both = ("modern", "legacy")
    finds_out = (*both, "auto")
    every = (*NEW, OLD)
    clients = {
        "typescript-1": (("legacy",), every, [node, place / "typescript/client_v1.mjs"]),
        "typescript-2": (finds_out, every, [node, place / "typescript/client.mjs"]),
        "python-1": (("legacy",), every, [python_v1, place / "python/client_v1.py"]),
        "python-2": (both, NEW, [python, place / "python/client.py"]),
        "rust-3": (both, NEW, [rust, "client"]),
    }
    servers = {
        "typescript-1": (("legacy",), every, [node, place / "typescript/server_v1.mjs"]),
        "typescript-2": (both, NEW, [node, place / "typescript/server.mjs"]),
        MODERN_ONLY: (("modern",), NEW, [node, place / "typescript/server.mjs", "--modern-only"]),
        "python-1": (("legacy",), every, [python_v1, place / "python/server_v1.py"]),
        "python-2": (both, every, [python, place / "python/server.py"]),
        "rust-3": (both, NEW, [rust, "server"]),
    }
    return clients, servers


def cells(clients, servers):
    """What is tried: (client, server, transport, era), whether the server refuses it, and both commands."""
    for client, (eras, speaks, look) in clients.items():
        for server, (known, offers, serve) in servers.items():
            for transport in (one for one in offers if one in speaks):
                there = known if transport != OLD or server in BOTH_OVER_OLD else ("legacy",)
                for era in eras:
                    # One that finds the era out is for servers of the older one: with others it is as it is without.
                    found = era in there or (era == "auto" and known == ("legacy",))
                    if found and server != MODERN_ONLY:
                        yield (client, server, transport, era), False, look, serve
                    elif not found and era != "auto":
                        yield (client, server, transport, era), True, look, serve


def look(scratch, client, era, *target):
    """What the client sees."""
    try:
        done = scratch.run(*client, era, *target, timeout=300)
    except subprocess.TimeoutExpired as late:
        return {"failed": f"not at its end within {late.timeout:.0f} s"}
    if done.returncode or not done.stdout.strip():
        return {"failed": f"exit {done.returncode}: {done.stderr.strip()[-1500:]}"}
    return json.loads(done.stdout.strip().split("\n")[-1])


@contextlib.contextmanager
def targets(scratch, server, name, transport):
    """How a client reaches the server direct, and how through Firedoor."""
    shim = ["--", scratch.bin / "firedoor-shim", "--entry", f"matrix/user/{name}"]
    if transport == "stdio":
        yield ["--", *server, "--stdio"], [*shim, "--", *server, "--stdio"]
        return
    with serving(scratch, scratch.home, *server, f"--{transport}") as url:
        # Firedoor finds out by itself that a server is of before 2025-03-26.
        yield ["--sse", url] if transport == OLD else [url], [*shim, "--url", url]


def is_right(key, seen, era):
    """Whether this is what has to be seen of a server of this era."""
    right = RIGHT.get(key)
    try:
        return bool((right[era] if isinstance(right, dict) else right)(seen))
    except (AttributeError, IndexError, KeyError, TypeError, ValueError):
        return False


def among(exceptions, cell, key):
    """Why this is an exception in this cell, or nothing."""
    for where, why in exceptions.items():
        if all(one in ("*", other) for one, other in zip(where, (*cell, key), strict=True)):
            return why
    return None


def looked_at(cell, refused):
    """What this client looks at."""
    client, server, _, era = cell
    if refused:
        return {"refused"}
    keys = set(RIGHT) - {"refused"}
    if not client.startswith("typescript"):
        keys -= {"capabilities", "cancelled"}
    if client != "typescript-2":
        keys.remove("version")
    if not {client, server} <= set(TASKS.get(era, ())):
        keys.remove("tasks")
    return keys


def compare(scratch, client, server, cell, refused):
    """Whether both see the same, and what is right; how much was looked at."""
    _, name, transport, era = cell
    server_era = "modern" if era == "modern" else "legacy"
    with targets(scratch, server, f"{name}-{transport}", transport) as (direct, through):
        seen, again = look(scratch, client, era, *direct), look(scratch, client, era, *through)
    if "failed" in seen or "failed" in again:
        for way, saw in (("direct", seen), ("through Firedoor", again)):
            print(f"    {way}: {saw.get('failed', 'came to its end')}")
        return False, 0
    wrong = 0
    for key in sorted(looked_at(cell, refused) | seen.keys() | again.keys()):
        one, other = seen.get(key), again.get(key)
        if among(MAY_DIFFER, cell, key):
            continue
        if one != other:
            print(f"    {key}: direct {written(one)[:400]}, through Firedoor {written(other)[:400]}")
            wrong += 1
        elif (right := is_right(key, one, server_era)) == bool(among(EXCEPTIONS, cell, key)):
            print(f"    {key}: {'an exception, and right' if right else 'not right'}: {written(one)[:400]}")
            wrong += 1
    return not wrong, len(seen)


def main():
    """Looks at each cell both ways."""
    as_ordinary_user(__file__, RUST)
    wanted = sys.argv[1:]
    right = tried = things = 0
    with Scratch() as scratch:
        for cell, refused, client, server in cells(*programs(scratch)):
            name = "{} client, {} server, {}, {}".format(*cell) + (", refused" if refused else "")
            if wanted and not any(part in name for part in wanted):
                continue
            same, looked = compare(scratch, client, server, cell, refused)
            print(f"  {name}: {'the same' if same else 'NOT the same'}", flush=True)
            tried, right, things = tried + 1, right + same, things + looked
        log = scratch.firedoor("log", "--json").stdout
    if "matrix/user/" not in log or "tools/call" not in log:
        raise Missing("nothing went through Firedoor")
    print(f"{tried} pairs of an SDK's client and server, {things} things looked at: {right} pairs the same")
    return 0 if right == tried and tried else 1


if __name__ == "__main__":
    run(main)
