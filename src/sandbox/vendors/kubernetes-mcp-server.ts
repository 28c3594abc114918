import type { ServerShape } from "./shape.js";

/** The shape of kubernetes-mcp-server, before September 2026. */
export const kubernetesMcpServer: ServerShape = {
  id: "kubernetes-mcp-server",
  title: "kubernetes-mcp-server, before September 2026",
  about: "The resource metadata name no resource.",
  source: "https://github.com/containers/kubernetes-mcp-server/pull/1427",
  date: "2026-09-11",
  byDefault: false,
  options: {},
  server: "https://mcp.kubernetes.example/mcp",
  documents: {
    "https://mcp.kubernetes.example/.well-known/oauth-protected-resource": {
      authorization_servers: ["https://mcp.kubernetes.example"],
    },
    "https://mcp.kubernetes.example/.well-known/oauth-authorization-server": {
      issuer: "https://mcp.kubernetes.example",
      authorization_endpoint: "https://mcp.kubernetes.example/authorize",
      token_endpoint: "https://mcp.kubernetes.example/token",
      registration_endpoint: "https://mcp.kubernetes.example/register",
      response_types_supported: ["code"],
      grant_types_supported: ["authorization_code", "refresh_token"],
      code_challenge_methods_supported: ["S256"],
    },
  },
  refused: "resource metadata must name their resource (RFC 9728 section 2)",
};
