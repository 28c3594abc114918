import type { ServerShape } from "./shape.js";

/** The shape of Slack, user tokens. */
export const slackUserToken: ServerShape = {
  id: "slack-user-token",
  title: "Slack, user tokens",
  about: "The token type is `user`, and clients cannot register.",
  source: "https://github.com/UsefulSoftwareCo/executor/pull/2050",
  date: "2026-09-18",
  byDefault: false,
  options: {
    clientId: "your-client",
    issuer: "https://mcp.slack.com",
    acceptTokenType: "user",
  },
  server: "https://mcp.slack.com/mcp",
  documents: {
    "https://mcp.slack.com/.well-known/oauth-protected-resource": {
      resource: "https://mcp.slack.com",
      authorization_servers: ["https://mcp.slack.com"],
    },
    "https://mcp.slack.com/.well-known/oauth-authorization-server": {
      issuer: "https://mcp.slack.com",
      authorization_endpoint: "https://slack.com/oauth/v2_user/authorize",
      token_endpoint: "https://slack.com/api/oauth.v2.user.access",
      response_types_supported: ["code"],
      grant_types_supported: ["authorization_code", "refresh_token"],
      code_challenge_methods_supported: ["S256"],
    },
  },
  client: "your-secret",
  token: {
    token_type: "user",
    expires_in: 43200,
  },
  lifetime: 43200,
};
