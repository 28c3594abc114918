import type { ServerShape } from "./shape.js";

/** The shape of MCP 2025-03-26. */
export const legacy: ServerShape = {
  id: "legacy",
  title: "MCP 2025-03-26",
  about: "No metadata at all: the endpoints have fixed paths.",
  source: "https://modelcontextprotocol.io/specification/2025-03-26/basic/authorization",
  date: "2025-03-26",
  byDefault: false,
  options: {
    legacyDiscovery: true,
  },
  server: "https://mcp.legacy.example/mcp",
  documents: {},
  challenge: null,
};
