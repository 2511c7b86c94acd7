"""What the official Python SDK's client, 2.x, sees of a server, as JSON.   client.py ERA URL | client.py ERA -- COMMAND…"""

import anyio
import mcp_types as types
from look import LARGE, look, plain, show, target
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client


class Sdk:
    """This version's ways."""

    def __init__(self, client, era, changed):
        self.client, self.era, self.changed = client, era, changed

    def server(self):
        """Who the server says that it is."""
        return plain(self.client.server_info) if self.client.server_info else None

    @staticmethod
    def uri(text):
        """A resource's address."""
        return text

    async def changes(self, call):
        """Whether a change of the tools is heard of."""
        if self.era == "modern":
            async with self.client.listen(tools_list_changed=True) as events:
                await call("change")
                with anyio.move_on_after(3):
                    async for _event in events:
                        self.changed.set()
                        break
        else:
            await call("change")
            with anyio.move_on_after(3):
                await self.changed.wait()
        return self.changed.is_set()

    @staticmethod
    async def give_up(call):
        """Gives a call up."""
        with anyio.move_on_after(0.2):
            await call("wait")


async def looks(seen, end):
    """Looks at one server."""
    era, transport, where = target()
    # By itself this client takes no event above 1 MiB.
    there = StdioServerParameters(**where) if transport == "stdio" else streamable_http_client(where, max_sse_event_size=2 * LARGE)
    changed = anyio.Event()

    async def sampling(_context, _params):
        return types.CreateMessageResult(role="assistant", model="m", content=types.TextContent(type="text", text="said"))

    async def elicitation(_context, _params):
        return types.ElicitResult(action="accept", content={"name": "Ada"})

    async def notified(message):
        if isinstance(message, types.ToolListChangedNotification):
            changed.set()

    async with Client(
        there,
        mode="2026-07-28" if era == "modern" else "legacy",
        sampling_callback=sampling,
        elicitation_callback=elicitation,
        message_handler=notified,
        read_timeout_seconds=120,
        cache=None,
    ) as client:
        await look(client, Sdk(client, era, changed), seen)
        end()


show(looks)
