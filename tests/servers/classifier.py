#!/usr/bin/env python3
"""A classifier for results: classifier.py SOCKET WORD

Listens on a Unix socket. Each line it gets is {"text": …}; it answers {"score": …}, which is high where the text has WORD. It
prints "ready" when it listens. docs/classifier.md says the same with a model.
"""

import json
import socketserver
import sys


class Reader(socketserver.StreamRequestHandler):
    def handle(self):
        for line in self.rfile:
            score = 0.97 if sys.argv[2] in json.loads(line)["text"] else 0.02
            self.wfile.write(json.dumps({"score": score}).encode() + b"\n")


class Listener(socketserver.ThreadingUnixStreamServer):
    daemon_threads = True


with Listener(sys.argv[1], Reader) as listener:
    print("ready", flush=True)
    listener.serve_forever()
