// What the official TypeScript SDK's client, 1.x, sees of a server, as JSON. It knows the era with sessions only.
//   client_v1.mjs legacy URL | client_v1.mjs legacy -- COMMAND…
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import * as types from "@modelcontextprotocol/sdk/types.js";

import { look, target } from "./look.mjs";

const { stdio, url } = target();
const client = new Client({ name: "matrix", version: "1" }, { capabilities: { sampling: {}, elicitation: {} } });
await look(client, stdio ? new StdioClientTransport(stdio) : new StreamableHTTPClientTransport(url), {
  call: (params, options) => client.callTool(params, undefined, options),
  answer: (sampling, elicitation) => {
    client.setRequestHandler(types.CreateMessageRequestSchema, sampling);
    client.setRequestHandler(types.ElicitRequestSchema, elicitation);
  },
  listen: (heard) => client.setNotificationHandler(types.ToolListChangedNotificationSchema, heard),
});
