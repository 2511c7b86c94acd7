// A server with what the scenarios of the conformance suite ask for, on the official SDK. Prints its port.
import { setTimeout as sleep } from "node:timers/promises";

import { Server } from "@modelcontextprotocol/sdk/server/index.js";
import * as types from "@modelcontextprotocol/sdk/types.js";

import { serve, transport } from "./http.mjs";
import { completion, listed, nothing, plain, prompts, resource, template, text } from "./samples.mjs";

const strings = (...names) => ({
  type: "object",
  properties: Object.fromEntries(names.map((name) => [name, { type: "string" }])),
  required: names,
});
const ask = async (extra, message, requestedSchema) =>
  extra.sendRequest({ method: "elicitation/create", params: { message, requestedSchema } }, types.ElicitResultSchema);
const done = (answer) =>
  `Elicitation completed: action=${answer.action}, content=${JSON.stringify(answer.content ?? {})}`;

// Name: description, schema of the arguments, what it does.
const tools = {
  ...plain,
  test_tool_with_logging: ["Logs while it works", nothing, async (_, extra) => {
    for (const data of ["Tool execution started", "Tool processing data", "Tool execution completed"]) {
      await extra.sendNotification({ method: "notifications/message", params: { level: "info", data } });
      await sleep(50);
    }
    return [text("done")];
  }],
  test_tool_with_progress: ["Says how far it is", nothing, async (_, extra) => {
    const progressToken = extra._meta?.progressToken;
    for (const progress of [0, 50, 100]) {
      if (progressToken !== undefined)
        await extra.sendNotification({ method: "notifications/progress", params: { progressToken, progress, total: 100 } });
      await sleep(50);
    }
    return [text("done")];
  }],
  test_sampling: ["Asks the model", strings("prompt"), async ({ prompt }, extra) => {
    const messages = [{ role: "user", content: text(prompt) }];
    const answer = await extra.sendRequest(
      { method: "sampling/createMessage", params: { messages, maxTokens: 100 } }, types.CreateMessageResultSchema);
    return [text(`LLM response: ${answer.content.text ?? ""}`)];
  }],
  test_elicitation: ["Asks the user", strings("message"), async ({ message }, extra) => {
    const answer = await ask(extra, message, strings("username", "email"));
    return [text(`User response: action: ${answer.action}, content: ${JSON.stringify(answer.content ?? {})}`)];
  }],
  test_elicitation_sep1034_defaults: ["Asks with defaults", nothing, async (_, extra) => [text(done(await ask(extra, "Please confirm", {
    type: "object",
    properties: {
      name: { type: "string", default: "John Doe" },
      age: { type: "integer", default: 30 },
      score: { type: "number", default: 95.5 },
      status: { type: "string", enum: ["active", "inactive", "pending"], default: "active" },
      verified: { type: "boolean", default: true },
    },
  })))]],
  test_elicitation_sep1330_enums: ["Asks to choose", nothing, async (_, extra) => {
    const titled = (...titles) => titles.map((title, n) => ({ const: `value${n + 1}`, title }));
    return [text(done(await ask(extra, "Please choose", {
      type: "object",
      properties: {
        untitledSingle: { type: "string", enum: ["option1", "option2", "option3"] },
        titledSingle: { type: "string", oneOf: titled("First Option", "Second Option", "Third Option") },
        legacyEnum: { type: "string", enum: ["opt1", "opt2", "opt3"], enumNames: ["Option One", "Option Two", "Option Three"] },
        untitledMulti: { type: "array", items: { type: "string", enum: ["option1", "option2", "option3"] } },
        titledMulti: { type: "array", items: { anyOf: titled("First Choice", "Second Choice", "Third Choice") } },
      },
    })))];
  }],
  test_reconnection: ["Closes its stream while it works", nothing, async (_, extra) => {
    await sleep(50);
    extra.closeSSEStream?.();
    await sleep(100);
    return [text("Reconnection test completed successfully")];
  }],
  json_schema_2020_12_tool: ["Tool with JSON Schema 2020-12 features", {
    $schema: "https://json-schema.org/draft/2020-12/schema",
    type: "object",
    $defs: { address: { type: "object", properties: { street: { type: "string" }, city: { type: "string" } } } },
    properties: { name: { type: "string" }, address: { $ref: "#/$defs/address" } },
    additionalProperties: false,
  }, async () => [text("ok")]],
  // Not of the suite: for comparing and measuring.
  echo: ["Says it again", strings("text"), async ({ text: said }) => [text(said)]],
  blob: ["Many letters", { type: "object", properties: { bytes: { type: "integer" } } }, async ({ bytes }) => [text("x".repeat(bytes))]],
  wait: ["Waits until it is given up", nothing, async (_, extra) => {
    await new Promise((resolve) => extra.signal.addEventListener("abort", resolve));
    given_up += 1;
    return [];
  }],
  given_up: ["How many were given up", nothing, async () => [text(String(given_up))]],
};
let given_up = 0;

function make() {
  const capabilities = { tools: {}, prompts: {}, resources: { subscribe: true }, logging: {}, completions: {} };
  const server = new Server({ name: "firedoor-fixture", version: "1.0.0" }, { capabilities });
  const on = (schema, answer) => server.setRequestHandler(schema, answer);
  on(types.ListToolsRequestSchema, async () => ({
    tools: Object.entries(tools).map(([name, [description, inputSchema]]) => ({ name, description, inputSchema })),
  }));
  on(types.CallToolRequestSchema, async ({ params }, extra) => {
    const tool = tools[params.name];
    if (!tool) throw new types.McpError(types.ErrorCode.InvalidParams, `no tool ${params.name}`);
    try {
      return { content: await tool[2](params.arguments ?? {}, extra) };
    } catch (error) {
      return { content: [text(error.message)], isError: true };
    }
  });
  on(types.ListPromptsRequestSchema, async () => ({ prompts: listed.prompts }));
  on(types.GetPromptRequestSchema, async ({ params }) => {
    const prompt = prompts[params.name];
    if (!prompt) throw new types.McpError(types.ErrorCode.InvalidParams, `no prompt ${params.name}`);
    return { messages: prompt[1](params.arguments ?? {}) };
  });
  on(types.ListResourcesRequestSchema, async () => ({ resources: listed.resources }));
  on(types.ListResourceTemplatesRequestSchema, async () => ({ resourceTemplates: [template] }));
  on(types.ReadResourceRequestSchema, async ({ params: { uri } }) => {
    const found = resource(uri);
    if (!found) throw new types.McpError(-32002, `no resource ${uri}`);
    return { contents: [{ uri, ...found }] };
  });
  for (const schema of [types.SubscribeRequestSchema, types.UnsubscribeRequestSchema, types.SetLevelRequestSchema])
    on(schema, async () => ({}));
  on(types.CompleteRequestSchema, async () => ({ completion }));
  return server;
}

serve(async () => {
  const session = transport();
  await make().connect(session);
  return session;
});
