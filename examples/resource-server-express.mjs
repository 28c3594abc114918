// A protected MCP server on Express.
//
//   RESOURCE=http://127.0.0.1:3000/mcp ISSUER=https://auth.example/pool_1 node examples/resource-server-express.mjs
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { StreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/streamableHttp.js";
import { createResourceServer } from "agentauth/resource-server";
import express from "express";

const { RESOURCE: resource = "", ISSUER: issuer = "" } = process.env;
const server = createResourceServer({
  resource,
  authorizationServers: [issuer],
  requiredScopes: ["mcp"],
  scopesSupported: ["mcp", "reports:read"],
  // Why a token was not taken is for the operator; the client is told that it was not.
  log: ({ type, reason, detail }) => console.error(`${type}: ${reason ?? ""} ${detail}`),
});

function createMcp() {
  const mcp = new McpServer({ name: "example", version: "1.0.0" });
  mcp.registerTool("whoami", { description: "Tells who is asking." }, ({ authInfo }) => ({
    content: [{ type: "text", text: `${authInfo.extra.subject} by ${authInfo.clientId}` }],
  }));
  mcp.registerTool("report", { description: "Needs the scope reports:read." }, () => ({
    content: [{ type: "text", text: "12 pools" }],
  }));
  return mcp;
}

/** The scopes that a request needs beside the required ones; asked only of requests whose token is good. */
const scopes = ({ body }) => (body?.params?.name === "report" ? ["reports:read"] : []);

const app = express();
app.get(server.metadataPath, server.middleware());
app.post(new URL(resource).pathname, express.json(), server.middleware({ scopes }), async (request, response) => {
  const transport = new StreamableHTTPServerTransport({ sessionIdGenerator: undefined });
  response.on("close", () => transport.close());
  await createMcp().connect(transport);
  await transport.handleRequest(request, response, request.body);
});
app.listen(new URL(resource).port, "127.0.0.1", () => console.log(`listening at ${resource}`));
