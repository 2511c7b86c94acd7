"""An MCP server that wants a login, and an issuer of tokens, in the ways that they are: `oauth_server.py MODE`. Prints both
ports. The issuer's `/seen` says what it was asked, `/end` ends every access token, `/forget` takes everything back."""
import base64
import hashlib
import http.server
import json
import secrets
import sys
import threading
import urllib.parse

MODE = sys.argv[1]
CODES, REFRESH, ACCESS = {}, {}, {}  # code or token: what it was given for
DEVICES = {}  # code of a device: what it asked for, and whether somebody has agreed (None: has refused)
SEEN = []
LOCK = threading.Lock()
# Who was registered by hand, where no program registers itself.
NAME, SECRET = "made:by hand", "p ä%ss+word"


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def reply(self, status, value=None, **headers):
        body = b"" if value is None else json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        if body:
            self.send_header("Content-Type", "application/json")
        for name, text in headers.items():
            self.send_header(name.replace("_", "-"), text)
        self.end_headers()
        self.wfile.write(body)

    def body(self):
        return self.rfile.read(int(self.headers["Content-Length"] or 0)).decode()


class Resource(Handler):
    def do_GET(self):
        if self.path != "/.well-known/oauth-protected-resource/mcp":
            return self.reply(405 if self.path == "/mcp" else 404)
        resource = f"{SERVER}/mcp" if MODE != "other-resource" else "https://other.example/mcp"
        return self.reply(200, {"resource": resource, "authorization_servers": [ISSUER], "scopes_supported": ["tools"]})

    def do_POST(self):
        message = json.loads(self.body())
        token = (self.headers["Authorization"] or "").removeprefix("Bearer ")
        metadata = f'resource_metadata="{SERVER}/.well-known/oauth-protected-resource/mcp"'
        if token not in ACCESS:
            return self.reply(401, {"error": "x"}, WWW_Authenticate=f'Bearer {metadata}, scope="tools"')
        method = message["method"]
        if method == "tools/call" and "admin" not in ACCESS[token]:
            wanted = f'Bearer error="insufficient_scope", scope="admin", {metadata}'
            return self.reply(403, {"error": "x"}, WWW_Authenticate=wanted)
        if "id" not in message:
            return self.reply(202)
        tool = {"name": "whoami", "inputSchema": {"type": "object"}}
        result = {"initialize": {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
                                 "serverInfo": {"name": "oauth", "version": "1"}},
                  "tools/list": {"tools": [tool]}}.get(method)
        result = result or {"content": [{"type": "text", "text": " ".join(ACCESS[token])}]}
        return self.reply(200, {"jsonrpc": "2.0", "id": message["id"], "result": result})


