import type { ServerShape } from "./shape.js";

/** The shape of Atlassian. */
export const atlassian: ServerShape = {
  id: "atlassian",
  title: "Atlassian",
  about: "The issuer lacks the path of the tenant that the resource metadata names.",
  source: "https://github.com/atlassian/atlassian-mcp-server/issues/205",
  date: "2026-07-27",
  byDefault: false,
  options: {
    issuer: "https://auth.atlassian.com",
  },
  server: "https://mcp.atlassian.com/v1/mcp/authv2",
  documents: {
    "https://mcp.atlassian.com/.well-known/oauth-protected-resource/v1/mcp/authv2": {
      resource: "https://mcp.atlassian.com/v1/mcp/authv2",
      authorization_servers: ["https://auth.atlassian.com/VCeDsk8ZHncYF1g234fKtc4lNipbBhu3"],
    },
    "https://auth.atlassian.com/VCeDsk8ZHncYF1g234fKtc4lNipbBhu3/.well-known/oauth-authorization-server": {
      issuer: "https://auth.atlassian.com",
      authorization_endpoint: "https://auth.atlassian.com/authorize",
      token_endpoint: "https://auth.atlassian.com/oauth/token",
      registration_endpoint: "https://auth.atlassian.com/oidc/register",
      response_types_supported: ["code"],
      grant_types_supported: ["authorization_code", "refresh_token"],
      code_challenge_methods_supported: ["S256"],
    },
    "https://auth.atlassian.com/.well-known/oauth-authorization-server/VCeDsk8ZHncYF1g234fKtc4lNipbBhu3": {
      issuer: "https://auth.atlassian.com",
      authorization_endpoint: "https://auth.atlassian.com/authorize",
      token_endpoint: "https://auth.atlassian.com/oauth/token",
      registration_endpoint: "https://auth.atlassian.com/oidc/register",
      response_types_supported: ["code"],
      grant_types_supported: ["authorization_code", "refresh_token"],
      code_challenge_methods_supported: ["S256"],
    },
  },
  challenge:
    'Bearer resource_metadata="https://mcp.atlassian.com/.well-known/oauth-protected-resource/v1/mcp/authv2", error="invalid_token"',
};
