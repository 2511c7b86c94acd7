// What both TypeScript clients look at.
const AT_ONCE = 1000;
const LARGE = 20 << 20;

// Where the command line points: the era, and either a process to start or a URL, which may be of HTTP+SSE.
export function target() {
  const [era, where, command, ...args] = process.argv.slice(2);
  if (where === "--sse") return { era, sse: new URL(command) };
  if (where !== "--") return { era, url: new URL(where) };
  // By itself this client takes no message above 10 MiB over stdio.
  return { era, stdio: { command, args, env: { ...process.env }, stderr: "inherit", maxBufferSize: 2 * LARGE } };
}

// Prints what the client sees. `sdk` has what differs between the SDK's versions.
export async function look(client, transport, sdk) {
  const model = { role: "assistant", model: "m", content: { type: "text", text: "said" } };
  sdk.answer(async () => model, async () => ({ action: "accept", content: { name: "Ada" } }));
  try {
    await client.connect(transport);
  } catch (error) {
    // Over HTTP these clients put words of their own around the server's error, and 1.x does over stdio, too.
    const said = /\{"jsonrpc".*\}/.exec(error.message);
    const { code, message } = said ? JSON.parse(said[0]).error : error;
    console.log(JSON.stringify({ refused: `${code} ${message.replace(/^MCP error -\d+: /, "")}` }));
    process.exit(0);
  }
  const call = (name, args = {}, options = {}) => sdk.call({ name, arguments: args }, { timeout: 120_000, ...options });
  const failed = (promise) => promise.then((answer) => answer, (error) => `${error.code} ${error.message}`);
  const said = async (name) => (await call(name)).content[0].text;
  const until = async (what) => {
    for (let tries = 0; tries < 300 && !(await what()); tries++) await new Promise((resolve) => setTimeout(resolve, 10));
  };

  const seen = { server: client.getServerVersion(), capabilities: client.getServerCapabilities() };
  seen.version = client.getNegotiatedProtocolVersion?.();
  seen.tools = await client.listTools();
  seen.prompts = [await client.listPrompts(), await client.getPrompt({ name: "greet", arguments: { name: "Ada" } })];
  seen.resources = [await client.listResources(), await client.listResourceTemplates(),
    await client.readResource({ uri: "matrix://notes" }), await client.readResource({ uri: "matrix://rows/7" })];
  seen.result = await call("echo", { text: "é🚀 \u2028 \"" });
  seen.tool_error = await failed(call("fail"));
  seen.errors = [await failed(call("no_such_tool")), await failed(client.readResource({ uri: "matrix://none" }))];
  seen.progress = [];
  await call("steps", {}, { onprogress: ({ progress, total }) => seen.progress.push([progress, total]) });
  seen.elicitation = await failed(call("ask", { question: "Who?" }));
  seen.sampling = await failed(call("model", { prompt: "p" }));
  seen.changes = false;
  await sdk.listen(() => (seen.changes = true));
  await call("change");
  await until(() => seen.changes);
  const before = Number(await said("given_up"));
  const stop = new AbortController();
  const waiting = failed(call("wait", {}, { signal: stop.signal }));
  setTimeout(() => stop.abort("enough"), 200);
  seen.cancelled = await waiting;
  await until(async () => Number(await said("given_up")) > before);
  seen.given_up = Number(await said("given_up")) - before;
  const blob = (await call("blob", { bytes: LARGE })).content[0].text;
  seen.large = [blob.length, blob === "x".repeat(LARGE)];
  const many = await Promise.all(Array.from({ length: AT_ONCE }, (_, n) => call("echo", { text: `${n} é🚀` })));
  seen.at_once = many.filter((answer, n) => answer.content[0].text === `${n} é🚀`).length;
  await sdk.more?.(seen);
  await client.close();
  console.log(JSON.stringify(seen));
  process.exit(0);
}
