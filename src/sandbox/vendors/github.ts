import type { ServerShape } from "./shape.js";

/** The shape of GitHub. */
export const github: ServerShape = {
  id: "github",
  title: "GitHub",
  about: "Clients cannot register; access tokens never expire and come without a refresh token.",
  source: "https://github.com/github/copilot-cli/issues/4604",
  date: "2026-08-25",
  byDefault: false,
  options: {
    clientId: "your-client",
    issuer: "https://github.com/login/oauth",
  },
  server: "https://api.githubcopilot.com/mcp/",
  documents: {
    "https://api.githubcopilot.com/.well-known/oauth-protected-resource/mcp/": {
      resource: "https://api.githubcopilot.com/mcp/",
      authorization_servers: ["https://github.com/login/oauth"],
      scopes_supported: ["repo", "read:org", "read:user", "user:email", "gist", "notifications", "workflow"],
    },
    "https://github.com/.well-known/oauth-authorization-server/login/oauth": {
      issuer: "https://github.com/login/oauth",
      authorization_endpoint: "https://github.com/login/oauth/authorize",
      token_endpoint: "https://github.com/login/oauth/access_token",
      response_types_supported: ["code"],
      grant_types_supported: ["authorization_code", "refresh_token"],
      code_challenge_methods_supported: ["S256"],
    },
  },
  client: "your-secret",
  token: {
    token_type: "bearer",
    expires_in: null,
  },
  refresh: "none",
  lifetime: 0,
};
