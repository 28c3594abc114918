import type { ServerShape } from "./shape.js";

/** The shape of n8n. */
export const n8n: ServerShape = {
  id: "n8n",
  title: "n8n",
  about: "The challenge names no document; it is at the well-known address.",
  source: "https://github.com/n8n-io/n8n/pull/34571",
  date: "2026-07-20",
  byDefault: true,
  options: {},
  server: "https://n8n.example/mcp-server/http",
  documents: {
    "https://n8n.example/.well-known/oauth-protected-resource/mcp-server/http": {
      resource: "https://n8n.example/mcp-server/http",
      authorization_servers: ["https://n8n.example"],
    },
    "https://n8n.example/.well-known/oauth-authorization-server": {
      issuer: "https://n8n.example",
      authorization_endpoint: "https://n8n.example/mcp-oauth/authorize",
      token_endpoint: "https://n8n.example/mcp-oauth/token",
      registration_endpoint: "https://n8n.example/mcp-oauth/register",
      response_types_supported: ["code"],
      grant_types_supported: ["authorization_code", "refresh_token"],
      token_endpoint_auth_methods_supported: ["none"],
      code_challenge_methods_supported: ["S256"],
    },
  },
  challenge: 'Bearer realm="n8n MCP Server"',
};
