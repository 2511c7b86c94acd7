#!/usr/bin/env python3
"""A classifier for results: classifier.py SOCKET WORD [held]

Listens on a Unix socket. Each line it gets is {"text": …}; it answers {"score": …}, which is high where the text has WORD. It
prints "ready" when it listens. With "held" it answers nothing before its stdin has ended. docs/classifier.md says the same with a model.
"""

import json
import socketserver
import sys
import threading

MAY_ANSWER = threading.Event()


class Reader(socketserver.StreamRequestHandler):
    def handle(self):
        for line in self.rfile:
            MAY_ANSWER.wait()
            score = 0.97 if sys.argv[2] in json.loads(line)["text"] else 0.02
            self.wfile.write(json.dumps({"score": score}).encode() + b"\n")


class Listener(socketserver.ThreadingUnixStreamServer):
    daemon_threads = True


def held():
    sys.stdin.read()
    MAY_ANSWER.set()


if sys.argv[3:] == ["held"]:
    threading.Thread(target=held, daemon=True).start()
else:
    MAY_ANSWER.set()
with Listener(sys.argv[1], Reader) as listener:
    print("ready", flush=True)
    listener.serve_forever()
