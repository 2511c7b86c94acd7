// A server with what the scenarios of the conformance suite ask for of revision 2026-07-28, on the official SDK. Prints its port.
import { createServer } from "node:http";
import { randomBytes } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";

import { toNodeHandler } from "@modelcontextprotocol/node";
import {
  CLIENT_CAPABILITIES_META_KEY, LOG_LEVEL_META_KEY, McpServer, MissingRequiredClientCapabilityError, ProtocolError,
  ResourceNotFoundError, createMcpHandler, createRequestStateCodec, fromJsonSchema, inputRequired, inputResponse,
} from "@modelcontextprotocol/server";

import { completion, listed, nothing, plain, prompts, resource, template, text } from "./samples.mjs";

const INVALID_PARAMS = -32602;
const states = createRequestStateCodec({ key: randomBytes(32) });

const form = (message, property, type = "string") => inputRequired.elicit({
  message, requestedSchema: { type: "object", properties: { [property]: { type } }, required: [property] },
});
const sample = (prompt) =>
  inputRequired.createMessage({ messages: [{ role: "user", content: text(prompt) }], maxTokens: 100 });
const answered = (mcpReq, ...names) => names.every((name) => inputResponse(mcpReq.inputResponses, name).kind !== "missing");
// Asks for each of these, once with a state that has to come back.
const asking = (requests, state) => async (_, { mcpReq }) => {
  if (!answered(mcpReq, ...Object.keys(requests))) {
    const requestState = state && (await states.mint(state));
    return inputRequired({ inputRequests: requests, ...(state && { requestState }) });
  }
  if (state && mcpReq.requestState() === undefined) throw new ProtocolError(INVALID_PARAMS, "the state is missing");
  const said = Object.keys(requests).map((name) => JSON.stringify(inputResponse(mcpReq.inputResponses, name)));
  return [text(`${state ? "state-ok " : ""}${said.join(" ")}`)];
};
const may = ({ mcpReq }) => mcpReq.envelope?.[CLIENT_CAPABILITIES_META_KEY] ?? mcpReq._meta?.[CLIENT_CAPABILITIES_META_KEY] ?? {};
let changed = {};

// Name: description, schema of the arguments, what it does.
const tools = {
  ...plain,
  test_tool_with_progress: ["Says how far it is", nothing, async (_, { mcpReq }) => {
    const progressToken = mcpReq._meta?.progressToken;
    for (const progress of [0, 50, 100]) {
      if (progressToken !== undefined)
        await mcpReq.notify({ method: "notifications/progress", params: { progressToken, progress, total: 100 } });
      await sleep(50);
    }
    return [text("done")];
  }],
  test_missing_capability: ["Needs a model", nothing, async (_, context) => {
    if (!may(context).sampling) throw new MissingRequiredClientCapabilityError({ requiredCapabilities: { sampling: {} } });
    return [text("done")];
  }],
  test_streaming_elicitation: ["Says something while it works", nothing, async (_, { mcpReq }) => {
    const progressToken = mcpReq._meta?.progressToken ?? "none";
    await mcpReq.notify({ method: "notifications/progress", params: { progressToken, progress: 50, total: 100 } });
    return [text("done")];
  }],
  test_logging_tool: ["Logs where it is asked to", nothing, async (_, { mcpReq }) => {
    if ((mcpReq.envelope ?? mcpReq._meta)?.[LOG_LEVEL_META_KEY]) await mcpReq.log("info", "logged");
    return [text("done")];
  }],
  test_trigger_tool_change: ["Changes the tools", nothing, async () => (changed.tools(), [text("changed")])],
  test_trigger_prompt_change: ["Changes the prompts", nothing, async () => (changed.prompts(), [text("changed")])],
  test_custom_headers: ["Repeats an argument in a header", {
    type: "object",
    properties: { region: { type: "string", "x-mcp-header": "Region" }, count: { type: "integer", "x-mcp-header": "Count" } },
    required: ["region"],
  }, async ({ region }) => [text(`${region}`)]],
  json_schema_2020_12_tool: ["Tool with JSON Schema 2020-12 features", {
    $schema: "https://json-schema.org/draft/2020-12/schema",
    type: "object",
    $defs: { address: { $anchor: "addressDef", type: "object", properties: { street: { type: "string" }, city: { type: "string" } } } },
    properties: {
      name: { type: "string" }, address: { $ref: "#/$defs/address" },
      contactMethod: { type: "string", enum: ["phone", "email"] }, phone: { type: "string" }, email: { type: "string" },
    },
    allOf: [{ anyOf: [{ required: ["phone"] }, { required: ["email"] }] }],
    if: { properties: { contactMethod: { const: "phone" } }, required: ["contactMethod"] },
    then: { required: ["phone"] },
    else: { required: ["email"] },
    additionalProperties: false,
  }, async () => [text("ok")]],
  test_input_required_result_elicitation: ["Asks the user", nothing, async (_, { mcpReq }) => {
    const answer = inputResponse(mcpReq.inputResponses, "user_name");
    if (answer.kind === "elicit") return [text(`Hello, ${answer.content?.name}!`)];
    return inputRequired({ inputRequests: { user_name: form("What is your name?", "name") } });
  }],
  test_input_required_result_sampling: ["Asks the model", nothing, asking({ capital_question: sample("What is the capital of France?") })],
  test_input_required_result_list_roots: ["Asks for roots", nothing, asking({ client_roots: inputRequired.listRoots() })],
  test_input_required_result_request_state: ["Asks with a state", nothing, asking({ confirm: form("Confirmation", "ok", "boolean") }, "r")],
  test_input_required_result_tampered_state: ["Looks at its state", nothing, asking({ confirm: form("Confirmation", "ok", "boolean") }, "t")],
  test_input_required_result_multiple_inputs: ["Asks for several things", nothing, asking({
    user_name: form("Name", "name"), greeting: sample("Greeting"), client_roots: inputRequired.listRoots(),
  }, "m")],
  test_input_required_result_multi_round: ["Asks twice", nothing, async (_, { mcpReq }) => {
    const round = async (name, request) => inputRequired({ inputRequests: { [name]: request }, requestState: await states.mint(name) });
    if (answered(mcpReq, "step2")) return [text("done")];
    if (answered(mcpReq, "step1")) return round("step2", form("Colour", "color"));
    return round("step1", form("Name", "name"));
  }],
  test_input_required_result_capabilities: ["Asks for what there is", nothing, async (_, context) => {
    const all = { sampling: ["s", sample("Anything")], elicitation: ["e", form("Name", "name")] };
    const wanted = Object.entries(all).filter(([capability]) => may(context)[capability]).map(([, request]) => request);
    if (!wanted.length || answered(context.mcpReq, ...wanted.map(([name]) => name))) return [text("done")];
    return inputRequired({ inputRequests: Object.fromEntries(wanted) });
  }],
};

