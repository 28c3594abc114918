import type { ServerShape } from "./shape.js";

/** The shape of Cloudflare workers-oauth-provider. */
export const cloudflare: ServerShape = {
  id: "cloudflare",
  title: "Cloudflare workers-oauth-provider",
  about: "The resource metadata at the root are for the whole origin.",
  source: "https://github.com/cloudflare/workers-oauth-provider/pull/136",
  date: "2026-02-23",
  byDefault: true,
  options: {},
  server: "https://mcp.cloudflare.com/mcp",
  documents: {
    "https://mcp.cloudflare.com/.well-known/oauth-protected-resource": {
      resource: "https://mcp.cloudflare.com",
      authorization_servers: ["https://mcp.cloudflare.com"],
      bearer_methods_supported: ["header"],
    },
    "https://mcp.cloudflare.com/.well-known/oauth-authorization-server": {
      issuer: "https://mcp.cloudflare.com",
      authorization_endpoint: "https://mcp.cloudflare.com/authorize",
      token_endpoint: "https://mcp.cloudflare.com/token",
      registration_endpoint: "https://mcp.cloudflare.com/register",
      response_types_supported: ["code"],
      grant_types_supported: ["authorization_code", "refresh_token"],
      token_endpoint_auth_methods_supported: ["client_secret_basic", "client_secret_post", "none"],
      code_challenge_methods_supported: ["S256"],
    },
  },
  challenge:
    'Bearer realm="OAuth", resource_metadata="https://mcp.cloudflare.com/.well-known/oauth-protected-resource", error="invalid_token"',
};
