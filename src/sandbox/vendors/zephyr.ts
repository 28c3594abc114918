import type { ServerShape } from "./shape.js";

/** The shape of SmartBear Zephyr. */
export const zephyr: ServerShape = {
  id: "zephyr",
  title: "SmartBear Zephyr",
  about: "The issuer has a path that the resource metadata leave out.",
  source: "https://github.com/SmartBear/smartbear-mcp/issues/682",
  date: "2026-08-22",
  byDefault: false,
  options: {
    issuer: "https://app.tm4j.smartbear.com/backend/oauthproxy",
  },
  server: "https://zephyr.mcp.smartbear.com/mcp",
  documents: {
    "https://zephyr.mcp.smartbear.com/.well-known/oauth-protected-resource": {
      resource: "https://zephyr.mcp.smartbear.com/mcp",
      authorization_servers: ["https://app.tm4j.smartbear.com"],
    },
    "https://app.tm4j.smartbear.com/.well-known/oauth-authorization-server": {
      issuer: "https://app.tm4j.smartbear.com/backend/oauthproxy",
      authorization_endpoint: "https://app.tm4j.smartbear.com/backend/oauthproxy/authorize",
      token_endpoint: "https://app.tm4j.smartbear.com/backend/oauthproxy/token",
      registration_endpoint: "https://app.tm4j.smartbear.com/backend/oauthproxy/register",
      response_types_supported: ["code"],
      grant_types_supported: ["authorization_code", "refresh_token"],
      code_challenge_methods_supported: ["S256"],
    },
  },
};
