#!/usr/bin/env python3
"""A service over TLS that servers have a credential for. Says its port, then each request as a line of JSON. Certificate and key
are in the directory that it is started in. Standard library only."""

import base64
import gzip
import http.server
import json
import ssl
import sys
import threading

go_on = threading.Event()


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def say(self, status, body=b"{}", **headers):
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def pieces(self, *pieces):
        """A body without a length; the next piece waits where it is None."""
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for piece in pieces:
            if piece is None:
                go_on.wait()
            else:
                self.wfile.write(f"{len(piece):x}\r\n".encode() + piece + b"\r\n")
                self.wfile.flush()
        self.wfile.write(b"0\r\n\r\n")

    def serve(self):
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if self.headers.get("Transfer-Encoding"):
            while size := int(self.rfile.readline() or b"-1", 16):
                if size < 0:
                    # Broken off: nothing is said of it.
                    self.close_connection = True
                    return
                body += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
        headers = {name.lower(): value for name, value in self.headers.items()}
        seen = {"method": self.command, "path": self.path, "headers": headers, "body": body.decode()}
        print(json.dumps(seen), flush=True)
        path, _, query = self.path.partition("?")
        credential = headers.get("authorization", "none").removeprefix("Bearer ").encode()
        if path == "/v1/echo":
            pair = base64.b64encode(b"user:" + credential).decode()
            shown = {"plain": credential.decode(), "pair": pair, "hex": credential.hex()}
            self.say(200, json.dumps(shown).encode(), X_Echo=credential.decode())
        elif path == "/v1/cut":
            self.pieces(b"<", credential[:5], credential[5:6], credential[6:], b">")
        elif path == "/v1/events":
            self.pieces(b"data: one\n\n", None, b"data: two\n\n")
        elif path == "/v1/moved":
            self.say(307, Location="/v1/me?moved=1")
        elif path == "/v1/away":
            self.say(302, Location=query)
        elif path == "/v1/zip":
            self.say(200, gzip.compress(credential), Content_Encoding="gzip")
        else:
            self.say(200, b'{"ok": true}', Content_Type="application/json")

    do_GET = do_HEAD = do_POST = do_PUT = do_DELETE = do_TRACE = serve


def main():
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain("cert.pem", "key.pem")
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    server.socket = context.wrap_socket(server.socket, server_side=True)
    print(server.server_address[1], flush=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    # A line lets what waits go on; the end of stdin ends this.
    for _ in sys.stdin:
        go_on.set()


main()
