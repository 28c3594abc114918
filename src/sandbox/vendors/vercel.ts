import type { ServerShape } from "./shape.js";

/** The shape of Vercel. */
export const vercel: ServerShape = {
  id: "vercel",
  title: "Vercel",
  about: "Clients register only with redirect addresses of this machine.",
  source: "https://github.com/UsefulSoftwareCo/executor/pull/1121",
  date: "2026-06-24",
  byDefault: true,
  options: {},
  server: "https://mcp.vercel.com/",
  documents: {
    "https://mcp.vercel.com/.well-known/oauth-protected-resource": {
      resource: "https://mcp.vercel.com",
      authorization_servers: ["https://vercel.com"],
    },
    "https://vercel.com/.well-known/oauth-authorization-server": {
      issuer: "https://vercel.com",
      authorization_endpoint: "https://vercel.com/oauth/authorize",
      token_endpoint: "https://vercel.com/oauth/token",
      registration_endpoint: "https://vercel.com/oauth/register",
      response_types_supported: ["code"],
      grant_types_supported: ["authorization_code", "refresh_token"],
      code_challenge_methods_supported: ["S256"],
    },
  },
  refusals: [
    {
      at: "register",
      unless: {
        redirect_uris: "^http://(?:localhost|127\\.0\\.0\\.1)[:/]",
      },
      body: {
        error: "invalid_redirect_uri",
        error_description: "The provided redirect URIs are not approved for use by this authorization server.",
      },
    },
  ],
};
