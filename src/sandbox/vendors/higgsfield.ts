import type { ServerShape } from "./shape.js";

/** The shape of Higgsfield, on Clerk. */
export const higgsfield: ServerShape = {
  id: "higgsfield",
  title: "Higgsfield, on Clerk",
  about: "The ID token is of another issuer than the metadata.",
  source: "https://github.com/higgsfield-ai/cli/issues/70",
  date: "2026-08-23",
  byDefault: true,
  options: {},
  server: "https://mcp.higgsfield.ai/mcp",
  documents: {
    "https://mcp.higgsfield.ai/.well-known/oauth-protected-resource/mcp": {
      resource: "https://mcp.higgsfield.ai/mcp",
      authorization_servers: ["https://mcp.higgsfield.ai"],
      scopes_supported: ["openid", "email"],
    },
    "https://mcp.higgsfield.ai/.well-known/oauth-authorization-server": {
      issuer: "https://mcp.higgsfield.ai",
      authorization_endpoint: "https://mcp.higgsfield.ai/oauth/authorize",
      token_endpoint: "https://mcp.higgsfield.ai/oauth/token",
      registration_endpoint: "https://mcp.higgsfield.ai/oauth/register",
      response_types_supported: ["code"],
      grant_types_supported: ["authorization_code", "refresh_token"],
      code_challenge_methods_supported: ["S256"],
    },
  },
  idToken: {
    iss: "https://clerk.higgsfield.ai",
  },
};
