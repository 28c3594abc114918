import type { ServerShape } from "./shape.js";

/** The shape of HubSpot. */
export const hubspot: ServerShape = {
  id: "hubspot",
  title: "HubSpot",
  about: "Clients cannot register, and send their secret in the form.",
  source: "https://github.com/NousResearch/hermes-agent/pull/112023",
  date: "2026-09-15",
  byDefault: false,
  options: {
    clientId: "your-client",
    issuer: "https://mcp.hubspot.com",
  },
  server: "https://mcp.hubspot.com/",
  documents: {
    "https://mcp.hubspot.com/.well-known/oauth-protected-resource": {
      resource: "https://mcp.hubspot.com",
      authorization_servers: ["https://mcp.hubspot.com"],
    },
    "https://mcp.hubspot.com/.well-known/oauth-authorization-server": {
      issuer: "https://mcp.hubspot.com",
      authorization_endpoint: "https://mcp.hubspot.com/oauth/authorize/user",
      token_endpoint: "https://mcp.hubspot.com/oauth/v3/token",
      response_types_supported: ["code"],
      grant_types_supported: ["authorization_code", "refresh_token"],
      token_endpoint_auth_methods_supported: ["client_secret_post"],
      code_challenge_methods_supported: ["S256"],
    },
  },
  client: "your-secret",
};
