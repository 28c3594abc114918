import type { ServerShape } from "./shape.js";

/** The shape of Keycloak. */
export const keycloak: ServerShape = {
  id: "keycloak",
  title: "Keycloak",
  about: "The policy of trusted hosts refuses that clients register.",
  source: "https://github.com/dnotitia/akb/issues/635",
  date: "2026-09-21",
  byDefault: false,
  options: {
    clientId: "your-client",
  },
  server: "https://mcp.keycloak.example/mcp",
  documents: {
    "https://mcp.keycloak.example/.well-known/oauth-protected-resource/mcp": {
      resource: "https://mcp.keycloak.example/mcp",
      authorization_servers: ["https://keycloak.example/realms/mcp"],
    },
    "https://keycloak.example/realms/mcp/.well-known/openid-configuration": {
      issuer: "https://keycloak.example/realms/mcp",
      authorization_endpoint: "https://keycloak.example/realms/mcp/protocol/openid-connect/auth",
      token_endpoint: "https://keycloak.example/realms/mcp/protocol/openid-connect/token",
      registration_endpoint: "https://keycloak.example/realms/mcp/clients-registrations/openid-connect",
      response_types_supported: ["code"],
      grant_types_supported: ["authorization_code", "refresh_token"],
      token_endpoint_auth_methods_supported: ["private_key_jwt", "client_secret_basic", "client_secret_post"],
      code_challenge_methods_supported: ["S256"],
    },
    "https://keycloak.example/.well-known/oauth-authorization-server/realms/mcp": {
      issuer: "https://keycloak.example/realms/mcp",
      authorization_endpoint: "https://keycloak.example/realms/mcp/protocol/openid-connect/auth",
      token_endpoint: "https://keycloak.example/realms/mcp/protocol/openid-connect/token",
      registration_endpoint: "https://keycloak.example/realms/mcp/clients-registrations/openid-connect",
      response_types_supported: ["code"],
      grant_types_supported: ["authorization_code", "refresh_token"],
      token_endpoint_auth_methods_supported: ["private_key_jwt", "client_secret_basic", "client_secret_post"],
      code_challenge_methods_supported: ["S256"],
    },
  },
  client: true,
  refusals: [
    {
      at: "register",
      status: 403,
      body: {
        error: "insufficient_scope",
        error_description:
          "Policy 'Trusted Hosts' rejected request to client-registration service. Details: Host not trusted.",
      },
    },
  ],
};
