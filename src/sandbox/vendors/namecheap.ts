import type { ServerShape } from "./shape.js";

/** The shape of Namecheap. */
export const namecheap: ServerShape = {
  id: "namecheap",
  title: "Namecheap",
  about: "The authorization response names another issuer than the metadata.",
  source: "https://github.com/openai/codex/issues/38944",
  date: "2026-08-19",
  byDefault: false,
  options: {},
  server: "https://mcp.namecheap.com/mcp",
  documents: {
    "https://mcp.namecheap.com/.well-known/oauth-protected-resource": {
      resource: "https://mcp.namecheap.com/",
      authorization_servers: ["https://mcp.namecheap.com"],
      scopes_supported: ["openid", "offline_access", "mcp.namecheap.com"],
    },
    "https://mcp.namecheap.com/.well-known/oauth-authorization-server": {
      issuer: "https://mcp.namecheap.com",
      authorization_endpoint: "https://www.namecheap.com/connect/authorize",
      token_endpoint: "https://auth.namecheap.com/connect/token",
      registration_endpoint: "https://mcp.namecheap.com/register",
      response_types_supported: ["code"],
      grant_types_supported: ["authorization_code", "refresh_token"],
      code_challenge_methods_supported: ["S256"],
    },
  },
  iss: "https://www.namecheap.com",
  refused: "an authorization response of another issuer may carry a stolen code (RFC 9207)",
};
