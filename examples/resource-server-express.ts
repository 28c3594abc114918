// A protected MCP server on Express.
//
//   RESOURCE=http://127.0.0.1:3000/mcp ISSUER=https://auth.example/pool_1 npx tsx examples/resource-server-express.ts
import { promisify } from "node:util";
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { StreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/streamableHttp.js";
import { createResourceServer } from "agentauth/resource-server";
import express, { type NextFunction, type Request, type Response } from "express";

const { RESOURCE: resource = "", ISSUER: issuer = "" } = process.env;
const server = createResourceServer({
  resource,
  authorizationServers: [issuer],
  requiredScopes: ["mcp"],
  scopesSupported: ["mcp", "reports:read"],
  // The reason of a rejection is for the operator; the client only learns that its token was rejected.
  log: (event) => console.error(`${event.type}: ${event.type === "refused" ? event.reason : ""} ${event.detail}`),
});

function createMcp() {
  const mcp = new McpServer({ name: "example", version: "1.0.0" });
  mcp.registerTool("whoami", { description: "Returns the caller." }, ({ authInfo }) => ({
    content: [{ type: "text", text: `${authInfo?.extra?.["subject"]} by ${authInfo?.clientId}` }],
  }));
  mcp.registerTool("report", { description: "Needs the scope reports:read." }, () => ({
    content: [{ type: "text", text: "12 pools" }],
  }));
  return mcp;
}

const parseBody = promisify(express.json());

/**
 * The scopes that a request needs beside the required ones. It is called only with a valid token, so it parses the body:
 * without a token, no body is read.
 */
async function scopes(request: Request): Promise<string[]> {
  await parseBody(request, request.res as Response);
  return request.body?.params?.name === "report" ? ["reports:read"] : [];
}

const app = express();
app.disable("x-powered-by");
app.get(server.metadataPath, server.middleware());
app.post(new URL(resource).pathname, server.middleware({ scopes }), async (request, response) => {
  const transport = new StreamableHTTPServerTransport();
  response.on("close", () => transport.close());
  await createMcp().connect(transport);
  await transport.handleRequest(request, response, request.body);
});
// Without an error handler, Express sends the stack trace to the client. The handler needs all four parameters.
app.use((error: Error & { status?: number }, _request: Request, response: Response, next: NextFunction) => {
  console.error(`failed: ${JSON.stringify(error.message)}`);
  if (response.headersSent) return next(error);
  const status = error.status ?? 500;
  response.status(status).json({ error: status < 500 ? "invalid_request" : "server_error" });
});
app.listen(Number(new URL(resource).port), "127.0.0.1", () => console.log(`listening at ${resource}`));
