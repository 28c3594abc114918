import type { AuthInfo, CallToolResult, McpHttpHandler, Tool } from "@modelcontextprotocol/server";

/** The tool that needs a scope. */
export const REPORTS_TOOL = "admin_report";

/** The scope that it needs. */
export const REPORTS_SCOPE = "reports:read";

const TOOLS: readonly Tool[] = [
  {
    name: "whoami",
    title: "Who am I",
    description: "Returns the subject, the client, the scopes and the expiry of the access token.",
    inputSchema: { type: "object" },
    annotations: { readOnlyHint: true },
  },
  {
    name: "echo",
    title: "Echo",
    description: "Returns its input.",
    inputSchema: { type: "object", properties: { text: { type: "string" } }, required: ["text"] },
    annotations: { readOnlyHint: true },
  },
  {
    name: REPORTS_TOOL,
    title: "Admin report",
    description: `Returns sample figures. Needs the scope ${REPORTS_SCOPE}.`,
    inputSchema: { type: "object" },
    annotations: { readOnlyHint: true },
  },
];

let handler: Promise<McpHttpHandler> | undefined;

/** Handles an authorized request to an MCP server. */
export type McpHandler = (request: Request, authInfo: AuthInfo) => Promise<Response>;

/** Handles it with the sample server, on the official SDK, which is loaded for the first request. */
export const sampleMcp: McpHandler = async (request, authInfo) => {
  handler ??= createHandler();
  const { fetch } = await handler;
  return fetch(request, { authInfo });
};

/** The handler is stateless, so that one serves every sandbox of the process. */
async function createHandler(): Promise<McpHttpHandler> {
  const { createMcpHandler, Server } = await import("#packages/mcp-server");
  return createMcpHandler(
    ({ authInfo }) => {
      const server = new Server({ name: "sandbox", version: "1.0.0" }, { capabilities: { tools: {} } });
      server.setRequestHandler("tools/list", () => ({ tools: [...TOOLS] }));
      server.setRequestHandler("tools/call", ({ params }) => callTool(params.name, params.arguments ?? {}, authInfo));
      return server;
    },
    // The sample server never changes.
    { maxSubscriptions: 0, onerror: () => {} },
  );
}

function callTool(name: string, args: Record<string, unknown>, auth: AuthInfo | undefined): CallToolResult {
  if (name === "whoami") {
    const who = {
      subject: auth?.extra?.["subject"],
      client_id: auth?.clientId,
      scopes: auth?.scopes,
      expires_at: auth?.expiresAt,
    };
    return { content: [textContent(JSON.stringify(who))], structuredContent: who };
  }
  if (name === "echo" && typeof args["text"] === "string") return { content: [textContent(args["text"])] };
  if (name === REPORTS_TOOL) return { content: [textContent("12 pools, 340 devices, 3 of them revoked")] };
  const problem = name === "echo" ? 'echo needs the argument "text", a string' : `there is no tool ${name}`;
  return { content: [textContent(problem)], isError: true };
}

function textContent(content: string) {
  return { type: "text" as const, text: content };
}
