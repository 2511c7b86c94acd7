// A server of the era with sessions on the official TypeScript SDK, 1.x, with tasks (2025-11-25), which only that version's
// client and server have.   server_v1.mjs --stdio | --http | --sse
// Over HTTP it prints its port, also with the transport of before 2025-03-26 (HTTP+SSE). What it offers besides is what the matrix looks at, the same in each language.
import { randomUUID } from "node:crypto";
import { createServer } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";

import { InMemoryTaskMessageQueue, InMemoryTaskStore } from "@modelcontextprotocol/sdk/experimental/tasks/stores/in-memory.js";
import { McpServer, ResourceTemplate } from "@modelcontextprotocol/sdk/server/mcp.js";
import { SSEServerTransport } from "@modelcontextprotocol/sdk/server/sse.js";
import { StdioServerTransport } from "@modelcontextprotocol/sdk/server/stdio.js";
import { StreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/streamableHttp.js";
import { z } from "zod";

const text = (body) => ({ content: [{ type: "text", text: body }] });
let given_up = 0;

function make() {
  const requests = { tools: { call: {} } };
  const capabilities = { tools: { listChanged: true }, tasks: { list: {}, cancel: {}, requests } };
  const kept = { taskStore: new InMemoryTaskStore(), taskMessageQueue: new InMemoryTaskMessageQueue() };
  const server = new McpServer({ name: "matrix-typescript-1", version: "1.0.0" }, { capabilities, ...kept });
  const tool = (name, inputSchema, run) => server.registerTool(name, { description: `The tool ${name}`, inputSchema }, run);

  tool("echo", { text: z.string() }, async ({ text: said }) => text(said));
  tool("blob", { bytes: z.number() }, async ({ bytes }) => text("x".repeat(bytes)));
  tool("fail", {}, async () => {
    throw new Error("This tool fails");
  });
  tool("steps", {}, async (_, { _meta, sendNotification }) => {
    const progressToken = _meta?.progressToken;
    for (const progress of [1, 2, 3]) {
      if (progressToken !== undefined)
        await sendNotification({ method: "notifications/progress", params: { progressToken, progress, total: 3 } });
      // The SDK's client drops progress that it reads together with the result.
      await sleep(50);
    }
    return text("done");
  });
  tool("ask", { question: z.string() }, async ({ question: message }) => {
    const requestedSchema = { type: "object", properties: { name: { type: "string" } }, required: ["name"] };
    const answer = await server.server.elicitInput({ message, requestedSchema });
    return text(`${answer.action} ${answer.content?.name}`);
  });
  tool("model", { prompt: z.string() }, async ({ prompt }) => {
    const messages = [{ role: "user", content: { type: "text", text: prompt } }];
    return text(`the model: ${(await server.server.createMessage({ messages, maxTokens: 10 })).content.text}`);
  });
  tool("wait", {}, async (_, { signal }) => {
    await new Promise((resolve) => signal.addEventListener("abort", resolve));
    given_up += 1;
    return text("given up");
  });
  tool("given_up", {}, async () => text(String(given_up)));
  tool("change", {}, async () => {
    server.sendToolListChanged();
    await sleep(1);
    return text("changed");
  });
  const description = "Takes its time, as a task";
  server.experimental.tasks.registerToolTask(
    "later",
    { description, inputSchema: { text: z.string() }, execution: { taskSupport: "required" } },
    {
      createTask: async ({ text: said }, { taskStore, taskRequestedTtl }) => {
        const task = await taskStore.createTask({ ttl: taskRequestedTtl ?? 60_000, pollInterval: 50 });
        const finish = () => taskStore.storeTaskResult(task.taskId, "completed", text(`later: ${said}`));
        // One that is to be cancelled does not end before.
        if (said !== "never") sleep(150).then(finish);
        return { task };
      },
      getTask: (_, { taskId, taskStore }) => taskStore.getTask(taskId),
      getTaskResult: (_, { taskId, taskStore }) => taskStore.getTaskResult(taskId),
    },
  );
  server.registerResource("notes", "matrix://notes", { mimeType: "text/plain" }, async (uri) => ({
    contents: [{ uri: uri.href, mimeType: "text/plain", text: "A text with é and 🚀" }],
  }));
  server.registerResource("row", new ResourceTemplate("matrix://rows/{id}", {}), {}, async (uri, { id }) => ({
    contents: [{ uri: uri.href, text: `row ${id}` }],
  }));
  server.registerPrompt("greet", { argsSchema: { name: z.string() } }, async ({ name }) => ({
    messages: [{ role: "user", content: { type: "text", text: `Greet ${name}` } }],
  }));
  return server;
}

if (process.argv[2] === "--stdio") {
  await make().connect(new StdioServerTransport());
} else {
  const sessions = new Map();
  const old = async (request, response) => {
    if (request.method === "GET") {
      const transport = new SSEServerTransport("/messages", response);
      sessions.set(transport.sessionId, transport);
      return make().connect(transport);
    }
    const transport = sessions.get(new URL(request.url, "http://localhost").searchParams.get("sessionId"));
    return transport ? transport.handlePostMessage(request, response) : response.writeHead(405).end();
  };
  const http = createServer(process.argv[2] === "--sse" ? old : async (request, response) => {
    let transport = sessions.get(request.headers["mcp-session-id"]);
    if (!transport) {
      const onsessioninitialized = (id) => sessions.set(id, transport);
      transport = new StreamableHTTPServerTransport({ sessionIdGenerator: randomUUID, onsessioninitialized });
      await make().connect(transport);
    }
    await transport.handleRequest(request, response);
  });
  // By itself it closes connections after five seconds, perhaps while a client writes to one.
  http.keepAliveTimeout = 120_000;
  http.listen(0, "127.0.0.1", () => console.log(http.address().port));
  process.stdin.on("end", () => process.exit(0)).resume();
}
