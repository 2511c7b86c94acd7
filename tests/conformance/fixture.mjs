// A server with what the scenarios of the conformance suite ask for, on the official SDK. Prints its port.
import { setTimeout as sleep } from "node:timers/promises";

import { Server } from "@modelcontextprotocol/sdk/server/index.js";
import * as types from "@modelcontextprotocol/sdk/types.js";

import { serve, transport } from "./http.mjs";

const PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
const WAV = "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAA=";
const text = (body) => ({ type: "text", text: body });
const nothing = { type: "object", properties: {} };
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
  test_simple_text: ["Says a sentence", nothing, async () => [text("This is a simple text response for testing.")]],
  test_image_content: ["Shows a picture", nothing, async () => [{ type: "image", data: PNG, mimeType: "image/png" }]],
  test_audio_content: ["Plays a sound", nothing, async () => [{ type: "audio", data: WAV, mimeType: "audio/wav" }]],
  test_embedded_resource: ["Hands out a resource", nothing, async () => [
    { type: "resource", resource: { uri: "test://embedded-resource", mimeType: "text/plain", text: "This is an embedded resource content." } },
  ]],
  test_multiple_content_types: ["Hands out several things", nothing, async () => [
    text("Multiple content types test:"),
    { type: "image", data: PNG, mimeType: "image/png" },
    { type: "resource", resource: { uri: "test://mixed-content-resource", mimeType: "application/json", text: '{"test":"data","value":123}' } },
  ]],
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
  test_error_handling: ["Fails", nothing, async () => {
    throw new Error("This tool intentionally returns an error for testing");
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

const user = (content) => ({ role: "user", content });
const prompts = {
  test_simple_prompt: [[], () => [user(text("This is a simple prompt for testing."))]],
  test_prompt_with_arguments: [["arg1", "arg2"], ({ arg1, arg2 }) => [user(text(`Prompt with arguments: arg1='${arg1}', arg2='${arg2}'`))]],
  test_prompt_with_embedded_resource: [["resourceUri"], ({ resourceUri }) => [
    user({ type: "resource", resource: { uri: resourceUri, mimeType: "text/plain", text: "Embedded resource content for testing." } }),
    user(text("Please process the embedded resource above.")),
  ]],
  test_prompt_with_image: [[], () => [
    user({ type: "image", data: PNG, mimeType: "image/png" }), user(text("Please analyze the image above.")),
  ]],
};
const resources = {
  "test://static-text": { mimeType: "text/plain", text: "This is the content of the static text resource." },
  "test://static-binary": { mimeType: "image/png", blob: PNG },
  "test://watched-resource": { mimeType: "text/plain", text: "Watched." },
};

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
  on(types.ListPromptsRequestSchema, async () => ({
    prompts: Object.entries(prompts).map(([name, [names]]) => ({
      name, description: name, arguments: names.map((name) => ({ name, description: name, required: true })),
    })),
  }));
  on(types.GetPromptRequestSchema, async ({ params }) => {
    const prompt = prompts[params.name];
    if (!prompt) throw new types.McpError(types.ErrorCode.InvalidParams, `no prompt ${params.name}`);
    return { messages: prompt[1](params.arguments ?? {}) };
  });
  on(types.ListResourcesRequestSchema, async () => ({
    resources: Object.entries(resources).map(([uri, { mimeType }]) => ({ uri, name: uri, description: uri, mimeType })),
  }));
  on(types.ListResourceTemplatesRequestSchema, async () => ({
    resourceTemplates: [{ uriTemplate: "test://template/{id}/data", name: "template", mimeType: "application/json" }],
  }));
  on(types.ReadResourceRequestSchema, async ({ params: { uri } }) => {
    const id = /^test:\/\/template\/([^/]+)\/data$/.exec(uri)?.[1];
    const templated = id && { mimeType: "application/json", text: JSON.stringify({ id, templateTest: true, data: `Data for ID: ${id}` }) };
    const resource = templated || resources[uri];
    if (!resource) throw new types.McpError(-32002, `no resource ${uri}`);
    return { contents: [{ uri, ...resource }] };
  });
  for (const schema of [types.SubscribeRequestSchema, types.UnsubscribeRequestSchema, types.SetLevelRequestSchema])
    on(schema, async () => ({}));
  on(types.CompleteRequestSchema, async () => ({ completion: { values: ["paris", "park", "party"], total: 150, hasMore: false } }));
  return server;
}

serve(async () => {
  const session = transport();
  await make().connect(session);
  return session;
});
