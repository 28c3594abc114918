import type { ServerShape } from "./shape.js";

/** The shape of Resource metadata without an issuer. */
export const noIssuer: ServerShape = {
  id: "no-issuer",
  title: "Resource metadata without an issuer",
  about: "The resource metadata name no authorization server, which is the origin.",
  source: undefined,
  date: undefined,
  byDefault: false,
  options: {
    legacyDiscovery: true,
  },
  server: "https://mcp.no-issuer.example/mcp",
  documents: {
    "https://mcp.no-issuer.example/.well-known/oauth-protected-resource/mcp": {
      resource: "https://mcp.no-issuer.example/mcp",
    },
    "https://mcp.no-issuer.example/.well-known/oauth-authorization-server": {
      issuer: "https://mcp.no-issuer.example",
      authorization_endpoint: "https://mcp.no-issuer.example/authorize",
      token_endpoint: "https://mcp.no-issuer.example/token",
      registration_endpoint: "https://mcp.no-issuer.example/register",
      response_types_supported: ["code"],
      grant_types_supported: ["authorization_code", "refresh_token"],
      code_challenge_methods_supported: ["S256"],
    },
  },
};
