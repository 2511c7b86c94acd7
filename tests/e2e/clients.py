"""Real MCP clients, told what is needed of them: how they are installed, configured, and asked what they see.

None needs a login or a model but the one here. Facts were observed with the pinned versions on Linux.
"""

import functools
import http.server
import json
import re
import shutil
import subprocess
import threading

ANSI = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
CONNECTED = "connected"
# What the servers of the test offer.
TOOLS = {"echo": ("blob", "echo", "sleep", "whereami"), "files": ("list_directory", "read_file")}


class Unusable(Exception):
    """The client could not be asked."""


def statuses(text, pattern):
    """Server -> status in lower case, from the lines of a listing."""
    return {name: status.strip().lower() for name, status in re.findall(pattern, ANSI.sub("", text), re.MULTILINE)}


class Model(http.server.BaseHTTPRequestHandler):
    """A model that says "ok" and remembers the tools that it was last offered, for clients that list them nowhere else."""

    offered = frozenset()

    @classmethod
    @functools.cache
    def url(cls):
        """Where it is, from the first look on. It ends with the test."""
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), cls)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        return f"http://127.0.0.1:{server.server_port}/v1"

    def do_POST(self):
        """A streamed chat completion."""
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        Model.offered = frozenset(tool["function"]["name"] for tool in asked.get("tools", []))
        part = {"id": "1", "object": "chat.completion.chunk", "created": 0, "model": "fake"}
        said = {"index": 0, "delta": {"role": "assistant", "content": "ok"}, "finish_reason": None}
        end = {"index": 0, "delta": {}, "finish_reason": "stop"}
        parts = [json.dumps({**part, "choices": [choice]}) for choice in (said, end)]
        body = "".join(f"data: {one}\n\n" for one in (*parts, "[DONE]")).encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        """Nothing."""

    @classmethod
    def asked_by(cls, scratch, *command, tool):
        """Server -> its tools, if the client offered the model all of them when it was started so."""
        Model.offered = frozenset()
        done = scratch.run(*command, timeout=120)
        if not Model.offered:
            raise Unusable(f"it asked no model: exit {done.returncode}: {done.stderr[-200:]}")
        whole = {name: tools for name, tools in TOOLS.items() if all(tool(name, one) in Model.offered for one in tools)}
        return {name: " ".join([CONNECTED, *tools]) for name, tools in whole.items()}


class Client:
    """What most of them have in common: `mcp list` starts every server and says a line about each."""

    # Whether it writes its file anew.
    rewritten = False
    # Directories below the home that Firedoor is told of.
    projects = ()
    # Whether its servers stand in a file that may be somebody else's: Firedoor starts those only confined.
    brought = False
    keeps_from_servers = ()
    env = {}
    # Name and state in a line of its list.
    line = r"^\W*([\w-]+): .* \(stdio\) - (.+)$"

    def entries(self, servers):
        """As most of them write them."""
        return {name: {"command": line[0], "args": line[1:]} for name, line in servers.items()}

    def written(self, servers, form, between=""):
        """By hand: `form` has places for the name, the command and the arguments."""
        return between.join(form % (name, json.dumps(line[0]), json.dumps(line[1:])) for name, line in servers.items())

    def prepare(self, scratch, _program, servers):
        """Writes the client's files; those with servers in them."""
        return [scratch.write(self.file, self.config(servers))]

    def servers(self, text):
        """What a file in strict JSON says."""
        return json.loads(text)["mcpServers"]

    def see(self, scratch, program):
        """Server -> what the client says about it."""
        done = scratch.run(program, "mcp", "list", timeout=120)
        return statuses(done.stdout + done.stderr, self.line)


