"""What the official Python SDK's client, 1.x, sees of a server, as JSON. It knows the era with sessions only.
   client_v1.py legacy URL | client_v1.py legacy --sse URL | client_v1.py legacy -- COMMAND…"""

import datetime
import json

import anyio
from look import failed, look, plain, show, target
from mcp import ClientSession, StdioServerParameters, types
from mcp.client.sse import sse_client
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client
from pydantic import AnyUrl


class Sdk:
    """This version's ways."""

    uri = staticmethod(AnyUrl)

    def __init__(self, session, hello, changed):
        self.session, self.hello, self.changed = session, hello, changed

    def server(self):
        """Who the server says that it is."""
        return plain(self.hello.serverInfo)

    async def changes(self, call):
        """Whether a change of the tools is heard of."""
        await call("change")
        with anyio.move_on_after(3):
            await self.changed.wait()
        return self.changed.is_set()

    async def give_up(self, call):
        """Gives a call up. This version does not say so by itself, nor does it give its requests' numbers away."""
        async with anyio.create_task_group() as group:
            number = self.session._request_id
            group.start_soon(failed, call("wait"))
            await anyio.sleep(0.2)
            params = types.CancelledNotificationParams(requestId=number, reason="enough")
            await self.session.send_notification(types.ClientNotification(types.CancelledNotification(params=params)))
            # Whether an answer still comes is the server's affair.
            await anyio.sleep(0.2)
            group.cancel_scope.cancel()


async def tasks(session):
    """What a server with tasks does with them. Their names and times differ from run to run."""

    def state(task):
        """A task but for its name and its times."""
        shown = plain(task)
        named = bool(shown.pop("taskId"))
        return {key: value for key, value in shown.items() if key not in ("createdAt", "lastUpdatedAt")} | {"named": named}

    able = session.experimental
    task = (await able.call_tool_as_task("later", {"text": "é🚀"})).task
    never = (await able.call_tool_as_task("later", {"text": "never"})).task
    polled = [one.status async for one in able.poll_task(task.taskId)]

    async def result():
        answer = plain(await able.get_task_result(task.taskId, types.CallToolResult))
        return json.loads(json.dumps(answer).replace(task.taskId, "its name"))

    return {
        "created": state(task),
        "kinds": ["taskCreated", *["taskStatus"][: len(polled)], "result"],
        "result": await result(),
        "again": await result(),
        "state": state(await able.get_task(task.taskId)),
        "cancelled": state(await able.cancel_task(never.taskId)),
        "listed": sorted(one.status for one in (await able.list_tasks()).tasks),
        "unknown": await failed(able.get_task("none")),
        "without": await failed(session.call_tool("later", {"text": "x"})),
    }


async def looks(seen, end):
    """Looks at one server."""
    _era, transport, where = target()
    changed = anyio.Event()

    async def sampling(_context, _params):
        return types.CreateMessageResult(role="assistant", model="m", content=types.TextContent(type="text", text="said"))

    async def elicitation(_context, _params):
        return types.ElicitResult(action="accept", content={"name": "Ada"})

    async def notified(message):
        if isinstance(message, types.ServerNotification) and isinstance(message.root, types.ToolListChangedNotification):
            changed.set()

    there = {
        "stdio": lambda: stdio_client(StdioServerParameters(**where)),
        "sse": lambda: sse_client(where),
        "http": lambda: streamable_http_client(where),
    }[transport]()
    async with (
        there as (reader, writer, *_),
        ClientSession(
            reader,
            writer,
            datetime.timedelta(seconds=120),
            sampling_callback=sampling,
            elicitation_callback=elicitation,
            message_handler=notified,
        ) as session,
    ):
        hello = await session.initialize()
        await look(session, Sdk(session, hello, changed), seen)
        if hello.capabilities.tasks:
            seen["tasks"] = await tasks(session)
        end()


show(looks)
