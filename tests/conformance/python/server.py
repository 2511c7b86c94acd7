"""A server of both eras on the official Python SDK, 2.x.   server.py --stdio | --http | --sse"""

import mcp_types as types
from mcp.server.mcpserver import Context, MCPServer
from offered import offer, serve
from pydantic import BaseModel

server = MCPServer(name="matrix-python", version="1.0.0")
offer(server, Context)


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
async def change(ctx: Context) -> str:
    """Says that the tools changed"""
    if modern(ctx):
        await ctx.notify_tools_changed()
    else:
        await ctx.session.send_tool_list_changed()
    return "changed"


serve(server, lambda: server.sse_app(sse_path="/mcp"))
