import type { ServerShape } from "./shape.js";

/** The shape of Pipedream. */
export const pipedream: ServerShape = {
  id: "pipedream",
  title: "Pipedream",
  about: "The ID token lacks the nonce of the request.",
  source: "https://github.com/PipedreamHQ/pipedream/issues/19516",
  date: "2025-12-16",
  byDefault: true,
  options: {},
  server: "https://mcp.pipedream.net/v2",
  documents: {
    "https://mcp.pipedream.net/.well-known/oauth-protected-resource/v2": {
      resource: "https://mcp.pipedream.net/v2",
      authorization_servers: ["https://mcp.pipedream.com"],
      scopes_supported: ["openid", "profile", "email", "offline_access", "mcp"],
    },
    "https://mcp.pipedream.com/.well-known/oauth-authorization-server": {
      issuer: "https://mcp.pipedream.com",
      authorization_endpoint: "https://mcp.pipedream.com/oauth/authorize",
      token_endpoint: "https://mcp.pipedream.com/oauth/token",
      registration_endpoint: "https://mcp.pipedream.com/oauth/register",
      response_types_supported: ["code"],
      grant_types_supported: ["authorization_code", "refresh_token"],
      code_challenge_methods_supported: ["S256"],
      scopes_supported: ["openid", "profile", "email", "offline_access", "mcp"],
    },
  },
  idToken: {
    iss: "https://mcp.pipedream.com",
  },
};
