// A server of revision 2026-07-28 on the official SDK: over stdio with --stdio, else over HTTP, where it prints its port.
import { createServer } from "node:http";
import { Readable } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";

import { McpServer, acceptedContent, createMcpHandler, fromJsonSchema, inputRequired } from "@modelcontextprotocol/server";
import { serveStdio } from "@modelcontextprotocol/server/stdio";

const text = (body) => ({ content: [{ type: "text", text: body }] });
const schema = (properties) => fromJsonSchema({ type: "object", properties, required: Object.keys(properties) });
let givenUp = 0;
let changed = () => {};

function factory() {
  const server = new McpServer(
    { name: "stateless", version: "1.0.0" },
    { capabilities: { tools: { listChanged: true }, resources: {} }, instructions: "Use the tools." },
  );
  const tool = (name, properties, run) =>
    server.registerTool(name, { description: `Does ${name}`, inputSchema: schema(properties) }, run);
  tool("echo", { text: { type: "string" } }, async ({ text: said }) => text(said));
  // Its argument is repeated in a header, also one that a header cannot hold as it is.
  tool("where", { region: { type: "string", "x-mcp-header": "Region" } }, async ({ region }) => text(region));
  tool("blob", { bytes: { type: "integer" } }, async ({ bytes }) => text("x".repeat(bytes)));
  tool("fail", {}, async () => {
    throw new Error("on purpose");
  });
  tool("progress", {}, async (_, context) => {
    const progressToken = context.mcpReq._meta?.progressToken;
    for (const progress of [0, 50, 100]) {
      await context.mcpReq.notify({ method: "notifications/progress", params: { progressToken, progress, total: 100 } });
      await sleep(20);
    }
    return text("done");
  });
  tool("confirm", {}, async (_, context) => {
    const answer = acceptedContent(context.mcpReq.inputResponses, "sure");
    if (answer) return text(`sure: ${answer.sure}`);
    const requestedSchema = { type: "object", properties: { sure: { type: "boolean" } }, required: ["sure"] };
    return inputRequired({ inputRequests: { sure: inputRequired.elicit({ message: "Sure?", requestedSchema }) } });
  });
  tool("wait", {}, async (_, context) => {
    await sleep(60_000, undefined, { signal: context.mcpReq.signal }).catch(() => (givenUp += 1));
    return text("waited");
  });
  tool("given_up", {}, async () => text(String(givenUp)));
  tool("change", {}, async () => {
    changed(server);
    return text("changed");
  });
  server.registerResource("one", "test://one", {}, async (uri) => ({ contents: [{ uri: uri.href, text: "1" }] }));
  return server;
}

if (process.argv.includes("--stdio")) {
  changed = (server) => server.sendToolListChanged();
  serveStdio(factory);
} else {
  const handler = createMcpHandler(factory);
  changed = () => handler.notify.toolsChanged();
  const http = createServer(async (request, response) => {
    const gone = new AbortController();
    response.on("close", () => gone.abort());
    const body = request.method === "POST" ? Readable.toWeb(request) : undefined;
    const url = `http://${request.headers.host}${request.url}`;
    const asked = new Request(url, { method: request.method, headers: request.headers, body, duplex: "half", signal: gone.signal });
    const answer = await handler.fetch(asked);
    response.writeHead(answer.status, Object.fromEntries(answer.headers));
    if (answer.body) Readable.fromWeb(answer.body).on("error", () => {}).pipe(response);
    else response.end();
  });
  // By itself it closes connections after five seconds, perhaps while a client writes to one.
  http.keepAliveTimeout = 120_000;
  http.listen(0, "127.0.0.1", () => console.log(http.address().port));
  process.stdin.on("end", () => process.exit(0)).resume();
}
