import type { ServerShape } from "./shape.js";

/** The shape of Auth0. */
export const auth0: ServerShape = {
  id: "auth0",
  title: "Auth0",
  about: "The issuer has a slash at the end, in both documents.",
  source: "https://github.com/danny-avila/LibreChat/issues/13401",
  date: "2026-05-29",
  byDefault: true,
  options: {},
  server: "https://mcp.auth0.example/mcp",
  documents: {
    "https://mcp.auth0.example/.well-known/oauth-protected-resource": {
      resource: "https://mcp.auth0.example/mcp",
      authorization_servers: ["https://example.eu.auth0.com/"],
      scopes_supported: ["read:data"],
    },
    "https://example.eu.auth0.com/.well-known/openid-configuration": {
      issuer: "https://example.eu.auth0.com/",
      authorization_endpoint: "https://example.eu.auth0.com/authorize",
      token_endpoint: "https://example.eu.auth0.com/oauth/token",
      registration_endpoint: "https://example.eu.auth0.com/oidc/register",
      response_types_supported: ["code"],
      grant_types_supported: ["authorization_code", "refresh_token"],
      token_endpoint_auth_methods_supported: ["client_secret_basic", "client_secret_post", "none"],
      code_challenge_methods_supported: ["S256"],
    },
  },
  token: {
    expires_in: 86400,
  },
  lifetime: 86400,
};
