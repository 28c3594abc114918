// The provider in front of an MCP server of the official SDK.
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { WebStandardStreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/webStandardStreamableHttp.js";
import { createWorker } from "./worker.js";

export default createWorker({
  async fetch(request, _env, context) {
    const server = new McpServer({ name: "cloudflare", version: "1.0.0" });
    server.registerTool("whoami", { description: "The user of the token" }, async () => ({
      content: [{ type: "text", text: `subject ${context.props.subject}` }],
    }));
    const transport = new WebStandardStreamableHTTPServerTransport({ sessionIdGenerator: undefined });
    await server.connect(transport);
    return transport.handleRequest(request);
  },
});
