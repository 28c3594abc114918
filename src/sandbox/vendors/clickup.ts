import type { ServerShape } from "./shape.js";

/** The shape of ClickUp. */
export const clickup: ServerShape = {
  id: "clickup",
  title: "ClickUp",
  about: "Only clients on a list may register.",
  source: "https://github.com/appstrate/appstrate/issues/602",
  date: "2026-06-06",
  byDefault: false,
  options: {
    clientId: "your-client",
  },
  server: "https://mcp.clickup.com/mcp",
  documents: {
    "https://mcp.clickup.com/.well-known/oauth-protected-resource/mcp": {
      resource: "https://mcp.clickup.com/mcp",
      authorization_servers: ["https://mcp.clickup.com"],
      scopes_supported: ["read", "write"],
    },
    "https://mcp.clickup.com/.well-known/oauth-authorization-server": {
      issuer: "https://mcp.clickup.com",
      authorization_endpoint: "https://mcp.clickup.com/oauth/authorize",
      token_endpoint: "https://mcp.clickup.com/oauth/token",
      registration_endpoint: "https://mcp.clickup.com/oauth/register",
      response_types_supported: ["code"],
      grant_types_supported: ["authorization_code", "refresh_token"],
      token_endpoint_auth_methods_supported: ["none"],
      code_challenge_methods_supported: ["S256"],
    },
  },
  client: true,
  refusals: [
    {
      at: "register",
      status: 400,
      body: {
        error: "invalid_request",
        error_description: "Your integration is not currently allowlisted.",
      },
    },
  ],
};
