// The provider in front of Cloudflare's McpAgent: a durable object for each session.
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { McpAgent } from "agents/mcp";
import { createWorker } from "./worker.js";

export class Whoami extends McpAgent {
  server = new McpServer({ name: "cloudflare", version: "1.0.0" });

  async init() {
    this.server.registerTool("whoami", { description: "The user of the token" }, async () => ({
      content: [{ type: "text", text: `subject ${this.props.subject}` }],
    }));
  }
}

export default createWorker(Whoami.serve("/mcp"));
