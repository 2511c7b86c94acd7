// A server of both eras on the official TypeScript SDK, 2.x.   server.mjs [--modern-only] --stdio | --http
// Over HTTP it prints its port. With --modern-only it refuses clients of the era with sessions. What it offers is what the matrix looks at, the same in each language.
import { createServer } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";

import { toNodeHandler } from "@modelcontextprotocol/node";
import { McpServer, ResourceTemplate, createMcpHandler, fromJsonSchema, inputRequired, inputResponse } from "@modelcontextprotocol/server";
import { serveStdio } from "@modelcontextprotocol/server/stdio";

const text = (body) => ({ content: [{ type: "text", text: body }] });
const schema = (properties = {}) => fromJsonSchema({ type: "object", properties, required: Object.keys(properties) });
const word = { type: "string" };
let given_up = 0;
let changed = () => {};

function make() {
  const capabilities = { tools: { listChanged: true }, resources: { subscribe: true }, prompts: {} };
  const server = new McpServer({ name: "matrix-typescript", version: "1.0.0" }, { capabilities });
  const tool = (name, properties, run) =>
    server.registerTool(name, { description: `The tool ${name}`, inputSchema: schema(properties) }, run);

  tool("echo", { text: word }, async ({ text: said }) => text(said));
  tool("blob", { bytes: { type: "integer" } }, async ({ bytes }) => text("x".repeat(bytes)));
  tool("fail", {}, async () => {
    throw new Error("This tool fails");
  });
  tool("steps", {}, async (_, { mcpReq }) => {
    const progressToken = mcpReq._meta?.progressToken;
    for (const progress of [1, 2, 3]) {
      if (progressToken !== undefined)
        await mcpReq.notify({ method: "notifications/progress", params: { progressToken, progress, total: 3 } });
      // The SDK's client drops progress that it reads together with the result.
      await sleep(50);
    }
    return text("done");
  });
  tool("ask", { question: word }, async ({ question }, { mcpReq }) => {
    const answer = inputResponse(mcpReq.inputResponses, "name");
    if (answer.kind === "elicit") return text(`${answer.action} ${answer.content?.name}`);
    const requestedSchema = { type: "object", properties: { name: word }, required: ["name"] };
    return inputRequired({
      inputRequests: { name: inputRequired.elicit({ message: question, requestedSchema }) },
      requestState: `state of ${question} "é🚀"`,
    });
  });
  tool("model", { prompt: word }, async ({ prompt }, { mcpReq }) => {
    const answer = inputResponse(mcpReq.inputResponses, "said");
    if (answer.kind === "sampling") return text(`the model: ${answer.result.content.text}`);
    const messages = [{ role: "user", content: { type: "text", text: prompt } }];
    return inputRequired({ inputRequests: { said: inputRequired.createMessage({ messages, maxTokens: 10 }) } });
  });
  tool("wait", {}, async (_, { mcpReq }) => {
    await new Promise((resolve) => mcpReq.signal.addEventListener("abort", resolve));
    given_up += 1;
    return text("given up");
  });
  tool("given_up", {}, async () => text(String(given_up)));
  tool("change", {}, async () => {
    changed(server);
    await sleep(1);
    return text("changed");
  });
  server.registerResource("notes", "matrix://notes", { mimeType: "text/plain" }, async (uri) => ({
    contents: [{ uri: uri.href, mimeType: "text/plain", text: "A text with é and 🚀" }],
  }));
  server.registerResource("row", new ResourceTemplate("matrix://rows/{id}", {}), {}, async (uri, { id }) => ({
    contents: [{ uri: uri.href, text: `row ${id}` }],
  }));
  server.registerPrompt("greet", { argsSchema: schema({ name: word }) }, async ({ name }) => ({
    messages: [{ role: "user", content: { type: "text", text: `Greet ${name}` } }],
  }));
  return server;
}

const eras = process.argv.includes("--modern-only") ? { legacy: "reject" } : {};
if (process.argv.includes("--stdio")) {
  changed = (server) => server.sendToolListChanged();
  serveStdio(make, eras);
} else {
  const handler = createMcpHandler(make, eras);
  changed = () => handler.notify.toolsChanged();
  const http = createServer(toNodeHandler(handler));
  http.listen(0, "127.0.0.1", () => console.log(http.address().port));
  process.stdin.on("end", () => process.exit(0)).resume();
}
