import type { ServerShape } from "./shape.js";

/** The shape of Linear. */
export const linear: ServerShape = {
  id: "linear",
  title: "Linear",
  about: "The metadata offer client metadata documents, but the server accepts only tokens of clients that register.",
  source: "https://github.com/Cloudgeni-ai/opengeni/pull/297",
  date: "2026-07-07",
  byDefault: true,
  options: {},
  server: "https://mcp.linear.app/mcp",
  documents: {
    "https://mcp.linear.app/.well-known/oauth-protected-resource/mcp": {
      resource: "https://mcp.linear.app/mcp",
      authorization_servers: ["https://mcp.linear.app"],
    },
    "https://mcp.linear.app/.well-known/oauth-authorization-server": {
      issuer: "https://mcp.linear.app",
      authorization_endpoint: "https://mcp.linear.app/authorize",
      token_endpoint: "https://mcp.linear.app/token",
      registration_endpoint: "https://mcp.linear.app/register",
      response_types_supported: ["code"],
      grant_types_supported: ["authorization_code", "refresh_token"],
      token_endpoint_auth_methods_supported: ["client_secret_basic", "client_secret_post", "none"],
      code_challenge_methods_supported: ["S256"],
      client_id_metadata_document_supported: true,
    },
  },
};
