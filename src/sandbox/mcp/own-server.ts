import type { AuthInfo, McpServer } from "@modelcontextprotocol/server";
import type { McpHandler } from "./handler.js";
import type { CreateMcpServer } from "./own-server-options.js";
import { McpSessions } from "./sessions.js";

/** Handles authorized requests with MCP servers of the user: one for a request of revision 2026-07-28, else one for a session. */
export function ownMcp(create: CreateMcpServer, closed: Promise<void>): McpHandler {
  let loaded: Promise<McpHandler> | undefined;
  return async (request, authInfo) => {
    loaded ??= load(create, closed);
    return (await loaded)(request, authInfo);
  };
}

async function load(create: CreateMcpServer, closed: Promise<void>): Promise<McpHandler> {
  const sdk = await import("#packages/mcp-server");
  const serverOf = (era: "modern" | "legacy") => create({ sdk, era, notify: modern.notify }) as McpServer;
  const quiet = { onerror: () => {}, keepAliveMs: 0 };
  const modern = sdk.createMcpHandler(() => serverOf("modern"), { ...quiet, legacy: "reject" });
  const sessions = new McpSessions(sdk.WebStandardStreamableHTTPServerTransport, () => serverOf("legacy"));
  void closed.then(() => Promise.allSettled([modern.close(), sessions.close()]));
  return async (request: Request, authInfo: AuthInfo) =>
    (await sdk.isLegacyRequest(request)) ? sessions.fetch(request, authInfo) : modern.fetch(request, { authInfo });
}
