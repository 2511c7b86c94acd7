"""An MCP client of its own process, driven line by line (tests/demo/client.py)."""

import json
import pathlib
import queue
import subprocess
import threading

CLIENT = pathlib.Path(__file__).resolve().parent.parent / "demo" / "client.py"


class Agent:
    """One client session. A context manager: at its end the servers' stdin is closed."""

    def __init__(self, scratch, config, log):
        self.process = scratch.start(
            scratch.python, CLIENT, config, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True
        )
        self.lines, self.answers, self.next = queue.Queue(), {}, 0
        threading.Thread(target=self.listen, daemon=True).start()
        self.tools = self.receive(120)["ready"]

    def listen(self):
        """Puts each line into the queue."""
        for line in self.process.stdout:
            self.lines.put(json.loads(line))
        self.lines.put({"failed": "the client ended"})

    def receive(self, seconds):
        """The next line."""
        line = self.lines.get(timeout=seconds)
        if "failed" in line:
            raise RuntimeError(line["failed"])
        return line

    def send(self, server, tool, **arguments):
        """Makes a call without waiting for its answer."""
        self.next += 1
        order = {"tag": self.next, "server": server, "tool": tool, "arguments": arguments}
        self.process.stdin.write(json.dumps(order) + "\n")
        self.process.stdin.flush()
        return self.next

    def answer(self, tag, seconds=60):
        """A call's text, and whether it is an error."""
        while tag not in self.answers:
            line = self.receive(seconds)
            self.answers[line["tag"]] = line["answer"]
        result = self.answers.pop(tag)["result"]
        text = "\n".join(part["text"] for part in result["content"] if part.get("type") == "text")
        return text, bool(result.get("isError"))

    def call(self, server, tool, **arguments):
        """Makes a call and returns the answer."""
        return self.answer(self.send(server, tool, **arguments))

    def answered(self, tag):
        """Whether an answer is there already."""
        while not self.lines.empty():
            line = self.receive(1)
            self.answers[line["tag"]] = line["answer"]
        return tag in self.answers

    def __enter__(self):
        return self

    def __exit__(self, *_error):
        self.process.stdin.close()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
