"""A server of the era with sessions on the official Python SDK, 1.x, with tasks (2025-11-25), which the SDK's 2.x has not.
   server_v1.py --stdio | --http | --sse"""

import anyio
from mcp import types
from mcp.server.fastmcp import Context, FastMCP
from mcp.shared.experimental.tasks.helpers import is_terminal
from offered import offer, serve
from pydantic import BaseModel

LATER = types.Tool(
    name="later",
    description="Takes its time, as a task",
    inputSchema={"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]},
    execution=types.ToolExecution(taskSupport=types.TASK_REQUIRED),
)
# In seconds: a task that nobody cancels ends by itself.
LONGEST = 20


class Server(FastMCP):
    """The SDK's, which knows tasks at its lower level only."""

    async def list_tools(self):
        return [*await super().list_tools(), LATER]

    async def call_tool(self, name, arguments):
        if name != LATER.name:
            return await super().call_tool(name, arguments)
        request = self._mcp_server.request_context.experimental
        request.validate_for_tool(LATER)

        async def work(task):
            with anyio.move_on_after(LONGEST if arguments["text"] == "never" else 0.15):
                while not is_terminal((await support.store.get_task(task.task_id)).status):
                    await anyio.sleep(0.05)
                # So that the SDK knows, too, that it is over.
                await task.update_status("given up")
            return types.CallToolResult(content=[types.TextContent(type="text", text=f"later: {arguments['text']}")])

        return await request.run_task(work)


class Name(BaseModel):
    """What is asked for."""

    name: str


server = Server(name="matrix-python-1", sse_path="/mcp")
support = server._mcp_server.experimental.enable_tasks()
offer(server, Context)


@server.tool(structured_output=False)
async def ask(question: str, ctx: Context) -> str:
    """Asks the user"""
    answer = await ctx.elicit(question, Name)
    return f"{answer.action} {answer.data.name}"


@server.tool(structured_output=False)
async def model(prompt: str, ctx: Context) -> str:
    """Asks the model"""
    messages = [types.SamplingMessage(role="user", content=types.TextContent(type="text", text=prompt))]
    answer = await ctx.session.create_message(messages=messages, max_tokens=10)
    return f"the model: {answer.content.text}"


@server.tool(structured_output=False)
async def change(ctx: Context) -> str:
    """Says that the tools changed"""
    await ctx.session.send_tool_list_changed()
    return "changed"


serve(server, server.sse_app)