const asks = { name: "test_input_required_result_prompt", description: "Asks the user" };

function make() {
  const server = new McpServer({ name: "firedoor-modern-fixture", version: "1.0.0" }, {
    capabilities: { tools: { listChanged: true }, prompts: { listChanged: true }, resources: {}, completions: {}, logging: {} },
    requestState: { verify: states.verify },
  });
  // The SDK compares headers only with what it knows itself.
  server.registerTool("test_custom_headers", { inputSchema: fromJsonSchema(tools.test_custom_headers[1]) }, () => ({ content: [] }));
  const on = (method, answer) => server.server.setRequestHandler(method, answer);
  on("tools/list", async () => ({
    tools: Object.entries(tools).map(([name, [description, inputSchema]]) => ({ name, description, inputSchema })),
  }));
  on("tools/call", async ({ params }, context) => {
    const tool = tools[params.name];
    if (!tool) throw new ProtocolError(INVALID_PARAMS, `no tool ${params.name}`);
    try {
      const result = await tool[2](params.arguments ?? {}, context);
      return Array.isArray(result) ? { content: result } : result;
    } catch (error) {
      if (error instanceof ProtocolError) throw error;
      return { content: [text(error.message)], isError: true };
    }
  });
  on("prompts/list", async () => ({ prompts: [...listed.prompts, asks] }));
  on("prompts/get", async ({ params }, { mcpReq }) => {
    if (params.name === asks.name) {
      const answer = inputResponse(mcpReq.inputResponses, "user_context");
      if (answer.kind === "elicit")
        return { messages: [{ role: "user", content: text(`Prompt with context: ${answer.content?.context}`) }] };
      return inputRequired({ inputRequests: { user_context: form("Context", "context") } });
    }
    const prompt = prompts[params.name];
    if (!prompt) throw new ProtocolError(INVALID_PARAMS, `no prompt ${params.name}`);
    return { messages: prompt[1](params.arguments ?? {}) };
  });
  on("resources/list", async () => ({ resources: listed.resources }));
  on("resources/templates/list", async () => ({ resourceTemplates: [template] }));
  on("resources/read", async ({ params: { uri } }) => {
    const found = resource(uri);
    if (!found) throw new ResourceNotFoundError(uri);
    return { contents: [{ uri, ...found }] };
  });
  on("completion/complete", async () => ({ completion }));
  return server;
}

const LOCAL = /^(localhost|127\.0\.0\.1|\[::1\])(:\d+)?$/;
const handler = createMcpHandler(make, { legacy: "reject" });
changed = { tools: () => handler.notify.toolsChanged(), prompts: () => handler.notify.promptsChanged() };
const answer = toNodeHandler(handler);
const http = createServer((request, response) => {
  const origin = request.headers.origin && new URL(request.headers.origin).host;
  if (!LOCAL.test(request.headers.host) || (origin && !LOCAL.test(origin))) return response.writeHead(403).end();
  return answer(request, response);
});
// By itself it closes connections after five seconds, perhaps while a client writes to one.
http.keepAliveTimeout = 120_000;
http.listen(0, "127.0.0.1", () => console.log(http.address().port));
process.stdin.on("end", () => process.exit(0)).resume();
