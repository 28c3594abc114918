import type { ServerShape } from "./shape.js";

/** The shape of Magnific. */
export const magnific: ServerShape = {
  id: "magnific",
  title: "Magnific",
  about: "The resource metadata are of another host.",
  source: "https://github.com/anthropics/claude-ai-mcp/issues/560",
  date: "2026-07-08",
  byDefault: false,
  options: {},
  server: "https://mcp.magnific.example/mcp",
  documents: {
    "https://mcp.magnific.example/.well-known/oauth-protected-resource/mcp": {
      resource: "https://api.magnific.example/mcp",
      authorization_servers: ["https://api.magnific.example"],
    },
    "https://api.magnific.example/.well-known/oauth-authorization-server": {
      issuer: "https://api.magnific.example",
      authorization_endpoint: "https://api.magnific.example/authorize",
      token_endpoint: "https://api.magnific.example/token",
      registration_endpoint: "https://api.magnific.example/register",
      response_types_supported: ["code"],
      grant_types_supported: ["authorization_code", "refresh_token"],
      code_challenge_methods_supported: ["S256"],
    },
  },
  refused: "a document of another resource must not be used (RFC 9728 section 3.3)",
};
