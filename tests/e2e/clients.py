"""Real MCP clients, told what is needed of them: how they are installed, configured, and asked what they see.

None needs a login or calls a model. Facts were observed with the pinned versions on Linux.
"""

import json
import re
import subprocess
import threading

ANSI = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
CONNECTED = "connected"


class Unusable(Exception):
    """The client could not be asked."""


def statuses(text, pattern):
    """Server -> status in lower case, from the lines of a listing."""
    return {name: status.strip().lower() for name, status in re.findall(pattern, ANSI.sub("", text), re.MULTILINE)}


class ClaudeCode:
    """`claude mcp list` starts every server of the user and asks for its tools. It writes its file anew each time."""

    id, package, program = "claude-code", "@anthropic-ai/claude-code@2.1.197", "claude"
    file, rewritten = ".claude.json", True
    keeps_from_servers = ()
    env = {"DISABLE_AUTOUPDATER": "1", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1"}

    def config(self, servers):
        """With other settings around the servers."""
        entries = {name: {"type": "stdio", "command": line[0], "args": line[1:]} for name, line in servers.items()}
        return json.dumps({"numStartups": 3, "mcpServers": entries, "theme": "dark"}, indent=2)

    def servers(self, text):
        """What the file says, whatever its form."""
        return json.loads(text)["mcpServers"]

    def see(self, scratch, program):
        """Server -> what the client says about it."""
        done = scratch.run(program, "mcp", "list", timeout=120)
        return statuses(done.stdout, r"^([\w-]+): .* - (?:\W+ )?(.+)$")


class GeminiCli:
    """`gemini mcp list` connects to every server; it prints to stderr. It starts none in a folder that is not trusted."""

    id, package, program = "gemini-cli", "@google/gemini-cli@0.61.0", "gemini"
    file, rewritten = ".gemini/settings.json", False
    keeps_from_servers = ()
    env = {"GEMINI_CLI_TRUST_WORKSPACE": "true"}

    def config(self, servers):
        """With comments, which it reads, and without trailing commas, which it does not."""
        entries = ",\n".join(
            f'    "{name}": {{"command": {json.dumps(line[0])}, // its program\n'
            f'      "args": {json.dumps(line[1:])}, "env": {{"REGION": "$HOME"}}}}'
            for name, line in servers.items()
        )
        return f'{{\n  // by hand\n  "general": {{"vimMode": true}},\n  "mcpServers": {{\n{entries}\n  }}\n}}\n'

    def see(self, scratch, program):
        """Server -> what the client says about it."""
        done = scratch.run(program, "mcp", "list", timeout=120)
        return statuses(done.stdout + done.stderr, r"^\W*([\w-]+): .* \(stdio\) - (.+)$")


class Codex:
    """`codex app-server` speaks JSON-RPC, a line each, and lists what each server offers."""

    id, package, program = "codex", "@openai/codex@0.169.0", "codex"
    file, rewritten = ".codex/config.toml", False
    env = {}
    # It keeps the XDG variables from its servers: the shim then looks for the engine below the home.
    keeps_from_servers = ("XDG_",)

    def config(self, servers):
        """One server under a header, with a comment in its array, the others with dotted keys."""
        out = ['# by hand\nmodel = "gpt-5"  # any\n']
        header = []
        for number, (name, line) in enumerate(servers.items()):
            # Of JSON's strings these are TOML's too.
            args = ", # and\n  ".join(json.dumps(word) for word in line[1:])
            if number:
                out.append(f"mcp_servers.{name}.command = '{line[0]}'\nmcp_servers.{name}.args = [ {args} ]\n")
            else:
                header.append(f"[mcp_servers.{name}]\ncommand = '{line[0]}'\nargs = [\n  {args},\n]\n")
        return "".join(out + header)

    def see(self, scratch, program):
        """Server -> the names of its tools."""
        with scratch.start(program, "app-server", stdin=-1, stdout=-1, stderr=-3, text=True) as process:
            # A server that does not answer must not hold the test: the client ends with its watch.
            watch = threading.Timer(120, process.kill)
            watch.start()
            try:
                self.ask(process, 1, "initialize", {"clientInfo": {"name": "firedoor-e2e", "version": "1"}})
                self.send(process, {"method": "initialized"})
                answer = self.ask(process, 2, "mcpServerStatus/list", {})
                # It ends by itself, and its servers with it, when there is nothing more to come.
                process.stdin.close()
                process.stdout.read()
                process.wait()
            finally:
                watch.cancel()
                process.kill()
        return {server["name"]: " ".join([CONNECTED, *sorted(server["tools"])]) for server in answer["data"] if server["tools"]}

    def send(self, process, message):
        """One line."""
        process.stdin.write(json.dumps(message) + "\n")
        process.stdin.flush()

    def ask(self, process, number, method, params):
        """The result of a request; what the client tells in between does not matter."""
        try:
            self.send(process, {"id": number, "method": method, "params": params})
        except BrokenPipeError:
            raise Unusable(f"it ended before {method}") from None
        for line in process.stdout:
            message = json.loads(line)
            if message.get("id") == number and "method" not in message:
                if "result" not in message:
                    raise Unusable(f"{method}: {message.get('error')}")
                return message["result"]
        raise Unusable(f"it ended before it answered {method}")


class Opencode:
    """`opencode mcp list` connects to every server. A command is an array. It adds $schema to a file that has none."""

    id, package, program = "opencode", "opencode-ai@1.18.33", "opencode"
    file, rewritten = ".config/opencode/opencode.jsonc", False
    keeps_from_servers = ()
    env = {"OPENCODE_DISABLE_AUTOUPDATE": "1"}

    def config(self, servers):
        """With comments and trailing commas."""
        entries = "".join(
            f'    "{name}": {{ "type": "local", "command": {json.dumps(line)}, }}, // {name}\n'
            for name, line in servers.items()
        )
        return f'{{\n  "$schema": "https://opencode.ai/config.json",\n  "mcp": {{\n{entries}  }},\n}}\n'

    def see(self, scratch, program):
        """Server -> what the client says about it."""
        done = scratch.run(program, "mcp", "list", timeout=120)
        return statuses(done.stdout + done.stderr, r"^\W*([\w-]+) +(connected|disabled|failed.*)$")


class FactoryDroid:
    """`droid mcp list` connects to every server."""

    id, package, program = "factory-droid", "droid@0.215.0", "droid"
    file, rewritten = ".factory/mcp.json", False
    keeps_from_servers = ()
    env = {}

    def config(self, servers):
        """With a comment, which it reads."""
        entries = {name: {"type": "stdio", "command": line[0], "args": line[1:]} for name, line in servers.items()}
        return "// by hand\n" + json.dumps({"mcpServers": entries}, indent="\t") + "\n"

    def see(self, scratch, program):
        """Server -> what the client says about it."""
        done = scratch.run(program, "mcp", "list", timeout=120)
        return statuses(done.stdout, r"^ *([\w-]+) +stdio +(\w+)")


class QwenCode:
    """`qwen mcp list` connects to every server. It adds $version to its file and indents it anew."""

    id, package, program = "qwen-code", "@qwen-code/qwen-code@0.15.10", "qwen"
    file, rewritten = ".qwen/settings.json", True
    keeps_from_servers = ()
    env = {}

    def config(self, servers):
        """In one line, as it never writes it."""
        return json.dumps({"mcpServers": {name: {"command": line[0], "args": line[1:]} for name, line in servers.items()}})

    def servers(self, text):
        """What the file says, whatever its form."""
        return json.loads(text)["mcpServers"]

    def see(self, scratch, program):
        """Server -> what the client says about it."""
        done = scratch.run(program, "mcp", "list", timeout=120)
        return statuses(done.stdout + done.stderr, r"^\W*([\w-]+): .* \(stdio\) - (.+)$")


ALL = (ClaudeCode(), GeminiCli(), Codex(), Opencode(), FactoryDroid(), QwenCode())
# These must run for the test to pass.
NEEDED = ("claude-code", "gemini-cli")


def install(client, directory):
    """Installs a client from the npm registry; its program. Raises Unusable with the reason."""
    directory.mkdir(parents=True)
    (directory / "package.json").write_text('{"private":true}')
    command = ["npm", "install", "--no-fund", "--no-audit", "--no-progress", "--prefix", str(directory), client.package]
    try:
        done = subprocess.run(command, cwd=directory, capture_output=True, text=True, timeout=600, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Unusable(f"npm install: {error}") from None
    program = directory / "node_modules" / ".bin" / client.program
    if done.returncode or not program.exists():
        reason = [line for line in done.stderr.splitlines() if "ERR" in line or "error" in line]
        raise Unusable(f"npm install {client.package}: {' '.join(reason[:2]) or f'exit {done.returncode}'}")
    return program
