import type { AuthInfo, CallToolResult, McpHttpHandler, Tool } from "@modelcontextprotocol/server";

/** The tool that needs more than a token. */
export const REPORTS_TOOL = "admin_report";

/** What it needs. */
export const REPORTS_SCOPE = "reports:read";

const TOOLS: readonly Tool[] = [
  {
    name: "whoami",
    title: "Who am I",
    description: "Tells for whom, by which client and with which scopes the call was made, and until when.",
    inputSchema: { type: "object" },
    annotations: { readOnlyHint: true },
  },
  {
    name: "echo",
    title: "Echo",
    description: "Says what it was told.",
    inputSchema: { type: "object", properties: { text: { type: "string" } }, required: ["text"] },
    annotations: { readOnlyHint: true },
  },
  {
    name: REPORTS_TOOL,
    title: "Admin report",
    description: `Counts made-up things. Needs the scope ${REPORTS_SCOPE}.`,
    inputSchema: { type: "object" },
    annotations: { readOnlyHint: true },
  },
];

let handler: Promise<McpHttpHandler> | undefined;

/** Answers a request to an MCP server whose token was accepted, by the official SDK, which is loaded for the first. */
export async function handleMcp(request: Request, authInfo: AuthInfo): Promise<Response> {
  handler ??= createHandler();
  const { fetch } = await handler;
  return fetch(request, { authInfo });
}

/** It keeps nothing between requests, so that one serves every sandbox of the process. */
async function createHandler(): Promise<McpHttpHandler> {
  const { createMcpHandler, Server } = await import("@modelcontextprotocol/server");
  return createMcpHandler(
    ({ authInfo }) => {
      const server = new Server({ name: "sandbox", version: "1.0.0" }, { capabilities: { tools: {} } });
      server.setRequestHandler("tools/list", () => ({ tools: [...TOOLS] }));
      server.setRequestHandler("tools/call", ({ params }) => callTool(params.name, params.arguments ?? {}, authInfo));
      return server;
    },
    // Answers are whole before they are sent, which a subscription would never be.
    { maxSubscriptions: 0, onerror: () => {} },
  );
}

function callTool(name: string, given: Record<string, unknown>, auth: AuthInfo | undefined): CallToolResult {
  if (name === "whoami") {
    const who = {
      subject: auth?.extra?.["subject"],
      client_id: auth?.clientId,
      scopes: auth?.scopes,
      expires_at: auth?.expiresAt,
    };
    return { content: [text(JSON.stringify(who))], structuredContent: who };
  }
  if (name === "echo" && typeof given["text"] === "string") return { content: [text(given["text"])] };
  if (name === REPORTS_TOOL) return { content: [text("12 pools, 340 devices, 3 of them revoked")] };
  const wrong = name === "echo" ? 'echo needs the argument "text", a string' : `there is no tool ${name}`;
  return { content: [text(wrong)], isError: true };
}

function text(content: string) {
  return { type: "text" as const, text: content };
}
