import type { ServerShape } from "./shape.js";

/** The shape of Slack. */
export const slack: ServerShape = {
  id: "slack",
  title: "Slack",
  about: "The issuer is another host than the one that is named, and clients cannot register.",
  source: "https://github.com/librefang/librefang/issues/4665",
  date: "2026-05-05",
  byDefault: false,
  options: {
    clientId: "your-client",
    issuer: "https://slack.com",
  },
  server: "https://mcp.slack.com/mcp",
  documents: {
    "https://mcp.slack.com/.well-known/oauth-protected-resource": {
      resource: "https://mcp.slack.com",
      authorization_servers: ["https://mcp.slack.com"],
    },
    "https://mcp.slack.com/.well-known/oauth-authorization-server": {
      issuer: "https://slack.com",
      authorization_endpoint: "https://slack.com/oauth/v2_user/authorize",
      token_endpoint: "https://slack.com/api/oauth.v2.user.access",
      response_types_supported: ["code"],
      grant_types_supported: ["authorization_code", "refresh_token"],
      code_challenge_methods_supported: ["S256"],
    },
  },
  client: "your-secret",
  token: {
    expires_in: 43200,
  },
  lifetime: 43200,
};
