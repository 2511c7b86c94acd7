// The official SDK's client of revisions with sessions, direct and through an endpoint of Firedoor's, on the same server: prints
// what each saw as JSON.   sessions.mjs URL ENDPOINT
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import * as types from "@modelcontextprotocol/sdk/types.js";

const [url, endpoint] = process.argv.slice(2);
const AT_ONCE = 1000;
const LARGE = 20 << 20;

async function look(transport) {
  const client = new Client({ name: "matrix", version: "1" }, { capabilities: { sampling: {}, elicitation: {} } });
  const model = { role: "assistant", model: "m", content: { type: "text", text: "said" } };
  client.setRequestHandler(types.CreateMessageRequestSchema, async () => model);
  client.setRequestHandler(types.ElicitRequestSchema, async () => ({ action: "accept", content: { username: "u", email: "e" } }));
  await client.connect(transport);
  const call = (name, args, options) => client.callTool({ name, arguments: args }, undefined, { timeout: 120_000, ...options });
  const failed = (promise) => promise.then(() => "no error", (error) => `${error.code} ${error.message}`);
  const seen = { server: client.getServerVersion(), capabilities: client.getServerCapabilities() };
  seen.tools = await client.listTools();
  seen.prompts = [await client.listPrompts(), await client.getPrompt({ name: "test_prompt_with_image" })];
  seen.resources = [await client.listResources(), await client.readResource({ uri: "test://static-binary" })];
  seen.result = await call("test_multiple_content_types");
  seen.tool_error = await call("test_error_handling");
  seen.errors = [
    await failed(call("no_such_tool")),
    await failed(client.readResource({ uri: "test://none" })),
    await failed(client.request({ method: "no/such" }, types.EmptyResultSchema)),
  ];
  seen.progress = [];
  await call("test_tool_with_progress", {}, { onprogress: ({ progress, total }) => seen.progress.push([progress, total]) });
  seen.sampling = await call("test_sampling", { prompt: "p" });
  seen.elicitation = await call("test_elicitation", { message: "m" });
  const stop = new AbortController();
  const before = (await call("given_up")).content[0].text;
  const waiting = failed(call("wait", {}, { signal: stop.signal }));
  setTimeout(() => stop.abort("enough"), 200);
  seen.cancelled = await waiting;
  let now = before;
  for (let tries = 0; now === before && tries < 100; tries++) now = (await call("given_up")).content[0].text;
  seen.given_up = Number(now) - Number(before);
  const blob = (await call("blob", { bytes: LARGE })).content[0].text;
  seen.large = [blob.length, blob === "x".repeat(LARGE)];
  const many = await Promise.all(Array.from({ length: AT_ONCE }, (_, n) => call("echo", { text: `${n} é🚀` })));
  seen.at_once = many.filter((answer, n) => answer.content[0].text === `${n} é🚀`).length;
  await client.close();
  return seen;
}

const direct = await look(new StreamableHTTPClientTransport(new URL(url)));
const beside = await look(new StreamableHTTPClientTransport(new URL(endpoint)));
console.log(JSON.stringify({ direct, "through an endpoint": beside }));
