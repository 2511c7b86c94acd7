// What the official TypeScript SDK's client, 1.x, sees of a server, as JSON. It knows the era with sessions only.
//   client_v1.mjs legacy URL | client_v1.mjs legacy --sse URL | client_v1.mjs legacy -- COMMAND…
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { SSEClientTransport } from "@modelcontextprotocol/sdk/client/sse.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import * as types from "@modelcontextprotocol/sdk/types.js";

import { look, target } from "./look.mjs";

const { stdio, sse, url } = target();
const transport = stdio ? new StdioClientTransport(stdio) : sse ? new SSEClientTransport(sse) : new StreamableHTTPClientTransport(url);
const client = new Client({ name: "matrix", version: "1" }, { capabilities: { sampling: {}, elicitation: {} } });
await look(client, transport, {
  call: (params, options) => client.callTool(params, undefined, options),
  answer: (sampling, elicitation) => {
    client.setRequestHandler(types.CreateMessageRequestSchema, sampling);
    client.setRequestHandler(types.ElicitRequestSchema, elicitation);
  },
  listen: (heard) => client.setNotificationHandler(types.ToolListChangedNotificationSchema, heard),
  more: async (seen) => {
    // Names and times of tasks differ from run to run.
    const plain = ({ taskId, createdAt, lastUpdatedAt, ...rest }) => ({ ...rest, named: Boolean(taskId) });
    const { tasks } = client.experimental;
    if (!seen.capabilities.tasks) return;
    const run = async (text, until = () => false) => {
      const heard = [];
      for await (const message of tasks.callToolStream({ name: "later", arguments: { text } }, undefined, { task: { ttl: 60_000 } })) {
        heard.push(message);
        if (until(message)) break;
      }
      return heard;
    };
    const all = await run("é🚀");
    const id = all[0].task.taskId;
    const never = (await run("never", (message) => message.type === "taskCreated"))[0].task;
    const named = (answer) => JSON.parse(JSON.stringify(answer).replaceAll(id, "its name"));
    seen.tasks = {
      created: plain(all[0].task),
      // How often its state was asked for depends on time.
      kinds: [...new Set(all.map((message) => message.type))],
      result: named(all.at(-1).result),
      again: named(await tasks.getTaskResult(id, types.CallToolResultSchema)),
      state: plain(await tasks.getTask(id)),
      cancelled: plain(await tasks.cancelTask(never.taskId)),
      listed: (await tasks.listTasks()).tasks.map((task) => task.status).sort(),
      unknown: await tasks.getTask("none").catch((error) => `${error.code} ${error.message}`),
      without: await client.callTool({ name: "later", arguments: { text: "x" } }).catch((error) => `${error.code} ${error.message}`),
    };
  },
});