class Issuer(Handler):
    def do_GET(self):
        url = urllib.parse.urlsplit(self.path)
        if url.path == "/seen":
            return self.reply(200, SEEN)
        if url.path == "/forget":
            REFRESH.clear(), ACCESS.clear()
            return self.reply(200, {})
        if url.path == "/end":
            ACCESS.clear()
            return self.reply(200, {})
        if url.path in ("/agree", "/refuse"):
            for device in DEVICES.values():
                device["agreed"] = url.path == "/agree" or None
            return self.reply(200, {})
        if url.path == "/authorize":
            return self.authorize(dict(urllib.parse.parse_qsl(url.query)))
        if url.path != "/.well-known/openid-configuration":
            return self.reply(404)
        more = {"device_authorization_endpoint": f"{ISSUER}/device"} if MODE in ("device", "by-hand") else {}
        if MODE != "by-hand":
            more["registration_endpoint"] = f"{ISSUER}/register"
        return self.reply(200, {**more,
            "issuer": ISSUER if MODE != "wrong-issuer" else "https://evil.example",
            "authorization_endpoint": f"{ISSUER}/authorize", "token_endpoint": f"{ISSUER}/token",
            "revocation_endpoint": f"{ISSUER}/revoke",
            "code_challenge_methods_supported": ["plain" if MODE == "no-pkce" else "S256"],
            "scopes_supported": ["tools", "admin", "offline_access"],
            "authorization_response_iss_parameter_supported": True})

    def authorize(self, asked):
        SEEN.append(["authorize", asked])
        back = {"state": asked["state"], "iss": "https://evil.example" if MODE == "mix-up" else ISSUER}
        if MODE == "no-iss":
            del back["iss"]
        if MODE == "denied":
            back["error"] = "access_denied"
        else:
            back["code"] = secrets.token_urlsafe(16)
            CODES[back["code"]] = asked
        self.reply(302, Location=f"{asked['redirect_uri']}?{urllib.parse.urlencode(back)}")

    def do_POST(self):
        with LOCK:
            getattr(self, self.path.strip("/"))()

    def asked(self, kind):
        """What a form asks for, of whom it names. `None` if that one does not show its secret as RFC 6749 §2.3.1 says."""
        asked = dict(urllib.parse.parse_qsl(self.body()))
        shown = self.headers["Authorization"]
        SEEN.append([kind, {**asked, "shown": shown}])
        if MODE != "by-hand":
            return asked
        pair = f"{urllib.parse.quote_plus(NAME)}:{urllib.parse.quote_plus(SECRET)}"
        if shown == f"Basic {base64.b64encode(pair.encode()).decode()}" and not {"client_id", "client_secret"} & {*asked}:
            return {**asked, "client_id": NAME}
        return self.reply(401, {"error": "invalid_client"}, WWW_Authenticate="Basic")

    def register(self):
        wanted = json.loads(self.body())
        SEEN.append(["register", wanted])
        self.reply(201, {**wanted, "client_id": f"client-{len(SEEN)}"})

    def device(self):
        asked = self.asked("device")
        if asked is None:
            return None
        code = secrets.token_urlsafe(16)
        DEVICES[code] = {"asked": asked, "agreed": False}
        return self.reply(200, {"device_code": code, "user_code": "WDJB-MJHT", "verification_uri": f"{ISSUER}/enter",
                                "expires_in": 600, "interval": 1})

    def token(self):
        asked = self.asked("token")
        if asked is None:
            return None
        if asked["grant_type"] == "urn:ietf:params:oauth:grant-type:device_code":
            device = DEVICES[asked["device_code"]]
            if device["agreed"] is not True:
                return self.reply(400, {"error": "access_denied" if device["agreed"] is None else "authorization_pending"})
            given = DEVICES.pop(asked["device_code"])["asked"]
        elif asked["grant_type"] == "refresh_token":
            given = REFRESH.pop(asked["refresh_token"], None)
        else:
            given = CODES.pop(asked["code"], None)
            proof = base64.urlsafe_b64encode(hashlib.sha256(asked["code_verifier"].encode()).digest()).decode()
            if given and (given["code_challenge"] != proof.rstrip("=") or given["redirect_uri"] != asked["redirect_uri"]):
                given = None
        if given is None or given["client_id"] != asked["client_id"] or asked["resource"] != f"{SERVER}/mcp":
            return self.reply(400, {"error": "invalid_grant"})
        access, refresh = secrets.token_urlsafe(16), secrets.token_urlsafe(16)
        ACCESS[access] = given["scope"].split()
        REFRESH[refresh] = given
        return self.reply(200, {"access_token": access, "refresh_token": refresh, "token_type": "Bearer",
                                "expires_in": 1 if MODE in ("short", "by-hand") else 3600, "scope": given["scope"]})

    def revoke(self):
        asked = self.asked("revoke")
        if asked is None:
            return None
        if REFRESH.pop(asked["token"], None):
            ACCESS.clear()
        return self.reply(200)


def start(handler):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server.server_address[1]


ports = start(Resource), start(Issuer)
SERVER, ISSUER = (f"http://127.0.0.1:{port}" for port in ports)
print(*ports, flush=True)
sys.stdin.read()
