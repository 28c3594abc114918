import type { ServerShape } from "./shape.js";

/** The shape of Expo. */
export const expo: ServerShape = {
  id: "expo",
  title: "Expo",
  about: "The issuer has a slash at the end, which the resource metadata leave out.",
  source: "https://github.com/expo/expo/issues/49053",
  date: "2026-08-18",
  byDefault: true,
  options: {},
  server: "https://mcp.expo.dev/mcp",
  documents: {
    "https://mcp.expo.dev/.well-known/oauth-protected-resource": {
      resource: "https://mcp.expo.dev/mcp",
      authorization_servers: ["https://mcp.expo.dev"],
    },
    "https://mcp.expo.dev/.well-known/oauth-authorization-server": {
      issuer: "https://mcp.expo.dev/",
      authorization_endpoint: "https://mcp.expo.dev/authorize",
      token_endpoint: "https://mcp.expo.dev/token",
      registration_endpoint: "https://mcp.expo.dev/register",
      response_types_supported: ["code"],
      grant_types_supported: ["authorization_code", "refresh_token"],
      code_challenge_methods_supported: ["S256"],
    },
  },
};
