"""An MCP server over HTTP, in the ways that servers are: `http_server.py MODE [tls]`, the latter with certificate and key of the
directory that it is started in. Prints its port. Tools do nothing but say
what they were asked, so that what arrives can be compared. A mode that is a revision's name is a server of that one alone, which holds
its clients to it."""
import http.server
import json
import queue
import socket
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
CAPABILITIES = {}  # of the client
REVISION = MODE if MODE.startswith("20") else None
# What the server says by itself where its stream breaks off. An event's id is how many of these there were, and at which attempt.
NEWS = [{"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": n}} for n in range(7)]
# What happens each time that this stream is asked for: how many messages are sent, and how it ends.
BREAKS = [(2, "closed"), (1, "cut"), (0, "refused"), (1, "closed"), (0, "dropped"), (1, "closed"), (0, "closed"), (9, "open")]


def has_batches():
    return REVISION == "2025-03-26"


def answer_to(message, headers):
    return {"jsonrpc": "2.0", "id": message["id"], "result": result_of(message, headers)}


def result_of(message, headers):
    method, params = message["method"], message.get("params", {})
    if method == "initialize":
        version = REVISION or (params["protocolVersion"] if MODE != "old" else "2024-11-05")
        CAPABILITIES.update(params.get("capabilities", {}))
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
        said = [self.command, {n: self.headers[n] for n in names if self.headers[n]}, body]
        SEEN.append(said)
        return said

    def do_GET(self):
        self.note(None)
        if MODE == "old":
            mine = queue.Queue()
            CHANNELS.append(mine)
            self.events()
            self.event("/messages?session=1", event="endpoint")
            while (message := mine.get()) is not None:
                self.event(message, event="message")
            return None
        if MODE == "stolen":
            self.events()
            return self.event("http://other.example/messages", event="endpoint")
        if REVISION and not self.of_revision():
            return None
        if REVISION and "roots" in CAPABILITIES and self.headers["mcp-session-id"] == "s-1":
            asked = [{"jsonrpc": "2.0", "id": f"asked-{n}", "method": "roots/list"} for n in range(2)]
            self.events()
            for message in [asked] if has_batches() else asked:
                self.event(message)
            HOLD.wait(30)
            return None
        if MODE == "breaking":
            return self.breaking()
        if MODE == "polled" and self.headers["last-event-id"]:
            BROKEN.append("closed")
            self.events()
            return self.event(answer_to(HELD[0], self.headers)) if len(BROKEN) > 8 else None
        if MODE == "hurried" and self.headers["last-event-id"]:
            # Nothing new until some time has passed. It always says where to go on from.
            self.events()
            self.event(None, id="e-1")
            return self.event(answer_to(HELD[0], self.headers)) if time.monotonic() > HELD[1] else None
        if MODE == "alone" and self.headers["last-event-id"]:
            # Not at the first time, so that some time passes.
            if REFUSED:
                self.events()
                return self.event(answer_to(HELD[0], self.headers), id="e-2")
            REFUSED.append(True)
            return self.reply(503)
        if MODE == "resumed" and self.headers["last-event-id"]:
            self.events()
            if self.headers["last-event-id"] == "e-1":
                return self.event({"jsonrpc": "2.0", "method": "notifications/message",
                                   "params": {"level": "info", "data": "half"}}, id="e-2")
            return self.event(answer_to(HELD[0], self.headers), id="e-3")
        if MODE == "sse":
            self.events()
            self.event({"jsonrpc": "2.0", "id": "from-server", "method": "roots/list"}, id="g-1")
            HOLD.wait(30)
            return None
        return self.reply(405)

    def of_revision(self):
        """Whether the request says the revision, as from 2025-06-18 on it has to; a server of an earlier one does not know how."""
        said = self.headers["mcp-protocol-version"]
        if has_batches() or said == REVISION:
            return True
        self.reply(400, f"MCP-Protocol-Version is {said}".encode(), kind="text/plain")
        return False

    def breaking(self):
        """The stream on which it speaks by itself goes on behind the event that its client names, and breaks off as BREAKS says."""
        last = self.headers["last-event-id"]
        done = int(last.split(".")[0]) if last else 0
        attempt = len(BROKEN)
        count, end = BREAKS[min(attempt, len(BREAKS) - 1)]
        BROKEN.append(end)
        if end == "refused":
            return self.reply(503)
        if end == "dropped":
            self.close_connection = True
            return self.connection.shutdown(socket.SHUT_RDWR)
        self.events()
        # Only an id: where its client can go on from. How long to wait is said once.
        self.event(None, id=f"{done}.{attempt}", **({} if last else {"retry": 10}))
        for number, message in enumerate(NEWS[done : done + count], done + 1):
            self.event(message, id=f"{number}.{attempt}")
        if end == "cut":
            self.wfile.write(f"id: {done + count + 1}.{attempt}\ndata: {json.dumps(NEWS[done + count])[:20]}".encode())
        if end == "open":
            HOLD.wait(30)
        return None

    def do_DELETE(self):
        said = self.note(None)
        SESSIONS.discard(self.headers["mcp-session-id"])
        self.reply(204)
        if MODE == "deleted":
            print("deleted", flush=True)
        if REVISION:
            print(json.dumps(said), flush=True)

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        message = json.loads(body)
        self.note(body.decode())
        messages = message if isinstance(message, list) else [message]
        asks = [m for m in messages if "id" in m and "method" in m]
        first = asks[0] if asks else messages[0]
        method = first.get("method")
        arguments = first.get("params", {}).get("arguments", {})
        if MODE == "unready" and not REFUSED:
            REFUSED.append(True)
            return self.reply(503, Retry_After="3600")
        if "status" in arguments:
            again = {"Retry_After": arguments["again"]} if "again" in arguments else {}
            return self.reply(arguments["status"], arguments.get("body", "").encode(), **again)
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
                CHANNELS[-1].put(answer_to(message, self.headers))
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
        elif REVISION and not self.of_revision():
            return None
        if REVISION and isinstance(message, list) and not has_batches():
            error = {"code": -32600, "message": "this revision has no batches"}
            return self.reply(400, json.dumps({"jsonrpc": "2.0", "id": None, "error": error}).encode())
        if not asks and method == "notifications/initialized" and UNWILLING:
            self.reply(UNWILLING.pop(), b"not now", kind="text/plain")
            return print("unwilling", flush=True)
        if not asks:
            return self.reply(202)
        if method == "tools/call" and arguments.get("forget"):
            # The session ends after this call.
            SESSIONS.clear()
            if arguments["forget"] == "changed":
                INTRODUCTION[0] += 1
            if arguments["forget"] == "unwilling":
                # The next session takes no `notifications/initialized`.
                UNWILLING.append(400)
        answers = [answer_to(m, self.headers) for m in asks]
        answer = answers if isinstance(message, list) else answers[0]
        if arguments.get("form") in ("one by one", "together"):
            self.events()
            note = {"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": "half"}}
            for event in answers if arguments["form"] == "one by one" else [[note, answers[0]], answers[1:]]:
                self.event(event)
            return None
        if arguments.get("form") == "in part":
            answer = answers[:1]
        if MODE in ("resumed", "polled", "alone") and method == "tools/call":
            HELD[:] = [first]
            self.events()
            self.event(None, id="e-1", **({"retry": 10} if MODE != "alone" else {}))
            return None
        if MODE == "hurried" and method == "tools/call" and "seen" not in arguments:
            HELD[:] = [first, time.monotonic() + 2]
            self.events()
            return self.event(None, id="e-1", retry=0)
        if arguments.get("later"):
            self.events()
            return self.event(None, id="e-1", retry=3_600_000)
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
        return self.reply(200, json.dumps(answer_to(message, self.headers)).encode())


HELD = []  # the call whose answer comes on another stream
REFUSED = []  # whether something was refused already
UNWILLING = []  # what the next `notifications/initialized` are answered with
BROKEN = []  # how each stream has ended
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
