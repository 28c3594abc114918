import type { ServerShape } from "./shape.js";

/** The shape of JumpCloud. */
export const jumpcloud: ServerShape = {
  id: "jumpcloud",
  title: "JumpCloud",
  about: "The issuer has a slash at the end, which the resource metadata leave out.",
  source: "https://github.com/anomalyco/opencode/issues/50036",
  date: "2026-09-19",
  byDefault: true,
  options: {},
  server: "https://mcp.jumpcloud.example/mcp",
  documents: {
    "https://mcp.jumpcloud.example/.well-known/oauth-protected-resource/mcp": {
      resource: "https://mcp.jumpcloud.example/mcp",
      authorization_servers: ["https://oauth.id.jumpcloud.com"],
    },
    "https://oauth.id.jumpcloud.com/.well-known/oauth-authorization-server": {
      issuer: "https://oauth.id.jumpcloud.com/",
      authorization_endpoint: "https://oauth.id.jumpcloud.com/oauth2/auth",
      token_endpoint: "https://oauth.id.jumpcloud.com/oauth2/token",
      registration_endpoint: "https://oauth.id.jumpcloud.com/oauth2/register",
      response_types_supported: ["code"],
      grant_types_supported: ["authorization_code", "refresh_token"],
      code_challenge_methods_supported: ["S256"],
    },
  },
};
