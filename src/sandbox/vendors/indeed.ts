import type { ServerShape } from "./shape.js";

/** The shape of Indeed. */
export const indeed: ServerShape = {
  id: "indeed",
  title: "Indeed",
  about: "The resource metadata name the issuer with a slash at the end, the issuer itself has none.",
  source: "https://github.com/NousResearch/hermes-agent/issues/95508",
  date: "2026-08-26",
  byDefault: true,
  options: {},
  server: "https://mcp.indeed.com/mcp",
  documents: {
    "https://mcp.indeed.com/.well-known/oauth-protected-resource/mcp": {
      resource: "https://mcp.indeed.com/mcp",
      authorization_servers: ["https://secure.indeed.com/"],
    },
    "https://secure.indeed.com/.well-known/oauth-authorization-server": {
      issuer: "https://secure.indeed.com",
      authorization_endpoint: "https://secure.indeed.com/oauth/v2/authorize",
      token_endpoint: "https://secure.indeed.com/oauth/v2/tokens",
      registration_endpoint: "https://secure.indeed.com/oauth/v2/register",
      response_types_supported: ["code"],
      grant_types_supported: ["authorization_code", "refresh_token"],
      code_challenge_methods_supported: ["S256"],
    },
  },
};
