// Calls a protected server with the login of the command line, which every process of the user shares.
//
//   agentauth login https://mcp.example/mcp
//   npx tsx examples/token-in-script.ts https://mcp.example/mcp
import { isAgentAuthError } from "agentauth";
import { createAgentClient } from "agentauth/node";

const [mcpUrl = ""] = process.argv.slice(2);

try {
  const agent = createAgentClient();
  const { scope, expiresAt } = await agent.token(mcpUrl);
  console.log(`a token for ${scope ?? "(no scope)"}, valid until ${expiresAt?.toISOString() ?? "(unknown)"}`);
  // Refreshes the token when it expires, so there is no need to handle it.
  const response = await agent.fetch(mcpUrl, {
    method: "POST",
    headers: { "content-type": "application/json", accept: "application/json, text/event-stream" },
    body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/list" }),
  });
  console.log(`HTTP ${response.status}`);
} catch (error) {
  if (!isAgentAuthError(error)) throw error;
  switch (error.code) {
    case "login_required":
      console.error(`log in first: agentauth login ${mcpUrl}`);
      break;
    default:
      console.error(`${error.code}: ${error.message}`);
  }
  process.exitCode = 1;
}
