import type { ServerShape } from "./shape.js";

/** The shape of Skyvern, on Clerk. */
export const skyvern: ServerShape = {
  id: "skyvern",
  title: "Skyvern, on Clerk",
  about: "The issuer is another host than the named one.",
  source: "https://github.com/Skyvern-AI/skyvern/issues/8263",
  date: "2026-08-22",
  byDefault: false,
  options: {
    issuer: "https://clerk.skyvern.com",
  },
  server: "https://api.skyvern.com/mcp/",
  documents: {
    "https://api.skyvern.com/.well-known/oauth-protected-resource/mcp": {
      resource: "https://api.skyvern.com/mcp/",
      authorization_servers: ["https://api.skyvern.com"],
    },
    "https://api.skyvern.com/.well-known/oauth-authorization-server": {
      issuer: "https://clerk.skyvern.com",
      authorization_endpoint: "https://clerk.skyvern.com/oauth/authorize",
      token_endpoint: "https://clerk.skyvern.com/oauth/token",
      registration_endpoint: "https://clerk.skyvern.com/oauth/register",
      response_types_supported: ["code"],
      grant_types_supported: ["authorization_code", "refresh_token"],
      code_challenge_methods_supported: ["S256"],
    },
  },
};
