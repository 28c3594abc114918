import type { ServerShape } from "./shape.js";

/** The shape of Apache Superset. */
export const superset: ServerShape = {
  id: "superset",
  title: "Apache Superset",
  about: "Clients register only with the redirect host `localhost`.",
  source: "https://github.com/NousResearch/hermes-agent/pull/29875",
  date: "2026-05-21",
  byDefault: false,
  options: {
    redirectHost: "localhost",
  },
  server: "https://superset.example/mcp",
  documents: {
    "https://superset.example/.well-known/oauth-protected-resource/mcp": {
      resource: "https://superset.example/mcp",
      authorization_servers: ["https://superset.example"],
    },
    "https://superset.example/.well-known/oauth-authorization-server": {
      issuer: "https://superset.example",
      authorization_endpoint: "https://superset.example/authorize",
      token_endpoint: "https://superset.example/token",
      registration_endpoint: "https://superset.example/register",
      response_types_supported: ["code"],
      grant_types_supported: ["authorization_code", "refresh_token"],
      code_challenge_methods_supported: ["S256"],
    },
  },
  refusals: [
    {
      at: "register",
      unless: {
        redirect_uris: "^http://localhost[:/]",
      },
      body: {
        error: "invalid_redirect_uri",
        error_description: "redirect_uris: only localhost is allowed",
      },
    },
  ],
};
