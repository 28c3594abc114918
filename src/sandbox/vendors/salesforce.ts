import type { ServerShape } from "./shape.js";

/** The shape of Salesforce. */
export const salesforce: ServerShape = {
  id: "salesforce",
  title: "Salesforce",
  about: "The issuer is another host than the named one and the metadata do not list PKCE.",
  source: "https://github.com/forcedotcom/mcp-hosted/issues/44",
  date: "2026-08-13",
  byDefault: false,
  options: {
    clientId: "your-client",
    issuer: "https://login.salesforce.com",
    allowMissingPkceMetadata: true,
  },
  server: "https://api.salesforce.com/platform/mcp/v1/platform/sobject-reads",
  documents: {
    "https://api.salesforce.com/.well-known/oauth-protected-resource/platform/mcp/v1/platform/sobject-reads": {
      resource: "https://api.salesforce.com/platform/mcp/v1/platform/sobject-reads",
      authorization_servers: ["https://api.salesforce.com/platform/mcp/v1/platform/sobject-reads"],
    },
    "https://api.salesforce.com/.well-known/oauth-authorization-server/platform/mcp/v1/platform/sobject-reads": {
      issuer: "https://login.salesforce.com",
      authorization_endpoint: "https://login.salesforce.com/services/oauth2/authorize",
      token_endpoint: "https://login.salesforce.com/services/oauth2/token",
      response_types_supported: ["code"],
      grant_types_supported: ["authorization_code", "refresh_token"],
    },
  },
  client: true,
  token: {
    expires_in: null,
  },
  refresh: "keep",
};
