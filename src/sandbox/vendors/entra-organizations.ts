import type { ServerShape } from "./shape.js";

/** The shape of Microsoft Entra ID, many tenants. */
export const entraOrganizations: ServerShape = {
  id: "entra-organizations",
  title: "Microsoft Entra ID, many tenants",
  about:
    "The issuer in the metadata of `organizations` is a template; the issuer of the tenant has metadata of its own.",
  source: "https://github.com/openai/codex/issues/38973",
  date: "2026-08-17",
  byDefault: false,
  options: {
    clientId: "your-client",
    issuer: "https://login.microsoftonline.com/11111111-2222-3333-4444-555555555555/v2.0",
    allowMissingPkceMetadata: true,
  },
  server: "https://mcp.contoso.example/mcp",
  documents: {
    "https://mcp.contoso.example/.well-known/oauth-protected-resource/mcp": {
      resource: "https://mcp.contoso.example/mcp",
      authorization_servers: ["https://login.microsoftonline.com/organizations/v2.0"],
    },
    "https://login.microsoftonline.com/organizations/v2.0/.well-known/openid-configuration": {
      issuer: "https://login.microsoftonline.com/{tenantid}/v2.0",
      authorization_endpoint: "https://login.microsoftonline.com/organizations/oauth2/v2.0/authorize",
      token_endpoint: "https://login.microsoftonline.com/organizations/oauth2/v2.0/token",
      response_types_supported: ["code"],
      grant_types_supported: ["authorization_code", "refresh_token"],
      token_endpoint_auth_methods_supported: ["client_secret_post", "private_key_jwt", "client_secret_basic"],
    },
    "https://login.microsoftonline.com/11111111-2222-3333-4444-555555555555/v2.0/.well-known/openid-configuration": {
      issuer: "https://login.microsoftonline.com/11111111-2222-3333-4444-555555555555/v2.0",
      authorization_endpoint:
        "https://login.microsoftonline.com/11111111-2222-3333-4444-555555555555/oauth2/v2.0/authorize",
      token_endpoint: "https://login.microsoftonline.com/11111111-2222-3333-4444-555555555555/oauth2/v2.0/token",
      response_types_supported: ["code"],
      grant_types_supported: ["authorization_code", "refresh_token"],
      token_endpoint_auth_methods_supported: ["client_secret_post", "private_key_jwt", "client_secret_basic"],
    },
  },
  client: true,
};
