"""What both servers on the official Python SDK offer, the same in each language, and how they are served.

Over HTTP they print their port, also with the transport of before 2025-03-26 (HTTP+SSE)."""

import logging
import socket
import sys
import threading
import warnings

import anyio
import uvicorn

# Errors that are meant to be, and what is deprecated and looked at all the same.
logging.disable()
warnings.simplefilter("ignore")


def offer(server, context):
    """Gives a server what needs nothing of one version of the SDK but the type of a request's context."""
    count = {"given up": 0}

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
    async def steps(ctx: context) -> str:
        """Says how far it is"""
        for progress in (1, 2, 3):
            await ctx.report_progress(progress, 3)
            await anyio.sleep(0.05)
        return "done"

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


def serve(server, old):
    """Serves as the command line says; `old` makes the application for HTTP+SSE."""
    if sys.argv[1] == "--stdio":
        server.run("stdio")
        return
    listening = socket.create_server(("127.0.0.1", 0))
    print(listening.getsockname()[1], flush=True)
    app = old() if sys.argv[1] == "--sse" else server.streamable_http_app()
    # By itself it closes connections after five seconds, perhaps while a client writes to one.
    http = uvicorn.Server(uvicorn.Config(app, log_level="error", timeout_keep_alive=120))

    def end():
        """Ends with stdin."""
        sys.stdin.read()
        http.should_exit = http.force_exit = True

    threading.Thread(target=end, daemon=True).start()
    http.run(sockets=[listening])
