// The official SDK's client of revision 2026-07-28, direct and through endpoints of Firedoor's, one for the same server and one for
// the same server as a program: prints what each saw as JSON.   stateless.mjs URL ENDPOINT PROGRAM
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";

const [url, endpoint, program] = process.argv.slice(2);
const AT_ONCE = 1000;
const LARGE = 20 << 20;

async function look(address) {
  const client = new Client(
    { name: "stateless", version: "1" },
    { capabilities: { elicitation: { form: {} } }, versionNegotiation: { mode: { pin: "2026-07-28" } } },
  );
  client.setRequestHandler("elicitation/create", async () => ({ action: "accept", content: { sure: true } }));
  let heard = 0;
  client.setNotificationHandler("notifications/tools/list_changed", () => void heard++);
  await client.connect(new StreamableHTTPClientTransport(new URL(address)));
  const call = (name, args = {}, options) => client.callTool({ name, arguments: args }, { timeout: 120_000, ...options });
  const failed = (promise) => promise.then(() => "no error", (error) => `${error.code} ${error.message}`);
  const seen = { version: client.getNegotiatedProtocolVersion?.(), server: client.getServerVersion() };
  seen.capabilities = client.getServerCapabilities();
  seen.instructions = client.getInstructions();
  seen.tools = await client.listTools();
  seen.resources = [await client.listResources(), await client.readResource({ uri: "test://one" })];
  seen.errors = [await failed(call("no_such_tool")), await failed(client.readResource({ uri: "test://none" }))];
  seen.headers = [await call("where", { region: "eu west" }), await call("where", { region: " né\u{1f680}" })];
  seen.tool_error = await call("fail");
  seen.progress = [];
  await call("progress", {}, { onprogress: ({ progress, total }) => seen.progress.push([progress, total]) });
  seen.input_required = await call("confirm");
  const stop = new AbortController();
  const before = (await call("given_up")).content[0].text;
  const waiting = call("wait", {}, { signal: stop.signal }).then(() => "answered", () => "given up");
  setTimeout(() => stop.abort("enough"), 200);
  seen.cancelled = await waiting;
  let now = before;
  for (let tries = 0; now === before && tries < 100; tries++) now = (await call("given_up")).content[0].text;
  seen.given_up = Number(now) - Number(before);
  const subscription = await client.listen({ toolsListChanged: true });
  await call("change");
  for (let tries = 0; heard === 0 && tries < 100; tries++) await call("echo", { text: "" });
  seen.heard = heard;
  await subscription.close();
  const blob = (await call("blob", { bytes: LARGE })).content[0].text;
  seen.large = [blob.length, blob === "x".repeat(LARGE)];
  const many = await Promise.all(Array.from({ length: AT_ONCE }, (_, n) => call("echo", { text: `${n} é🚀` })));
  seen.at_once = many.filter((answer, n) => answer.content[0].text === `${n} é🚀`).length;
  await client.close();
  return seen;
}

const seen = { direct: await look(url) };
seen["through an endpoint"] = await look(endpoint);
seen["through an endpoint for a program"] = await look(program);
console.log(JSON.stringify(seen));
