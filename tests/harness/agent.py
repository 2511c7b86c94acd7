"""An MCP client, driven line by line (client.py beside this). A process of its own, because what descends from a client
may not answer questions."""

import json
import pathlib
import queue
import subprocess
import threading

CLIENT = pathlib.Path(__file__).resolve().parent / "client.py"


def text_of(result):
    """The text of a call's result."""
    return "\n".join(part["text"] for part in result["content"] if part.get("type") == "text")


class Agent:
    """One client session. A context manager: at its end the servers' stdin is closed. What goes wrong is a RuntimeError."""

    def __init__(self, scratch, config, log, **options):
        self.log = log
        self.process = scratch.start(
            scratch.python, CLIENT, config, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.log, text=True, **options
        )
        self.lines, self.answers, self.next = queue.Queue(), {}, 0
        threading.Thread(target=self.listen, daemon=True).start()
        ready = self.receive(240)
        self.tools, self.definitions = ready["ready"], ready["definitions"]

    def listen(self):
        """Puts each line into the queue."""
        for line in self.process.stdout:
            self.lines.put(json.loads(line))
        self.lines.put({"failed": "the client ended"})

    def receive(self, seconds):
        """The next line."""
        try:
            line = self.lines.get(timeout=seconds)
        except queue.Empty:
            line = {"failed": f"the client said nothing for {seconds} s"}
        if "failed" in line:
            raise RuntimeError(line["failed"] + self.complaints())
        return line

    def complaints(self):
        """What the client and its servers wrote to stderr."""
        self.log.seek(0)
        return "".join(f"\n   | {line}" for line in self.log.read().splitlines()[-15:])

    def send(self, server, tool, **arguments):
        """Makes a call without waiting for its answer."""
        self.next += 1
        order = {"tag": self.next, "server": server, "tool": tool, "arguments": arguments}
        self.process.stdin.write(json.dumps(order) + "\n")
        self.process.stdin.flush()
        return self.next

    def result(self, tag, seconds=60):
        """What a call led to."""
        while tag not in self.answers:
            line = self.receive(seconds)
            self.answers[line["tag"]] = line["answer"]
        message = self.answers.pop(tag)
        if "result" not in message:
            raise RuntimeError(f"a JSON-RPC error came back: {message.get('error')}")
        return message["result"]

    def answer(self, tag, seconds=60):
        """A call's text, and whether it is an error."""
        result = self.result(tag, seconds)
        return text_of(result), bool(result.get("isError"))

    def call(self, server, tool, **arguments):
        """Makes a call and returns the answer."""
        return self.answer(self.send(server, tool, **arguments))

    def answered(self, tag):
        """Whether an answer is there already."""
        while not self.lines.empty():
            line = self.receive(1)
            self.answers[line["tag"]] = line["answer"]
        return tag in self.answers

    def end(self):
        """Closes the session. The client's exit code."""
        self.process.stdin.close()
        return self.process.wait(20)

    def __enter__(self):
        return self

    def __exit__(self, *_error):
        try:
            self.end()
        except subprocess.TimeoutExpired:
            self.process.kill()