class ClaudeCode(Client):
    """`claude mcp list` starts every server of the user and asks for its tools. It writes its file anew each time."""

    id, package, program = "claude-code", "@anthropic-ai/claude-code@2.1.197", "claude"
    file, rewritten = ".claude.json", True
    env = {"DISABLE_AUTOUPDATER": "1", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1"}
    line = r"^([\w-]+): .* - (?:\W+ )?(.+)$"

    def config(self, servers):
        """With other settings around the servers."""
        entries = {name: {"type": "stdio", **entry} for name, entry in self.entries(servers).items()}
        return json.dumps({"numStartups": 3, "mcpServers": entries, "theme": "dark"}, indent=2)


class GeminiCli(Client):
    """`gemini mcp list` connects to every server; it prints to stderr. It starts none in a folder that is not trusted."""

    id, package, program = "gemini-cli", "@google/gemini-cli@0.61.0", "gemini"
    file = ".gemini/settings.json"
    env = {"GEMINI_CLI_TRUST_WORKSPACE": "true"}

    def config(self, servers):
        """With comments, which it reads, and without trailing commas, which it does not."""
        form = '    "%s": {"command": %s, // its program\n      "args": %s, "env": {"REGION": "$HOME"}}'
        entries = self.written(servers, form, ",\n")
        return f'{{\n  // by hand\n  "general": {{"vimMode": true}},\n  "mcpServers": {{\n{entries}\n  }}\n}}\n'


class Codex(Client):
    """`codex app-server` speaks JSON-RPC, a line each, and lists what each server offers."""

    id, package, program = "codex", "@openai/codex@0.169.0", "codex"
    file = ".codex/config.toml"
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


class Opencode(Client):
    """`opencode mcp list` connects to every server. A command is an array. It adds $schema to a file that has none."""

    id, package, program = "opencode", "opencode-ai@1.18.33", "opencode"
    file = ".config/opencode/opencode.jsonc"
    env = {"OPENCODE_DISABLE_AUTOUPDATE": "1"}
    line = r"^\W*([\w-]+) +(connected|disabled|failed.*)$"

    def config(self, servers):
        """With comments and trailing commas."""
        entries = "".join(
            f'    "{name}": {{ "type": "local", "command": {json.dumps(line)}, }}, // {name}\n'
            for name, line in servers.items()
        )
        return f'{{\n  "$schema": "https://opencode.ai/config.json",\n  "mcp": {{\n{entries}  }},\n}}\n'


class FactoryDroid(Client):
    """`droid mcp list` connects to every server."""

    id, package, program = "factory-droid", "droid@0.215.0", "droid"
    file = ".factory/mcp.json"
    line = r"^ *([\w-]+) +stdio +(\w+)"

    def config(self, servers):
        """With a comment, which it reads."""
        entries = {name: {"type": "stdio", **entry} for name, entry in self.entries(servers).items()}
        return "// by hand\n" + json.dumps({"mcpServers": entries}, indent="\t") + "\n"


class QwenCode(Client):
    """`qwen mcp list` connects to every server. It adds $version to its file and indents it anew."""

    id, package, program = "qwen-code", "@qwen-code/qwen-code@0.15.10", "qwen"
    file, rewritten = ".qwen/settings.json", True

    def config(self, servers):
        """In one line, as it never writes it."""
        return json.dumps({"mcpServers": self.entries(servers)})


class CopilotCli(Client):
    """`copilot -p` connects to every server and offers its tools to the model."""

    id, package, program = "copilot-cli", "@github/copilot@1.0.102", "copilot"
    file = ".copilot/mcp-config.json"
    env = {"COPILOT_OFFLINE": "true", "COPILOT_MODEL": "fake", "COPILOT_AUTO_UPDATE": "false"}

    def config(self, servers):
        """With a comment and trailing commas, which it reads."""
        form = '    "%s": {"type": "local", "command": %s, // by hand\n      "args": %s, "tools": ["*"],},\n'
        entries = self.written(servers, form)
        return f'{{\n  "mcpServers": {{\n{entries}  }},\n}}\n'

    def see(self, scratch, program):
        """Server -> the names of its tools."""
        scratch.env["COPILOT_PROVIDER_BASE_URL"] = Model.url()
        command = (program, "-p", "hi", "--allow-all-tools")
        return Model.asked_by(scratch, *command, tool=lambda server, tool: f"{server}-{tool}")


class Continue(Client):
    """`cn -p` connects to every server and offers its tools to the model."""

    id, package, program = "continue", "@continuedev/cli@1.5.47", "cn"
    file = ".continue/config.yaml"
    env = {"CONTINUE_TELEMETRY_ENABLED": "0"}

    def config(self, servers):
        """A list, with a comment in it; arguments between brackets and on lines."""
        model = f"  - {{name: fake, provider: openai, model: fake, apiKey: none, apiBase: '{Model.url()}'}}"
        out = [f"name: test\nversion: 0.0.1\nschema: v1\nmodels:\n{model}\nmcpServers: # by hand\n"]
        for number, (name, line) in enumerate(servers.items()):
            lines = "".join(f"\n      - '{word}'" for word in line[1:])
            out.append(f"  - name: {name}\n    command: {line[0]}\n    args:{lines if number else ' ' + json.dumps(line[1:])}\n")
        return "".join(out)

    def see(self, scratch, program):
        """Server -> the names of its tools."""
        return Model.asked_by(scratch, program, "-p", "hi", tool=lambda _server, tool: tool)


class McpInspector(Client):
    """`mcp-inspector --cli` connects to one server of its catalog and lists its tools. It fills in defaults."""

    id, package, program = "mcp-inspector", "@modelcontextprotocol/inspector@2.12.0", "mcp-inspector"
    file = ".mcp-inspector/mcp.json"
    # It passes on what the SDK takes for safe.
    keeps_from_servers = ("XDG_",)
    env = {"MCP_INSPECTOR_SECRET_STORE": "memory"}
    options = ()

    def config(self, servers):
        """Strict JSON, indented."""
        return json.dumps({"mcpServers": self.entries(servers)}, indent=2) + "\n"

    def see(self, scratch, program):
        """Server -> the names of its tools."""
        seen = {}
        for name in TOOLS:
            command = (program, "--cli", *self.options, "--server", name, "--method", "tools/list")
            done = scratch.run(*command, timeout=120)
            try:
                tools = json.loads(done.stdout)["tools"]
            except (ValueError, KeyError):
                continue
            seen[name] = " ".join([CONNECTED, *sorted(tool["name"] for tool in tools)])
        return seen


class McpInspectorBefore(McpInspector):
    """Its older command line takes a "--" among a server's arguments for its own. It has no catalog."""

    brought = True
    package = "@modelcontextprotocol/inspector@0.15.0"
    file = "mcp.json"
    options = ("--config", "mcp.json")


class Plugins:
    """Servers that two plugins bring, installed from a repository by the client itself: one stands in a bare map, the other in
    the plugin's manifest."""

    rewritten = False
    # What the client is told, and which files have servers in them then.
    install = ()
    held = ()
    # What stands for the plugin's directory.
    root = None
    # Whether it reads servers in a manifest.
    manifests = True
    # Whether they stand in the marketplace's list instead, one as a map and one as a list of maps.
    in_list = False

    def prepare(self, scratch, program, servers):
        """Has the client install them; their files."""
        market = scratch.home / "market"
        listed = []
        for name, line in servers.items():
            plugin = f"market/plugins/{name}"
            if self.root:
                # The server is part of the plugin.
                script, *rest = line[1:]
                copied = shutil.copytree(scratch.servers, scratch.home / plugin / "server", dirs_exist_ok=True)
                line = [line[0], f"{self.root}/server/{(copied / script).name}", *rest]
            entry = self.entries({name: line})
            manifest = {"name": name, "version": "1.0.0", "description": name}
            listed.append({"name": name, "source": f"./plugins/{name}", "description": name})
            if self.in_list:
                listed[-1]["mcpServers"] = entry if name == "echo" else [entry]
                continue
            if name == "echo" or not self.manifests:
                scratch.write(f"{plugin}/.mcp.json", json.dumps(entry))
            else:
                manifest["mcpServers"] = entry
            scratch.write(f"{plugin}/.claude-plugin/plugin.json", json.dumps(manifest, indent="\t"))
        market_file = {"name": "market", "owner": {"name": "test"}, "plugins": listed}
        scratch.write("market/.claude-plugin/marketplace.json", json.dumps(market_file))
        repository(scratch, market)
        for words in self.install:
            done = scratch.run(program, *(word.format(market=market) for word in words), timeout=120)
            if done.returncode:
                raise Unusable(f"{' '.join(words)}: {done.stdout}{done.stderr}")
        return sorted(file for pattern in self.held for file in scratch.home.glob(pattern))


# No client is to reach it: git is told where it really is.
REPOSITORY = "https://market.invalid/market.git"


def repository(scratch, directory):
    """Makes a directory what is cloned from REPOSITORY."""
    for words in (
        ("config", "--global", f"url.file://{directory}.insteadOf", REPOSITORY),
        ("config", "--global", "user.name", "test"),
        ("config", "--global", "user.email", "test@example.com"),
        ("-C", directory, "init", "--quiet"),
        ("-C", directory, "add", "--all"),
        ("-C", directory, "commit", "--quiet", "--message", "all"),
    ):
        done = scratch.run("git", *words)
        if done.returncode:
            raise Unusable(f"git: {done.stderr}")


class ClaudeCodePlugins(Plugins, ClaudeCode):
    """It copies plugins, and names their servers by the plugin."""

    install = (
        ("plugin", "marketplace", "add", REPOSITORY),
        ("plugin", "install", "echo@market"),
        ("plugin", "install", "files@market"),
    )
    held = (".claude/plugins/cache/market/echo/*/.mcp.json", ".claude/plugins/cache/market/files/*/.claude-plugin/plugin.json")
    line = r"^plugin:[\w-]+:([\w-]+): .* - (?:\W+ )?(.+)$"


class ClaudeCodePluginsHere(ClaudeCodePlugins):
    """Plugins of a marketplace that is a directory are run from there."""

    brought = True
    install = (("plugin", "marketplace", "add", "{market}"), *ClaudeCodePlugins.install[1:])
    held = ("market/plugins/echo/.mcp.json", "market/plugins/files/.claude-plugin/plugin.json")
    # In a copy below ~/.claude a server's own code would need a grant.
    root = "${CLAUDE_PLUGIN_ROOT}"


class ClaudeCodeMarketplace(ClaudeCodePluginsHere):
    """Servers that a marketplace of the user's own lists."""

    held, in_list = ("market/.claude-plugin/marketplace.json",), True


class ClaudeCodePluginDirectory(ClaudeCodePlugins):
    """Plugins that are named at each start."""

    brought = True
    install = ()
    held, root = ClaudeCodePluginsHere.held, ClaudeCodePluginsHere.root
    projects = ("market/plugins/echo", "market/plugins/files")

    def see(self, scratch, program):
        """Server -> what the client says about it."""
        named = [word for place in self.projects for word in ("--plugin-dir", scratch.home / place)]
        done = scratch.run(program, *named, "mcp", "list", timeout=120)
        return statuses(done.stdout + done.stderr, self.line)


class CodexPlugins(Plugins, Codex):
    """It copies plugins."""

    install = (
        ("plugin", "marketplace", "add", "{market}"),
        ("plugin", "add", "echo@market"),
        ("plugin", "add", "files@market"),
    )
    held = (".codex/plugins/cache/market/echo/*/.mcp.json", ".codex/plugins/cache/market/files/*/.claude-plugin/plugin.json")


class FactoryDroidPlugins(Plugins, FactoryDroid):
    """It copies plugins, and writes their servers into files of its own."""

    install = (
        ("plugin", "marketplace", "add", "{market}"),
        ("plugin", "install", "echo@market"),
        ("plugin", "install", "files@market"),
    )
    held = (".factory/plugins/cache/*/*/*/mcp.json",)
    manifests = False


class CopilotCliPlugins(Plugins, CopilotCli):
    """Plugins of a marketplace that is a directory are run from there."""

    brought = True
    install = (
        ("plugin", "marketplace", "add", "{market}"),
        ("plugin", "install", "echo@market"),
        ("plugin", "install", "files@market"),
    )
    held = ("market/plugins/echo/.mcp.json", "market/plugins/files/.claude-plugin/plugin.json")
    root = "${PLUGIN_ROOT}"


class Extensions:
    """Servers that an extension brings. The client copies it from a directory."""

    rewritten = False
    manifest = ""
    line = r"^\W*([\w-]+)(?: \(from [\w-]+\))?: .* \(stdio\) - (.+)$"

    def prepare(self, scratch, program, servers):
        """Has the client install it; its file."""
        text = json.dumps({"name": "extension", "version": "1.0.0", "mcpServers": self.entries(servers)}, indent=2)
        scratch.write(f"extension/{self.manifest}", text)
        done = scratch.run(program, "extensions", "install", "--consent", scratch.home / "extension", timeout=120)
        if done.returncode:
            raise Unusable(f"extensions install: {done.stdout}{done.stderr}")
        return [scratch.home / f".{self.program}/extensions/extension" / self.manifest]


class GeminiCliExtensions(Extensions, GeminiCli):
    """As above."""

    manifest = "gemini-extension.json"


class QwenCodeExtensions(Extensions, QwenCode):
    """As above."""

    manifest = "qwen-extension.json"


ALL = (
    ClaudeCode(),
    ClaudeCodePlugins(),
    ClaudeCodePluginsHere(),
    ClaudeCodeMarketplace(),
    ClaudeCodePluginDirectory(),
    GeminiCli(),
    GeminiCliExtensions(),
    Codex(),
    CodexPlugins(),
    Opencode(),
    FactoryDroid(),
    FactoryDroidPlugins(),
    QwenCode(),
    QwenCodeExtensions(),
    CopilotCli(),
    CopilotCliPlugins(),
    Continue(),
    McpInspector(),
    McpInspectorBefore(),
)
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
