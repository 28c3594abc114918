import type { ServerShape } from "./shape.js";

/** The shape of Render. */
export const render: ServerShape = {
  id: "render",
  title: "Render",
  about: "Clients cannot register.",
  source: "https://github.com/render-oss/render-mcp-server/issues/25",
  date: "2026-08-03",
  byDefault: false,
  options: {
    clientId: "your-client",
  },
  server: "https://mcp.render.com/mcp",
  documents: {
    "https://mcp.render.com/.well-known/oauth-protected-resource/mcp": {
      resource: "https://mcp.render.com/mcp",
      authorization_servers: ["https://api.render.com"],
    },
    "https://api.render.com/.well-known/oauth-authorization-server": {
      issuer: "https://api.render.com",
      authorization_endpoint: "https://api.render.com/oauth/authorize",
      token_endpoint: "https://api.render.com/oauth/token",
      response_types_supported: ["code"],
      grant_types_supported: ["authorization_code", "refresh_token"],
      token_endpoint_auth_methods_supported: ["none"],
      code_challenge_methods_supported: ["S256"],
    },
  },
  client: true,
};
