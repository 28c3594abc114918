import type { ServerShape } from "./shape.js";

/** The shape of Better Auth below a path. */
export const betterAuth: ServerShape = {
  id: "better-auth",
  title: "Better Auth below a path",
  about: "The resource metadata name the origin, the issuer has the base path.",
  source: "https://github.com/appstrate/appstrate/pull/679",
  date: "2026-06-13",
  byDefault: false,
  options: {
    issuer: "https://app.appstrate.com/api/auth",
  },
  server: "https://app.appstrate.com/api/mcp",
  documents: {
    "https://app.appstrate.com/.well-known/oauth-protected-resource/api/mcp": {
      resource: "https://app.appstrate.com/api/mcp",
      authorization_servers: ["https://app.appstrate.com"],
    },
    "https://app.appstrate.com/.well-known/oauth-authorization-server": {
      issuer: "https://app.appstrate.com/api/auth",
      authorization_endpoint: "https://app.appstrate.com/api/auth/oauth2/authorize",
      token_endpoint: "https://app.appstrate.com/api/auth/oauth2/token",
      registration_endpoint: "https://app.appstrate.com/api/auth/oauth2/register",
      response_types_supported: ["code"],
      grant_types_supported: ["authorization_code", "refresh_token"],
      code_challenge_methods_supported: ["S256"],
    },
    "https://app.appstrate.com/api/auth/.well-known/openid-configuration": {
      issuer: "https://app.appstrate.com/api/auth",
      authorization_endpoint: "https://app.appstrate.com/api/auth/oauth2/authorize",
      token_endpoint: "https://app.appstrate.com/api/auth/oauth2/token",
      registration_endpoint: "https://app.appstrate.com/api/auth/oauth2/register",
      response_types_supported: ["code"],
      grant_types_supported: ["authorization_code", "refresh_token"],
      code_challenge_methods_supported: ["S256"],
    },
  },
};
