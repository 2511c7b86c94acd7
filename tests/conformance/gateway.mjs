// The suite speaks HTTP, our shim stdio: for each session this starts the command line that it is given and carries its
// messages, on the official SDK's server transport. Prints its port. A part of the test, not of Firedoor.
import { spawn } from "node:child_process";
import { createServer } from "node:http";
import { randomUUID } from "node:crypto";
import { createInterface } from "node:readline";

import { StreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/streamableHttp.js";

import { Memory } from "./memory.mjs";

const [command, ...args] = process.argv.slice(2);
const sessions = new Map();

async function open() {
  const transport = new StreamableHTTPServerTransport({
    sessionIdGenerator: randomUUID,
    eventStore: new Memory(),
    retryInterval: 100,
    onsessioninitialized: (id) => sessions.set(id, transport),
  });
  const child = spawn(command, args, { stdio: ["pipe", "pipe", "inherit"] });
  const waiting = new Set();
  transport.onmessage = (message) => {
    if (message.method && message.id !== undefined) waiting.add(message.id);
    child.stdin.write(`${JSON.stringify(message)}\n`);
  };
  transport.onclose = () => {
    sessions.delete(transport.sessionId);
    child.stdin.end();
  };
  createInterface({ input: child.stdout }).on("line", (line) => {
    const message = JSON.parse(line);
    const answers = message.method === undefined;
    // Over stdio nothing says which request a message belongs to; the newest is right for one that speaks one by one.
    const related = answers ? message.id : [...waiting].at(-1);
    if (answers) waiting.delete(message.id);
    transport.send(message, related === undefined ? {} : { relatedRequestId: related }).catch(() => {});
  });
  await transport.start();
  return transport;
}

const http = createServer(async (request, response) => {
  try {
    const local = /^(localhost|127\.0\.0\.1|\[::1\])(:\d+)?$/;
    const origin = request.headers.origin && new URL(request.headers.origin).host;
    if (!local.test(request.headers.host) || (origin !== undefined && origin !== "" && !local.test(origin)))
      return response.writeHead(403).end();
    const known = sessions.get(request.headers["mcp-session-id"]);
    if (!known && request.headers["mcp-session-id"]) return response.writeHead(404).end();
    await (known ?? (await open())).handleRequest(request, response);
  } catch (error) {
    if (!response.headersSent) response.writeHead(500).end(String(error));
  }
});
http.listen(0, "127.0.0.1", () => console.log(http.address().port));
process.stdin.on("end", () => {
  for (const transport of sessions.values()) transport.close();
  http.close();
  process.exit(0);
}).resume();
