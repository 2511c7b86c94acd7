"""What both clients on the official Python SDK look at."""

import json
import os
import sys

import anyio

AT_ONCE = 1000
LARGE = 20 << 20


def plain(answer):
    """A result of the SDK as JSON."""
    return answer.model_dump(mode="json", by_alias=True, exclude_none=True)


async def failed(what):
    """The answer, or what went wrong."""
    try:
        return plain(await what)
    except Exception as error:  # what the SDK raises is what is compared
        return f"{type(error).__name__} {error}"


async def look(client, sdk, seen):
    """Looks at one server. `sdk` has what differs between the SDK's versions."""

    async def call(name, **arguments):
        return await client.call_tool(name, arguments)

    async def said(name):
        return (await call(name)).content[0].text

    async def read(uri):
        return await client.read_resource(sdk.uri(uri))

    seen["tools"] = plain(await client.list_tools())
    seen["server"] = sdk.server()
    seen["prompts"] = [plain(await client.list_prompts()), plain(await client.get_prompt("greet", {"name": "Ada"}))]
    seen["resources"] = [
        plain(await client.list_resources()),
        plain(await client.list_resource_templates()),
        plain(await read("matrix://notes")),
        plain(await read("matrix://rows/7")),
    ]
    seen["result"] = plain(await call("echo", text='é🚀 \u2028 "'))
    seen["tool_error"] = await failed(call("fail"))
    seen["errors"] = [await failed(call("no_such_tool")), await failed(read("matrix://none"))]
    progress = []

    async def stepped(done, total, _message):
        progress.append([done, total])

    await client.call_tool("steps", {}, progress_callback=stepped)
    seen["progress"] = progress
    seen["elicitation"] = await failed(call("ask", question="Who?"))
    seen["sampling"] = await failed(call("model", prompt="p"))
    seen["changes"] = await sdk.changes(call)
    before = int(await said("given_up"))
    await sdk.give_up(call)
    for _ in range(300):
        if int(await said("given_up")) > before:
            break
        await anyio.sleep(0.01)
    seen["given_up"] = int(await said("given_up")) - before
    text = (await call("blob", bytes=LARGE)).content[0].text
    seen["large"] = [len(text), text == "x" * LARGE]
    right = []

    async def one(number):
        answer = (await call("echo", text=f"{number} é🚀")).content[0].text
        right.append(answer == f"{number} é🚀")

    async with anyio.create_task_group() as group:
        for number in range(AT_ONCE):
            group.start_soon(one, number)
    seen["at_once"] = right.count(True)


def innermost(error):
    """What went wrong, out of the groups that the SDK puts it into."""
    while isinstance(error, ExceptionGroup):
        error = error.exceptions[0]
    return f"{type(error).__name__} {error}"


def target():
    """Where the command line points: the era, and either a process to start or a URL, which may be of HTTP+SSE."""
    era, where, *rest = sys.argv[1:]
    if where == "--":
        return era, "stdio", {"command": rest[0], "args": rest[1:], "env": dict(os.environ)}
    return (era, "sse", rest[0]) if where == "--sse" else (era, "http", where)


def show(looks):
    """Runs `looks`, which puts what it sees into the first and calls the second when it has seen all; or says that the server
    refuses this client."""
    seen, shown = {}, []

    def end():
        shown.append(print(json.dumps(seen), flush=True))

    try:
        anyio.run(looks, seen, end)
    except Exception as error:
        # Told which revision to speak, the client finds out with its first request that the server does not.
        if not seen:
            print(json.dumps({"refused": innermost(error)}))
        # A message that comes while it leaves makes 1.x fail.
        elif not shown:
            raise
