import type { ServerShape } from "./shape.js";

/** The shape of Atlassian, first address. */
export const atlassianV1: ServerShape = {
  id: "atlassian-v1",
  title: "Atlassian, first address",
  about: "No resource metadata, and the issuer is another host than the server.",
  source: "https://github.com/atlassian/atlassian-mcp-server/issues/148",
  date: "2026-07-27",
  byDefault: false,
  options: {
    legacyDiscovery: true,
    issuer: "https://cf.mcp.atlassian.com",
  },
  server: "https://mcp.atlassian.com/v1/mcp",
  documents: {
    "https://mcp.atlassian.com/.well-known/oauth-authorization-server": {
      issuer: "https://cf.mcp.atlassian.com",
      authorization_endpoint: "https://cf.mcp.atlassian.com/v1/authorize",
      token_endpoint: "https://cf.mcp.atlassian.com/v1/token",
      registration_endpoint: "https://cf.mcp.atlassian.com/v1/register",
      response_types_supported: ["code"],
      grant_types_supported: ["authorization_code", "refresh_token"],
      code_challenge_methods_supported: ["S256"],
    },
  },
  challenge: 'Bearer realm="OAuth", error="invalid_token"',
};
