// A protected MCP server on Hono, with opaque tokens and introspection.
//
//   RESOURCE=http://127.0.0.1:3000/mcp ISSUER=https://auth.example/pool_1 CLIENT_ID=… CLIENT_SECRET=… \
//     npx tsx examples/resource-server-hono.ts
import { serve } from "@hono/node-server";
import { createMcpHandler, McpServer } from "@modelcontextprotocol/server";
import { type AuthInfo, createResourceServer } from "agentauth/resource-server";
import { Hono } from "hono";

const {
  RESOURCE: resource = "",
  ISSUER: issuer = "",
  CLIENT_ID: clientId = "",
  CLIENT_SECRET: clientSecret = "",
} = process.env;
const server = createResourceServer({
  resource,
  authorizationServers: [issuer],
  introspection: { clientId, clientSecret },
});

const mcp = createMcpHandler(({ authInfo }) => {
  const made = new McpServer({ name: "example", version: "1.0.0" });
  made.registerTool("whoami", { description: "Returns the caller." }, () => ({
    content: [{ type: "text", text: `${authInfo?.extra?.["subject"]} by ${authInfo?.clientId}` }],
  }));
  return made;
});

const app = new Hono<{ Variables: { auth: AuthInfo } }>();
app.use(server.hono());
app.all(new URL(resource).pathname, (context) => mcp.fetch(context.req.raw, { authInfo: context.get("auth") }));

const { port } = new URL(resource);
serve({ fetch: app.fetch, hostname: "127.0.0.1", port: Number(port) }, () => console.log(`listening at ${resource}`));
