"""An MCP server over HTTP, in the ways that servers are: `http_server.py MODE [tls]`, the latter with certificate and key of the
directory that it is started in. Prints its port. Tools do nothing but say
what they were asked, so that what arrives can be compared."""
import http.server
import json
import queue
import ssl
import sys
import threading
import time

MODE = sys.argv[1]
HOLD = threading.Event()
SEEN = []  # what came: method, headers, body
SESSIONS = {"s-1"}
NEXT = [1]
CHANNELS = []  # HTTP+SSE: what waits for the stream
INTRODUCTION = [0]


def result_of(message, headers):
    method, params = message["method"], message.get("params", {})
    if method == "initialize":
        version = params["protocolVersion"] if MODE != "old" else "2024-11-05"
        info = {"name": f"http-{MODE}", "version": str(INTRODUCTION[0])}
        return {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": info}
    if method == "tools/list":
        region = {"type": "string", "x-mcp-header": "Region"}
        schema = {"type": "object", "properties": {"region": region}}
        tool = {"name": "echo", "description": "says it again", "inputSchema": schema}
        return {"tools": [tool], "resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
    if method == "tools/call":
        arguments = params.get("arguments", {})
        if "mib" in arguments:
            return {"content": [{"type": "text", "text": "x" * (arguments["mib"] << 20)}]}
        if "seen" in arguments:
            return {"content": [{"type": "text", "text": json.dumps(SEEN)}]}
        return {"content": [{"type": "text", "text": json.dumps(arguments)}], "isError": False, "resultType": "complete"}
    if method == "server/discover":
        return {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}, "resultType": "complete",
                "serverInfo": {"name": "http-modern", "version": "1"}}
    return {}


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def reply(self, status, body=b"", kind="application/json", **headers):
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        if body:
            self.send_header("Content-Type", kind)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(body)

    def events(self, **headers):
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.close_connection = True

    def event(self, message, **fields):
        text = "".join(f"{name}: {value}\n" for name, value in fields.items())
        if message is not None:
            # In parts, as the standard allows.
            pretty = message if isinstance(message, str) else json.dumps(message, indent=1)
            text += "".join(f"data: {line}\n" for line in pretty.split("\n"))
        self.wfile.write((text + "\n").encode())
        self.wfile.flush()

    def note(self, body):
        names = ("mcp-session-id", "mcp-protocol-version", "mcp-method", "mcp-name", "mcp-param-region", "authorization",
                 "last-event-id", "x-team")
        SEEN.append([self.command, {n: self.headers[n] for n in names if self.headers[n]}, body])

    def do_GET(self):
        self.note(None)
        if MODE == "old":
            mine = queue.Queue()
            CHANNELS.append(mine)
            self.events()
            self.event("/messages?session=1", event="endpoint")
            while (message := mine.get()) is not None:
                self.event(message, event="message")
            return
        if MODE == "stolen":
            self.events()
            self.event("http://other.example/messages", event="endpoint")
            return
        if MODE == "resumed" and self.headers["last-event-id"]:
            self.events()
            if self.headers["last-event-id"] == "e-1":
                self.event({"jsonrpc": "2.0", "method": "notifications/message",
                            "params": {"level": "info", "data": "half"}}, id="e-2")
                return
            self.event({"jsonrpc": "2.0", "id": HELD[0]["id"], "result": result_of(HELD[0], self.headers)}, id="e-3")
            return
        if MODE == "sse":
            self.events()
            self.event({"jsonrpc": "2.0", "id": "from-server", "method": "roots/list"}, id="g-1")
            HOLD.wait(30)
            return
        self.reply(405)

    def do_DELETE(self):
        self.note(None)
        SESSIONS.discard(self.headers["mcp-session-id"])
        self.reply(204)
        if MODE == "deleted":
            print("deleted", flush=True)

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        message = json.loads(body)
        self.note(body.decode())
        first = message[0] if isinstance(message, list) else message
        method = first.get("method")
        if MODE == "redirect":
            return self.reply(307, Location="http://127.0.0.1:1/elsewhere")
        if MODE == "moved" and self.path == "/mcp":
            return self.reply(308, Location="/new")
        if MODE == "turned" and self.path == "/mcp":
            return self.reply(302, Location="/new")
        if MODE == "locked" and self.headers["authorization"] != "Bearer let-me-in":
            return self.reply(401, b'{"error":"unauthorized"}', WWW_Authenticate="Bearer")
        if MODE == "old":
            if self.path == "/mcp":
                return self.reply(405)
            self.reply(202)
            if "id" in message and "method" in message:
                CHANNELS[-1].put({"jsonrpc": "2.0", "id": message["id"], "result": result_of(message, self.headers)})
            return None
        if MODE == "stolen":
            return self.reply(404)
        if MODE == "modern":
            return self.modern(message)
        session = self.headers["mcp-session-id"]
        if method == "initialize":
            session = f"s-{NEXT[0]}"
            NEXT[0] += 1
            SESSIONS.clear()
            SESSIONS.add(session)
        elif session not in SESSIONS:
            return self.reply(404, b"no such session", kind="text/plain")
        if "id" not in first or "method" not in first:
            return self.reply(202)
        if method == "tools/call" and first["params"].get("arguments", {}).get("forget"):
            # The session ends after this call.
            SESSIONS.clear()
            if first["params"]["arguments"]["forget"] == "changed":
                INTRODUCTION[0] += 1
        answer = {"jsonrpc": "2.0", "id": first["id"], "result": result_of(first, self.headers)}
        if isinstance(message, list):
            answer = [{"jsonrpc": "2.0", "id": m["id"], "result": result_of(m, self.headers)} for m in message if "id" in m]
        if MODE == "resumed" and method == "tools/call":
            HELD[:] = [first]
            self.events()
            self.event(None, id="e-1", retry="10")
            return None
        if MODE == "cut" and method == "tools/call":
            self.events()
            self.wfile.write(b'data: {"jsonrpc":')
            return None
        if MODE == "silent" and method == "tools/call":
            return self.reply(200)
        if MODE == "broken" and method == "tools/call":
            return self.reply(500, b'{"jsonrpc":"2.0","id":null,"error":{"code":-32603,"message":"boom"}}')
        if MODE == "sse":
            self.events(Mcp_Session_Id=session)
            if method == "tools/call":
                token = first["params"].get("_meta", {}).get("progressToken", 0)
                for step in range(3):
                    params = {"progressToken": token, "progress": step}
                    self.event({"jsonrpc": "2.0", "method": "notifications/progress", "params": params})
            self.event(answer, id=f"p-{NEXT[0]}")
            return None
        return self.reply(200, json.dumps(answer, indent=1).replace("\n", "\r\n").encode(), Mcp_Session_Id=session)

    def modern(self, message):
        params = message.get("params", {})
        version = params.get("_meta", {}).get("io.modelcontextprotocol/protocolVersion")
        refuse = lambda code, text: self.reply(400, json.dumps(  # noqa: E731
            {"jsonrpc": "2.0", "id": message.get("id"), "error": {"code": code, "message": text}}).encode())
        if version is None:
            return refuse(-32022, "no version")
        region = params.get("arguments", {}).get("region")
        wanted = {"mcp-protocol-version": version, "mcp-method": message["method"], "mcp-name": params.get("name"),
                  "mcp-param-region": region if isinstance(region, str) else None}
        for name, want in wanted.items():
            if self.headers[name] != want:
                return refuse(-32020, f"{name} is {self.headers[name]}, not {want}")
        if message["method"] == "subscriptions/listen":
            self.events()
            meta = {"io.modelcontextprotocol/subscriptionId": message["id"]}
            self.event({"jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged", "params": {"_meta": meta}})
            try:
                while True:
                    self.wfile.write(b":\r\n")
                    time.sleep(0.02)
            except OSError:
                SEEN.append(["closed", {}, None])
            return None
        answer = {"jsonrpc": "2.0", "id": message["id"], "result": result_of(message, self.headers)}
        return self.reply(200, json.dumps(answer).encode())


HELD = []
http.server.ThreadingHTTPServer.request_queue_size = 128
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
server.daemon_threads = True
if sys.argv[2:] == ["tls"]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain("cert.pem", "key.pem")
    server.socket = context.wrap_socket(server.socket, server_side=True)
print(server.server_address[1], flush=True)
threading.Thread(target=server.serve_forever, daemon=True).start()
sys.stdin.read()
HOLD.set()
