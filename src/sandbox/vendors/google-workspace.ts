import type { ServerShape } from "./shape.js";

/** The shape of Google Workspace. */
export const googleWorkspace: ServerShape = {
  id: "google-workspace",
  title: "Google Workspace",
  about:
    "The resource metadata names the issuer with a slash at the end, the issuer itself has none; the token endpoint is on another host.",
  source: "https://github.com/github/copilot-cli/issues/4606",
  date: "2026-08-25",
  byDefault: false,
  options: {
    clientId: "your-client",
    issuer: "https://accounts.google.com",
    allowCrossOriginEndpoints: true,
  },
  server: "https://calendarmcp.googleapis.com/mcp/v1",
  documents: {
    "https://calendarmcp.googleapis.com/.well-known/oauth-protected-resource/mcp/v1": {
      resource: "https://calendarmcp.googleapis.com/mcp/v1",
      authorization_servers: ["https://accounts.google.com/"],
    },
    "https://accounts.google.com/.well-known/oauth-authorization-server": {
      issuer: "https://accounts.google.com",
      authorization_endpoint: "https://accounts.google.com/o/oauth2/v2/auth",
      token_endpoint: "https://oauth2.googleapis.com/token",
      response_types_supported: ["code"],
      grant_types_supported: ["authorization_code", "refresh_token"],
      token_endpoint_auth_methods_supported: ["client_secret_post", "client_secret_basic"],
      code_challenge_methods_supported: ["S256"],
    },
    "https://accounts.google.com/.well-known/openid-configuration": {
      issuer: "https://accounts.google.com",
      authorization_endpoint: "https://accounts.google.com/o/oauth2/v2/auth",
      token_endpoint: "https://oauth2.googleapis.com/token",
      response_types_supported: ["code"],
      grant_types_supported: ["authorization_code", "refresh_token"],
      token_endpoint_auth_methods_supported: ["client_secret_post", "client_secret_basic"],
      code_challenge_methods_supported: ["S256"],
    },
  },
  client: "your-secret",
  refresh: "keep",
};
