import type { ServerShape } from "./shape.js";

/** The shape of Meta. */
export const meta: ServerShape = {
  id: "meta",
  title: "Meta",
  about: "The resource metadata name the server itself as the issuer.",
  source: "https://github.com/openai/codex/issues/38944",
  date: "2026-08-17",
  byDefault: false,
  options: {
    issuer: "https://www.facebook.com",
  },
  server: "https://mcp.facebook.com/ads",
  documents: {
    "https://mcp.facebook.com/.well-known/oauth-protected-resource/ads": {
      resource: "https://mcp.facebook.com/ads",
      authorization_servers: ["https://mcp.facebook.com/ads"],
    },
    "https://mcp.facebook.com/.well-known/oauth-authorization-server/ads": {
      issuer: "https://www.facebook.com",
      authorization_endpoint: "https://www.facebook.com/dialog/oauth",
      token_endpoint: "https://www.facebook.com/oauth/token",
      registration_endpoint: "https://www.facebook.com/oauth/register",
      response_types_supported: ["code"],
      grant_types_supported: ["authorization_code", "refresh_token"],
      code_challenge_methods_supported: ["S256"],
    },
  },
};
