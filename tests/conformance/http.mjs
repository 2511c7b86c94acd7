// Sessions of the official SDK's server transport over HTTP.
import { createServer } from "node:http";
import { randomUUID } from "node:crypto";

import { StreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/streamableHttp.js";

const LOCAL = /^(localhost|127\.0\.0\.1|\[::1\])(:\d+)?$/;
const sessions = new Map();

// Events that can be asked for again.
class Memory {
  #events = [];
  async storeEvent(stream, message) {
    this.#events.push([stream, message]);
    return `${this.#events.length - 1}`;
  }
  async getStreamIdForEventId(id) {
    return this.#events[Number(id)]?.[0];
  }
  async replayEventsAfter(last, { send }) {
    const stream = this.#events[Number(last)]?.[0];
    for (const [at, [of, message]] of this.#events.entries())
      if (at > Number(last) && of === stream && Object.keys(message).length) await send(`${at}`, message);
    return stream;
  }
}

// A transport that is found again by its session. `ended` is called when the session is over.
export function transport(ended = () => {}) {
  const made = new StreamableHTTPServerTransport({
    sessionIdGenerator: randomUUID,
    eventStore: new Memory(),
    retryInterval: 100,
    onsessioninitialized: (id) => sessions.set(id, made),
  });
  made.onclose = () => {
    sessions.delete(made.sessionId);
    ended();
  };
  return made;
}

async function answer(request, response, open) {
  const origin = request.headers.origin && new URL(request.headers.origin).host;
  if (!LOCAL.test(request.headers.host) || (origin && !LOCAL.test(origin))) return response.writeHead(403).end();
  const id = request.headers["mcp-session-id"];
  const known = sessions.get(id);
  if (id && !known) return response.writeHead(404).end();
  await (known ?? (await open())).handleRequest(request, response);
}

// Serves on a free port of this machine and prints it, until stdin ends; `open` makes the transport of a new session.
export function serve(open) {
  const http = createServer((request, response) =>
    answer(request, response, open).catch((error) => {
      if (!response.headersSent) response.writeHead(500).end(String(error));
    }));
  http.listen(0, "127.0.0.1", () => console.log(http.address().port));
  process.stdin.on("end", () => {
    for (const open of sessions.values()) open.close();
    process.exit(0);
  }).resume();
}
