import type { ServerShape } from "./shape.js";

/** The shape of Cloudflare, before March 2026. */
export const cloudflareLegacy: ServerShape = {
  id: "cloudflare-legacy",
  title: "Cloudflare, before March 2026",
  about: "No resource metadata: the origin of the server is the issuer (MCP 2025-03-26).",
  source: "https://github.com/cloudflare/mcp-server-cloudflare/pull/315",
  date: "2026-03-09",
  byDefault: false,
  options: {
    legacyDiscovery: true,
  },
  server: "https://observability.mcp.cloudflare.com/mcp",
  documents: {
    "https://observability.mcp.cloudflare.com/.well-known/oauth-authorization-server": {
      issuer: "https://observability.mcp.cloudflare.com",
      authorization_endpoint: "https://observability.mcp.cloudflare.com/oauth/authorize",
      token_endpoint: "https://observability.mcp.cloudflare.com/token",
      registration_endpoint: "https://observability.mcp.cloudflare.com/register",
      response_types_supported: ["code"],
      grant_types_supported: ["authorization_code", "refresh_token"],
      token_endpoint_auth_methods_supported: ["client_secret_basic", "client_secret_post", "none"],
      code_challenge_methods_supported: ["S256"],
    },
  },
  challenge: 'Bearer realm="OAuth", error="invalid_token"',
};
