import type { ServerShape } from "./shape.js";

/** The shape of Stripe. */
export const stripe: ServerShape = {
  id: "stripe",
  title: "Stripe",
  about: "The issuer has a path on another host.",
  source: undefined,
  date: undefined,
  byDefault: true,
  options: {},
  server: "https://mcp.stripe.com/",
  documents: {
    "https://mcp.stripe.com/.well-known/oauth-protected-resource": {
      resource: "https://mcp.stripe.com",
      authorization_servers: ["https://access.stripe.com/mcp"],
    },
    "https://access.stripe.com/.well-known/oauth-authorization-server/mcp": {
      issuer: "https://access.stripe.com/mcp",
      authorization_endpoint: "https://access.stripe.com/mcp/oauth2/authorize",
      token_endpoint: "https://access.stripe.com/mcp/oauth2/token",
      registration_endpoint: "https://access.stripe.com/mcp/oauth2/register",
      response_types_supported: ["code"],
      grant_types_supported: ["authorization_code", "refresh_token"],
      token_endpoint_auth_methods_supported: ["none"],
      code_challenge_methods_supported: ["S256"],
    },
  },
};
