"""A server of both eras on the official Python SDK, 2.x.   server.py --stdio | --http | --sse

Over HTTP it prints its port, also with the transport of before 2025-03-26 (HTTP+SSE). What it offers is what the matrix looks at, the same in each language."""

import logging
import socket
import sys
import threading
import warnings

import anyio
import mcp_types as types
import uvicorn
from mcp.server.mcpserver import Context, MCPServer
from pydantic import BaseModel

# Errors that are meant to be, and what is deprecated and looked at all the same.
logging.disable()
warnings.simplefilter("ignore")
server = MCPServer(name="matrix-python", version="1.0.0")
count = {"given up": 0}


class Name(BaseModel):
    """What is asked for."""

    name: str


def modern(ctx):
    """Whether the request came in the era without sessions."""
    return ctx.protocol_version >= "2026-07-28"


def needed(key, request):
    """The result that asks the client."""
    return types.InputRequiredResult(input_requests={key: request}, request_state=f'state of {key} "é🚀"')


@server.tool(structured_output=False)
async def echo(text: str) -> str:
    """Says it again"""
    return text


@server.tool(structured_output=False)
async def blob(bytes: int) -> str:
    """Many letters"""
    return "x" * bytes


@server.tool(structured_output=False)
async def fail() -> str:
    """Fails"""
    raise ValueError("This tool fails")


@server.tool(structured_output=False)
async def steps(ctx: Context) -> str:
    """Says how far it is"""
    for progress in (1, 2, 3):
        await ctx.report_progress(progress, 3)
        await anyio.sleep(0.05)
    return "done"


@server.tool(structured_output=False)
async def ask(question: str, ctx: Context) -> str | types.InputRequiredResult:
    """Asks the user"""
    if not modern(ctx):
        answer = await ctx.elicit(question, Name)
        return f"{answer.action} {answer.data.name}"
    if answer := (ctx.input_responses or {}).get("name"):
        return f"{answer.action} {answer.content['name']}"
    schema = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
    form = types.ElicitRequestFormParams(message=question, requested_schema=schema)
    return needed("name", types.ElicitRequest(params=form))


@server.tool(structured_output=False)
async def model(prompt: str, ctx: Context) -> str | types.InputRequiredResult:
    """Asks the model"""
    messages = [types.SamplingMessage(role="user", content=types.TextContent(type="text", text=prompt))]
    if not modern(ctx):
        answer = await ctx.session.create_message(messages=messages, max_tokens=10)
        return f"the model: {answer.content.text}"
    if answer := (ctx.input_responses or {}).get("said"):
        return f"the model: {answer.content.text}"
    return needed("said", types.CreateMessageRequest(params=types.CreateMessageRequestParams(messages=messages, max_tokens=10)))


@server.tool(structured_output=False)
async def wait() -> str:
    """Waits until it is given up"""
    try:
        await anyio.sleep_forever()
    finally:
        count["given up"] += 1


@server.tool(structured_output=False)
async def given_up() -> str:
    """How many were given up"""
    return str(count["given up"])


@server.tool(structured_output=False)
async def change(ctx: Context) -> str:
    """Says that the tools changed"""
    if modern(ctx):
        await ctx.notify_tools_changed()
    else:
        await ctx.session.send_tool_list_changed()
    return "changed"


@server.resource("matrix://notes", mime_type="text/plain")
def notes() -> str:
    """Notes"""
    return "A text with é and 🚀"


@server.resource("matrix://rows/{id}")
def row(id: str) -> str:
    """A row"""
    return f"row {id}"


@server.prompt()
def greet(name: str) -> str:
    """Greets"""
    return f"Greet {name}"


if sys.argv[1] == "--stdio":
    server.run("stdio")
else:
    listening = socket.create_server(("127.0.0.1", 0))
    print(listening.getsockname()[1], flush=True)
    app = server.sse_app(sse_path="/mcp") if sys.argv[1] == "--sse" else server.streamable_http_app()
    # By itself it closes connections after five seconds, perhaps while a client writes to one.
    http = uvicorn.Server(uvicorn.Config(app, log_level="error", timeout_keep_alive=120))

    def end():
        """Ends with stdin."""
        sys.stdin.read()
        http.should_exit = http.force_exit = True

    threading.Thread(target=end, daemon=True).start()
    http.run(sockets=[listening])
