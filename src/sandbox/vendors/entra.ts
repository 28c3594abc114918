import type { ServerShape } from "./shape.js";

/** The shape of Microsoft Entra ID. */
export const entra: ServerShape = {
  id: "entra",
  title: "Microsoft Entra ID",
  about: "The resource parameter is refused, the metadata do not list PKCE, and clients cannot register.",
  source: "https://github.com/microsoft/vscode/issues/321249",
  date: "2026-06-13",
  byDefault: false,
  options: {
    clientId: "your-client",
    allowMissingPkceMetadata: true,
    resource: "none",
  },
  server: "https://mcp.contoso.example/mcp",
  documents: {
    "https://mcp.contoso.example/.well-known/oauth-protected-resource/mcp": {
      resource: "https://mcp.contoso.example/mcp",
      authorization_servers: ["https://login.microsoftonline.com/11111111-2222-3333-4444-555555555555/v2.0"],
      scopes_supported: ["api://your-api/user_impersonation"],
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
  refusals: [
    {
      at: "authorize",
      when: {
        resource: ".",
      },
      body: {
        error: "invalid_target",
        error_description:
          "AADSTS9010010: The resource parameter provided in the request doesn't match with the requested scopes.",
      },
    },
  ],
};
