"""What the official Python SDK's client, 2.x, sees of a server, as JSON.   client.py ERA URL | client.py ERA -- COMMAND…"""

import json
import os
import sys

import anyio
import mcp_types as types
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

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


def innermost(error):
    """What went wrong, out of the groups that the SDK puts it into."""
    while isinstance(error, ExceptionGroup):
        error = error.exceptions[0]
    return f"{type(error).__name__} {error}"


async def look(era, target, seen):
    """Looks at one server."""
    changes = anyio.Event()

    async def sampling(_context, _params):
        return types.CreateMessageResult(role="assistant", model="m", content=types.TextContent(type="text", text="said"))

    async def elicitation(_context, _params):
        return types.ElicitResult(action="accept", content={"name": "Ada"})

    async def notified(message):
        if isinstance(message, types.ToolListChangedNotification):
            changes.set()

    async with Client(
        target,
        mode="2026-07-28" if era == "modern" else "legacy",
        sampling_callback=sampling,
        elicitation_callback=elicitation,
        message_handler=notified,
        read_timeout_seconds=120,
        cache=None,
    ) as client:

        async def call(name, **arguments):
            return await client.call_tool(name, arguments)

        async def said(name):
            return (await call(name)).content[0].text

        server = plain(client.server_info) if client.server_info else None
        seen["tools"] = plain(await client.list_tools())
        seen["server"] = server
        seen["prompts"] = [plain(await client.list_prompts()), plain(await client.get_prompt("greet", {"name": "Ada"}))]
        seen["resources"] = [
            plain(await client.list_resources()),
            plain(await client.list_resource_templates()),
            plain(await client.read_resource("matrix://notes")),
            plain(await client.read_resource("matrix://rows/7")),
        ]
        seen["result"] = plain(await call("echo", text='é🚀 \u2028 "'))
        seen["tool_error"] = await failed(call("fail"))
        seen["errors"] = [await failed(call("no_such_tool")), await failed(client.read_resource("matrix://none"))]
        progress = []

        async def stepped(done, total, _message):
            progress.append([done, total])

        await client.call_tool("steps", {}, progress_callback=stepped)
        seen["progress"] = progress
        seen["elicitation"] = await failed(call("ask", question="Who?"))
        seen["sampling"] = await failed(call("model", prompt="p"))
        if era == "modern":
            async with client.listen(tools_list_changed=True) as events:
                await call("change")
                with anyio.move_on_after(3):
                    async for _event in events:
                        changes.set()
                        break
        else:
            await call("change")
            with anyio.move_on_after(3):
                await changes.wait()
        seen["changes"] = changes.is_set()
        before = int(await said("given_up"))
        with anyio.move_on_after(0.2):
            await call("wait")
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


if __name__ == "__main__":
    era, where, *command = sys.argv[1:]
    if where == "--":
        where = StdioServerParameters(command=command[0], args=command[1:], env=dict(os.environ))
    else:
        # By itself this client takes no event above 1 MiB.
        where = streamable_http_client(where, max_sse_event_size=2 * LARGE)
    seen = {}
    try:
        anyio.run(look, era, where, seen)
    except Exception as error:
        # Told which revision to speak, this client finds out with its first request that the server does not.
        if seen:
            raise
        seen["refused"] = innermost(error)
    print(json.dumps(seen))
