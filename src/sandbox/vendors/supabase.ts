import type { ServerShape } from "./shape.js";

/** The shape of Supabase. */
export const supabase: ServerShape = {
  id: "supabase",
  title: "Supabase",
  about: "The authorization server is on another host.",
  source: "https://github.com/punkpeye/mcp-remote/issues/192",
  date: "2025-11-28",
  byDefault: true,
  options: {},
  server: "https://mcp.supabase.com/mcp",
  documents: {
    "https://mcp.supabase.com/.well-known/oauth-protected-resource/mcp": {
      resource: "https://mcp.supabase.com/mcp",
      authorization_servers: ["https://api.supabase.com"],
    },
    "https://api.supabase.com/.well-known/oauth-authorization-server": {
      issuer: "https://api.supabase.com",
      authorization_endpoint: "https://api.supabase.com/v1/oauth/authorize",
      token_endpoint: "https://api.supabase.com/v1/oauth/token",
      registration_endpoint: "https://api.supabase.com/v1/oauth/register",
      response_types_supported: ["code"],
      grant_types_supported: ["authorization_code", "refresh_token"],
      token_endpoint_auth_methods_supported: ["client_secret_basic", "client_secret_post", "none"],
      code_challenge_methods_supported: ["S256"],
    },
  },
  challenge:
    'Bearer error="invalid_request", error_description="No access token was provided in this request", resource_metadata="https://mcp.supabase.com/.well-known/oauth-protected-resource/mcp"',
};
