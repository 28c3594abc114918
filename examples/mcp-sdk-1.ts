// Calls a tool of a protected MCP server with the official SDK @modelcontextprotocol/sdk 1.x.
//
//   npx tsx examples/mcp-sdk-1.ts https://mcp.example/mcp whoami
import { homedir } from "node:os";
import { join } from "node:path";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import type { Transport } from "@modelcontextprotocol/sdk/shared/transport.js";
import { AgentClient, isAgentAuthError } from "agentauth";
import { fileStore, terminalLogin } from "agentauth/node";

const [mcpUrl = "", tool = ""] = process.argv.slice(2);
const url = new URL(mcpUrl);
const login = terminalLogin({ say: (text) => console.error(text), env: process.env, input: process.stdin });
// All processes that use this folder share one login and one refresh.
const agent = new AgentClient({ store: fileStore(join(homedir(), ".my-agent")), login, clientName: "My agent" });

const client = new Client({ name: "my-agent", version: "1.0.0" });
try {
  const transport = new StreamableHTTPClientTransport(url, { authProvider: agent.oauthClientProvider(url) });
  // The cast is needed with the compiler option exactOptionalPropertyTypes only.
  await client.connect(transport as Transport);
  const { content } = await client.callTool({ name: tool, arguments: {} });
  console.log(JSON.stringify(content));
} catch (error) {
  if (!isAgentAuthError(error)) throw error;
  console.error(`${error.code}: ${error.message}`);
  process.exitCode = 1;
} finally {
  await client.close();
}
