// The official MCP SDK for TypeScript, 1.x: its MCP server with its authorization server.
import { startMcpSdk } from "../servers.mjs";

export const rows = [
  {
    name: "mcp-sdk-1",
    title: "MCP SDK for TypeScript 1.x, server and authorization server",
    start: () => startMcpSdk(),
  },
];
