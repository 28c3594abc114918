import type { ServerShape } from "./shape.js";

/** The shape of Notion. */
export const notion: ServerShape = {
  id: "notion",
  title: "Notion",
  about: "The token response does not say when the token expires; refresh tokens rotate.",
  source: "https://github.com/preset-io/agor/pull/1092",
  date: "2026-05-05",
  byDefault: true,
  options: {},
  server: "https://mcp.notion.com/mcp",
  documents: {
    "https://mcp.notion.com/.well-known/oauth-protected-resource/mcp": {
      resource: "https://mcp.notion.com/mcp",
      authorization_servers: ["https://mcp.notion.com"],
    },
    "https://mcp.notion.com/.well-known/oauth-authorization-server": {
      issuer: "https://mcp.notion.com",
      authorization_endpoint: "https://mcp.notion.com/authorize",
      token_endpoint: "https://mcp.notion.com/token",
      registration_endpoint: "https://mcp.notion.com/register",
      response_types_supported: ["code"],
      grant_types_supported: ["authorization_code", "refresh_token"],
      token_endpoint_auth_methods_supported: ["client_secret_basic", "client_secret_post", "none"],
      code_challenge_methods_supported: ["S256"],
    },
  },
  token: {
    expires_in: null,
  },
};
