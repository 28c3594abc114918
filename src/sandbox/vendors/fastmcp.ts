import type { ServerShape } from "./shape.js";

/** The shape of FastMCP. */
export const fastmcp: ServerShape = {
  id: "fastmcp",
  title: "FastMCP",
  about: "The challenge names a document that is missing; the one at the origin exists.",
  source: "https://github.com/PrefectHQ/fastmcp/issues/1685",
  date: "2025-08-30",
  byDefault: true,
  options: {},
  server: "https://mcp.fastmcp.example/mcp",
  documents: {
    "https://mcp.fastmcp.example/.well-known/oauth-protected-resource": {
      resource: "https://mcp.fastmcp.example/mcp",
      authorization_servers: ["https://mcp.fastmcp.example"],
    },
    "https://mcp.fastmcp.example/.well-known/oauth-authorization-server": {
      issuer: "https://mcp.fastmcp.example",
      authorization_endpoint: "https://mcp.fastmcp.example/authorize",
      token_endpoint: "https://mcp.fastmcp.example/token",
      registration_endpoint: "https://mcp.fastmcp.example/register",
      response_types_supported: ["code"],
      grant_types_supported: ["authorization_code", "refresh_token"],
      token_endpoint_auth_methods_supported: ["client_secret_post"],
      code_challenge_methods_supported: ["S256"],
    },
  },
  challenge:
    'Bearer error="invalid_token", error_description="Authentication required", resource_metadata="https://mcp.fastmcp.example/mcp/.well-known/oauth-protected-resource"',
};
