import type { ServerShape } from "./shape.js";

/** The shape of Vercel mcp-handler. */
export const mcpHandler: ServerShape = {
  id: "mcp-handler",
  title: "Vercel mcp-handler",
  about: "The resource is the whole origin of the server.",
  source: "https://github.com/vercel/mcp-handler/pull/84",
  date: "2025-07-14",
  byDefault: true,
  options: {},
  server: "https://app.vercel.example/api/mcp",
  documents: {
    "https://app.vercel.example/.well-known/oauth-protected-resource": {
      resource: "https://app.vercel.example",
      authorization_servers: ["https://auth.vercel.example"],
    },
    "https://auth.vercel.example/.well-known/oauth-authorization-server": {
      issuer: "https://auth.vercel.example",
      authorization_endpoint: "https://auth.vercel.example/authorize",
      token_endpoint: "https://auth.vercel.example/token",
      registration_endpoint: "https://auth.vercel.example/register",
      response_types_supported: ["code"],
      grant_types_supported: ["authorization_code", "refresh_token"],
      code_challenge_methods_supported: ["S256"],
    },
  },
  challenge:
    'Bearer error="invalid_token", error_description="No authorization provided", resource_metadata="https://app.vercel.example/.well-known/oauth-protected-resource"',
};
