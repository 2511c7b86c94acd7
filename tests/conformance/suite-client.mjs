// A client for the conformance suite's scenarios of clients, on the official SDK. The suite adds the address and names scenario and
// revision in variables.   suite-client.mjs direct URL | suite-client.mjs SHIM ENTRY URL, which reaches it through Firedoor
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";

const url = process.argv.at(-1);
const [command, entry] = process.argv.slice(2, -1);
const { MCP_CONFORMANCE_SCENARIO: scenario, MCP_CONFORMANCE_PROTOCOL_VERSION: revision } = process.env;
const { toolCalls } = JSON.parse(process.env.MCP_CONFORMANCE_CONTEXT ?? "{}");
const modern = revision >= "2026-07-28";
const args = ["--entry", entry, "--url", url];
const transport = command === "direct"
  ? new StreamableHTTPClientTransport(new URL(url))
  : new StdioClientTransport({ command, args, env: { ...process.env }, stderr: "inherit" });

const client = new Client({ name: "conformance", version: "1" }, {
  capabilities: { elicitation: { form: { applyDefaults: true } }, sampling: {}, roots: {} },
  versionNegotiation: { mode: modern ? { pin: revision } : "legacy" },
});
const call = (name, args = {}) => client.callTool({ name, arguments: args });
client.setRequestHandler("elicitation/create", async () => {
  // A call of its own, while another waits for this answer.
  if (!modern) return { action: "accept", content: {} };
  await call("test_mrtr_unrelated");
  return { action: "accept", content: { confirmed: true } };
});
client.setRequestHandler("sampling/createMessage", async () => ({ role: "assistant", model: "m", content: { type: "text", text: "said" } }));
client.setRequestHandler("roots/list", async () => ({ roots: [] }));

await client.connect(transport);
const { tools } = await client.listTools();
const scenarios = {
  initialize: () => {},
  "request-metadata": () => {},
  "json-schema-ref-no-deref": () => {},
  tools_call: () => call("add_numbers", { a: 2, b: 3 }),
  "elicitation-sep1034-client-defaults": () => call("test_client_elicitation_defaults"),
  "sse-retry": () => call("test_reconnection"),
  "json-schema-2020-12-preservation": () =>
    call("json_schema_echo", { schema: tools.find(({ name }) => name === "json_schema_2020_12_tool").inputSchema }),
  "sep-2322-client-request-state": async () => {
    for (const name of ["test_mrtr_echo_state", "test_mrtr_no_state"]) await call(name);
    // The SDK takes no result that does not say of which kind it is; what counts is that it asks no second time.
    await call("test_mrtr_no_result_type").catch(() => {});
  },
  "http-standard-headers": async () => {
    await call(tools[0].name);
    await client.readResource({ uri: (await client.listResources()).resources[0].uri });
    await client.getPrompt({ name: (await client.listPrompts()).prompts[0].name });
  },
  "http-custom-headers": async () => {
    for (const { name, arguments: args } of toolCalls) await call(name, args);
  },
  // Whatever is offered is called: it is for whoever speaks HTTP not to.
  "http-invalid-tool-headers": async () => {
    for (const { name, inputSchema } of tools) {
      const args = Object.fromEntries(Object.keys(inputSchema.properties ?? {}).map((name) => [name, "x"]));
      await call(name, args).catch(() => {});
    }
  },
};
await scenarios[scenario]();
await client.close();
process.exit(0);
