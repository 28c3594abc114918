import type { ServerShape } from "./shape.js";

/** The shape of GitLab. */
export const gitlab: ServerShape = {
  id: "gitlab",
  title: "GitLab",
  about: "The issuer is the origin of the server; everything is as the specifications say.",
  source: "https://github.com/openai/codex/issues/40885",
  date: "2026-08-26",
  byDefault: true,
  options: {},
  server: "https://gitlab.com/api/v4/mcp",
  documents: {
    "https://gitlab.com/.well-known/oauth-protected-resource/api/v4/mcp": {
      resource: "https://gitlab.com/api/v4/mcp",
      authorization_servers: ["https://gitlab.com"],
      scopes_supported: ["mcp"],
    },
    "https://gitlab.com/.well-known/oauth-authorization-server": {
      issuer: "https://gitlab.com",
      authorization_endpoint: "https://gitlab.com/oauth/authorize",
      token_endpoint: "https://gitlab.com/oauth/token",
      registration_endpoint: "https://gitlab.com/oauth/register",
      response_types_supported: ["code"],
      grant_types_supported: ["authorization_code", "refresh_token"],
      token_endpoint_auth_methods_supported: ["none", "client_secret_basic", "client_secret_post"],
      code_challenge_methods_supported: ["S256"],
    },
  },
  token: {
    expires_in: 7200,
  },
  lifetime: 7200,
};
