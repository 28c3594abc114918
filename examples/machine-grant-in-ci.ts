// A job without a user: its client gets a token by client credentials. The CI system has the secret.
//
//   AGENTAUTH_CLIENT_SECRET=… npx tsx examples/machine-grant-in-ci.ts https://mcp.example/mcp <client_id> <issuer>
import { isAgentAuthError } from "agentauth";
import { createAgentClient } from "agentauth/node";
import { memoryStore } from "agentauth/store";

const [mcpUrl = "", clientId = "", issuer = ""] = process.argv.slice(2);

try {
  const agent = createAgentClient({
    // The secret is sent to this issuer only, whatever the server names.
    client: { clientId, issuer },
    grant: { type: "client_credentials" },
    // A runner that is thrown away stores nothing.
    store: memoryStore(),
  });
  const token = await agent.token(mcpUrl);
  console.log(`a token of ${token.issuer}`);
} catch (error) {
  if (!isAgentAuthError(error)) throw error;
  console.error(`${error.code}: ${error.message}`);
  process.exitCode = 1;
}
