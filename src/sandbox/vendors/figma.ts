import type { ServerShape } from "./shape.js";

/** The shape of Figma. */
export const figma: ServerShape = {
  id: "figma",
  title: "Figma",
  about:
    "Clients register only with a name that Figma has approved; the login page is on another host than the token endpoint.",
  source: "https://github.com/anthropics/claude-code/issues/74768",
  date: "2026-07-06",
  byDefault: false,
  options: {
    clientName: "your-approved-name",
    allowCrossOriginEndpoints: true,
  },
  server: "https://mcp.figma.com/mcp",
  documents: {
    "https://mcp.figma.com/.well-known/oauth-protected-resource": {
      resource: "https://mcp.figma.com/mcp",
      authorization_servers: ["https://api.figma.com"],
      scopes_supported: ["mcp:connect"],
    },
    "https://api.figma.com/.well-known/oauth-authorization-server": {
      issuer: "https://api.figma.com",
      authorization_endpoint: "https://www.figma.com/oauth/mcp",
      token_endpoint: "https://api.figma.com/v1/oauth/token",
      registration_endpoint: "https://api.figma.com/v1/oauth/mcp/register",
      response_types_supported: ["code"],
      grant_types_supported: ["authorization_code", "refresh_token"],
      code_challenge_methods_supported: ["S256"],
    },
  },
  refusals: [
    {
      at: "register",
      unless: {
        client_name: "^your-approved-name$",
      },
      status: 403,
      body: "Forbidden",
    },
  ],
};
