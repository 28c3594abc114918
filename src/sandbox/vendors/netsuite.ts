import type { ServerShape } from "./shape.js";

/** The shape of NetSuite. */
export const netsuite: ServerShape = {
  id: "netsuite",
  title: "NetSuite",
  about: "The issuer is the system of all accounts, the resource metadata name that of one account.",
  source: "https://github.com/NousResearch/hermes-agent/pull/107801",
  date: "2026-09-11",
  byDefault: false,
  options: {
    issuer: "https://system.netsuite.com",
  },
  server: "https://1234567.suitetalk.api.netsuite.com/services/mcp/v1/all",
  documents: {
    "https://1234567.suitetalk.api.netsuite.com/.well-known/oauth-protected-resource/services/mcp/v1/all": {
      resource: "https://1234567.suitetalk.api.netsuite.com/services/mcp/v1/all",
      authorization_servers: ["https://1234567.suitetalk.api.netsuite.com"],
    },
    "https://1234567.suitetalk.api.netsuite.com/.well-known/oauth-authorization-server": {
      issuer: "https://system.netsuite.com",
      authorization_endpoint: "https://system.netsuite.com/app/login/oauth2/authorize.nl",
      token_endpoint: "https://system.netsuite.com/services/rest/auth/oauth2/v1/token",
      registration_endpoint: "https://system.netsuite.com/services/rest/auth/oauth2/v1/register",
      response_types_supported: ["code"],
      grant_types_supported: ["authorization_code", "refresh_token"],
      code_challenge_methods_supported: ["S256"],
    },
  },
};
