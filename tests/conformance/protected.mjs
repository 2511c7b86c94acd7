// A server on the official SDK that wants a login, and its issuer, oidc-provider, each on a port of its own. Prints the
// server's. `/end` ends every access token, `/tokens` counts what is left.
import { createServer } from "node:http";
import { once } from "node:events";

import { Server } from "@modelcontextprotocol/sdk/server/index.js";
import { StreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/streamableHttp.js";
import * as types from "@modelcontextprotocol/sdk/types.js";
import { Provider } from "oidc-provider";

async function listen() {
  const server = createServer();
  await once(server.listen(0, "127.0.0.1"), "listening");
  return [server, `http://127.0.0.1:${server.address().port}`];
}

const [issuing, issuer] = await listen();
const [serving, origin] = await listen();
const resource = `${origin}/mcp`;
const provider = new Provider(issuer, {
  scopes: ["openid", "offline_access"],
  pkce: { required: () => true },
  rotateRefreshToken: true,
  findAccount: (_, id) => ({ accountId: id, claims: () => ({ sub: id }) }),
  features: {
    registration: { enabled: true },
    revocation: { enabled: true },
    deviceFlow: { enabled: true },
    resourceIndicators: {
      enabled: true,
      getResourceServerInfo: (_, asked) => {
        if (asked !== resource) throw new Error("another resource");
        return { scope: "tools", audience: resource, accessTokenFormat: "opaque" };
      },
    },
  },
});
issuing.on("request", provider.callback());
const refreshes = [];
provider.on("grant.success", (ctx) => {
  if (ctx.oidc.params.grant_type === "refresh_token") refreshes.push(ctx.oidc.params.refresh_token);
});

const seen = new Set();
const find = (token) => provider.AccessToken.find(token);

async function answer(request, response) {
  const say = (status, value, headers = {}) => response.writeHead(status, headers).end(JSON.stringify(value));
  switch (request.url) {
    case "/.well-known/oauth-protected-resource/mcp":
      return say(200, { resource, authorization_servers: [issuer], scopes_supported: ["tools"] });
    case "/end":
      for (const token of seen) await (await find(token))?.destroy();
      return say(200, {});
    case "/tokens": {
      const alive = await Promise.all([...seen].map(find));
      return say(200, { seen: seen.size, alive: alive.filter(Boolean).length, refreshes: refreshes.length });
    }
  }
  const token = (request.headers.authorization ?? "").replace(/^Bearer /, "");
  const known = token && (await find(token));
  if (!known || ![known.aud].flat().includes(resource))
    return say(401, { error: "invalid_token" }, {
      "www-authenticate": `Bearer resource_metadata="${origin}/.well-known/oauth-protected-resource/mcp"`,
    });
  seen.add(token);
  const server = new Server({ name: "protected", version: "1" }, { capabilities: { tools: {} } });
  server.setRequestHandler(types.ListToolsRequestSchema, () => ({
    tools: [{ name: "whoami", inputSchema: { type: "object" } }],
  }));
  server.setRequestHandler(types.CallToolRequestSchema, () => ({
    content: [{ type: "text", text: `${known.accountId} ${known.scope}` }],
  }));
  const transport = new StreamableHTTPServerTransport({ sessionIdGenerator: undefined });
  await server.connect(transport);
  await transport.handleRequest(request, response);
}

serving.on("request", (request, response) => answer(request, response).catch((e) => response.writeHead(500).end(`${e}`)));
console.log(serving.address().port);
process.stdin.on("end", () => process.exit(0)).resume();
