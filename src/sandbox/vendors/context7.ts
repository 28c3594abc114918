import type { ServerShape } from "./shape.js";

/** The shape of Context7, on Clerk. */
export const context7: ServerShape = {
  id: "context7",
  title: "Context7, on Clerk",
  about: "The issuer is another host than the named one; it has metadata of its own.",
  source: "https://github.com/upstash/context7/issues/2723",
  date: "2026-06-05",
  byDefault: false,
  options: {
    issuer: "https://clerk.context7.com",
  },
  server: "https://mcp.context7.com/mcp/oauth",
  documents: {
    "https://mcp.context7.com/.well-known/oauth-protected-resource/mcp/oauth": {
      resource: "https://mcp.context7.com/mcp/oauth",
      authorization_servers: ["https://context7.com"],
    },
    "https://context7.com/.well-known/oauth-authorization-server": {
      issuer: "https://clerk.context7.com",
      authorization_endpoint: "https://clerk.context7.com/oauth/authorize",
      token_endpoint: "https://clerk.context7.com/oauth/token",
      registration_endpoint: "https://clerk.context7.com/oauth/register",
      response_types_supported: ["code"],
      grant_types_supported: ["authorization_code", "refresh_token"],
      token_endpoint_auth_methods_supported: ["client_secret_basic", "none"],
      code_challenge_methods_supported: ["S256"],
    },
    "https://clerk.context7.com/.well-known/oauth-authorization-server": {
      issuer: "https://clerk.context7.com",
      authorization_endpoint: "https://clerk.context7.com/oauth/authorize",
      token_endpoint: "https://clerk.context7.com/oauth/token",
      registration_endpoint: "https://clerk.context7.com/oauth/register",
      response_types_supported: ["code"],
      grant_types_supported: ["authorization_code", "refresh_token"],
      token_endpoint_auth_methods_supported: ["client_secret_basic", "none"],
      code_challenge_methods_supported: ["S256"],
    },
  },
};
