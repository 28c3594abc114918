import type { ServerShape } from "./shape.js";

/** The shape of Glewlwyd. */
export const glewlwyd: ServerShape = {
  id: "glewlwyd",
  title: "Glewlwyd",
  about: "A request for the scope `openid` must have a nonce.",
  source: "https://github.com/babelouest/glewlwyd/issues/197",
  date: "2022-04-26",
  byDefault: true,
  options: {},
  server: "https://mcp.glewlwyd.example/mcp",
  documents: {
    "https://mcp.glewlwyd.example/.well-known/oauth-protected-resource/mcp": {
      resource: "https://mcp.glewlwyd.example/mcp",
      authorization_servers: ["https://glewlwyd.example/api/oidc"],
      scopes_supported: ["openid"],
    },
    "https://glewlwyd.example/api/oidc/.well-known/openid-configuration": {
      issuer: "https://glewlwyd.example/api/oidc",
      authorization_endpoint: "https://glewlwyd.example/api/oidc/auth",
      token_endpoint: "https://glewlwyd.example/api/oidc/token",
      registration_endpoint: "https://glewlwyd.example/api/oidc/register",
      response_types_supported: ["code"],
      grant_types_supported: ["authorization_code", "refresh_token"],
      code_challenge_methods_supported: ["S256"],
    },
  },
  refusals: [
    {
      at: "authorize",
      when: {
        scope: "\\bopenid\\b",
      },
      unless: {
        nonce: ".",
      },
      body: {
        error: "invalid_request",
        error_description: "nonce is required",
      },
    },
  ],
};
