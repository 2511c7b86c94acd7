// What the official TypeScript SDK's client, 2.x, sees of a server, as JSON.
//   client.mjs ERA URL | client.mjs ERA --sse URL | client.mjs ERA -- COMMAND…
// The era is modern, legacy, or auto, where it finds out by itself.
import { Client, SSEClientTransport, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";

import { look, target } from "./look.mjs";

const { era, stdio, sse, url } = target();
const transport = stdio ? new StdioClientTransport(stdio) : sse ? new SSEClientTransport(sse) : new StreamableHTTPClientTransport(url);
const client = new Client({ name: "matrix", version: "1" }, {
  capabilities: { sampling: {}, elicitation: {} },
  versionNegotiation: { mode: era === "modern" ? { pin: "2026-07-28" } : era },
});
await look(client, transport, {
  call: (params, options) => client.callTool(params, options),
  answer: (sampling, elicitation) => {
    client.setRequestHandler("sampling/createMessage", sampling);
    client.setRequestHandler("elicitation/create", elicitation);
  },
  listen: async (call) => {
    client.setNotificationHandler("notifications/tools/list_changed", call);
    if (era === "modern") await client.listen({ toolsListChanged: true });
  },
});
