import type { ServerShape } from "./shape.js";

/** The shape of Okta. */
export const okta: ServerShape = {
  id: "okta",
  title: "Okta",
  about: "The registration endpoint requires a token of an administrator.",
  source: "https://github.com/modelcontextprotocol/modelcontextprotocol/issues/695",
  date: "2025-06-10",
  byDefault: false,
  options: {
    clientId: "your-client",
  },
  server: "https://mcp.okta.example/mcp",
  documents: {
    "https://mcp.okta.example/.well-known/oauth-protected-resource/mcp": {
      resource: "https://mcp.okta.example/mcp",
      authorization_servers: ["https://example.okta.com"],
    },
    "https://example.okta.com/.well-known/oauth-authorization-server": {
      issuer: "https://example.okta.com",
      authorization_endpoint: "https://example.okta.com/oauth2/v1/authorize",
      token_endpoint: "https://example.okta.com/oauth2/v1/token",
      registration_endpoint: "https://example.okta.com/oauth2/v1/clients",
      response_types_supported: ["code"],
      grant_types_supported: ["authorization_code", "refresh_token"],
      token_endpoint_auth_methods_supported: ["client_secret_basic", "client_secret_post", "none"],
      code_challenge_methods_supported: ["S256"],
    },
  },
  client: true,
  refusals: [
    {
      at: "register",
      status: 403,
      body: {
        errorCode: "E0000005",
        errorSummary: "Invalid session",
        errorLink: "E0000005",
        errorCauses: [],
      },
    },
  ],
};
