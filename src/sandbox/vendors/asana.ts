import type { ServerShape } from "./shape.js";

/** The shape of Asana. */
export const asana: ServerShape = {
  id: "asana",
  title: "Asana",
  about: "Only clients with a secret, which a refresh needs too.",
  source: "https://github.com/apify/mcpc/issues/387",
  date: "2026-09-07",
  byDefault: false,
  options: {
    clientId: "your-client",
    issuer: "https://app.asana.com",
  },
  server: "https://mcp.asana.com/v2/mcp",
  documents: {
    "https://mcp.asana.com/.well-known/oauth-protected-resource/v2/mcp": {
      resource: "https://mcp.asana.com/v2/mcp",
      authorization_servers: ["https://app.asana.com"],
    },
    "https://app.asana.com/.well-known/oauth-authorization-server": {
      issuer: "https://app.asana.com",
      authorization_endpoint: "https://app.asana.com/-/oauth_authorize",
      token_endpoint: "https://app.asana.com/-/oauth_token",
      response_types_supported: ["code"],
      grant_types_supported: ["authorization_code", "refresh_token"],
      token_endpoint_auth_methods_supported: ["client_secret_post"],
      code_challenge_methods_supported: ["S256"],
    },
  },
  client: "your-secret",
  refresh: "keep",
};
