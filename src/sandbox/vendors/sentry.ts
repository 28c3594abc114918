import type { ServerShape } from "./shape.js";

/** The shape of Sentry. */
export const sentry: ServerShape = {
  id: "sentry",
  title: "Sentry",
  about: "The challenge names two documents, and the first one is missing.",
  source: "https://github.com/getsentry/sentry-mcp/pull/955",
  date: "2026-05-10",
  byDefault: true,
  options: {},
  server: "https://mcp.sentry.dev/mcp",
  documents: {
    "https://mcp.sentry.dev/.well-known/oauth-protected-resource/mcp": {
      resource: "https://mcp.sentry.dev/mcp",
      authorization_servers: ["https://mcp.sentry.dev"],
    },
    "https://mcp.sentry.dev/.well-known/oauth-authorization-server": {
      issuer: "https://mcp.sentry.dev",
      authorization_endpoint: "https://mcp.sentry.dev/oauth/authorize",
      token_endpoint: "https://mcp.sentry.dev/oauth/token",
      registration_endpoint: "https://mcp.sentry.dev/oauth/register",
      response_types_supported: ["code"],
      grant_types_supported: ["authorization_code", "refresh_token"],
      token_endpoint_auth_methods_supported: ["client_secret_basic", "client_secret_post", "none"],
      code_challenge_methods_supported: ["S256"],
    },
  },
  challenge:
    'Bearer realm="OAuth", resource_metadata="https://mcp.sentry.dev/.well-known/oauth-protected-resource", error="invalid_token", resource_metadata="https://mcp.sentry.dev/.well-known/oauth-protected-resource/mcp"',
};
