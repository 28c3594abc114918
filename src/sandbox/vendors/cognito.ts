import type { ServerShape } from "./shape.js";

/** The shape of Amazon Cognito. */
export const cognito: ServerShape = {
  id: "cognito",
  title: "Amazon Cognito",
  about: "The metadata do not list PKCE, which the server has, and clients cannot register.",
  source: "https://github.com/anthropics/claude-code/issues/13275",
  date: "2025-12-07",
  byDefault: false,
  options: {
    clientId: "your-client",
    issuer: "https://cognito-idp.eu-west-1.amazonaws.com/eu-west-1_EXAMPLE",
    allowMissingPkceMetadata: true,
  },
  server: "https://mcp.cognito.example/mcp",
  documents: {
    "https://mcp.cognito.example/.well-known/oauth-protected-resource/mcp": {
      resource: "https://mcp.cognito.example/mcp",
      authorization_servers: ["https://cognito-idp.eu-west-1.amazonaws.com/eu-west-1_EXAMPLE"],
    },
    "https://cognito-idp.eu-west-1.amazonaws.com/eu-west-1_EXAMPLE/.well-known/openid-configuration": {
      issuer: "https://cognito-idp.eu-west-1.amazonaws.com/eu-west-1_EXAMPLE",
      authorization_endpoint: "https://example.auth.eu-west-1.amazoncognito.com/oauth2/authorize",
      token_endpoint: "https://example.auth.eu-west-1.amazoncognito.com/oauth2/token",
      response_types_supported: ["code"],
      grant_types_supported: ["authorization_code", "refresh_token"],
      token_endpoint_auth_methods_supported: ["client_secret_basic", "client_secret_post"],
    },
  },
  client: "your-secret",
  refresh: "keep",
};
