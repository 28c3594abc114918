import type { ServerResponse } from "node:http";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import type { ReadableStream } from "node:stream/web";
import type { AuthInfo, CallToolResult, McpHttpHandler, Tool } from "@modelcontextprotocol/server";
import type { RoundTrip } from "../faults/round-trip.js";
import type { SandboxResponse } from "../http/sandbox-response.js";

/** The tool that needs a scope. */
export const REPORTS_TOOL = "admin_report";

export const REPORTS_SCOPE = "reports:read";

const TOOLS: readonly Tool[] = [
  sampleTool("whoami", "Who am I", "Returns the subject, the client, the scopes and the expiry of the access token."),
  sampleTool("echo", "Echo", "Returns its input.", { properties: { text: { type: "string" } }, required: ["text"] }),
  sampleTool(REPORTS_TOOL, "Admin report", `Returns sample figures. Needs the scope ${REPORTS_SCOPE}.`),
];

function sampleTool(name: string, title: string, description: string, schema: object = {}): Tool {
  return { name, title, description, inputSchema: { type: "object", ...schema }, annotations: { readOnlyHint: true } };
}

let handler: Promise<McpHttpHandler> | undefined;

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

/** Headers of the connection, and those that the next sender sets itself. */
const DROPPED = new Set(["connection", "keep-alive", "transfer-encoding", "content-length", "host", "expect"]);

/** A web-standard `Request`; its URL has the sandbox's origin, whatever Host the client sent. */
export function webRequest(origin: string, { method, path, request, response, body }: RoundTrip): Request {
  const headers = new Headers();
  for (const [name, values] of Object.entries(request.headersDistinct)) {
    if (!DROPPED.has(name)) for (const value of values ?? []) headers.append(name, value);
  }
  const hasBody = body !== undefined && body.length > 0 && method !== "GET" && method !== "HEAD";
  const leaving = new AbortController();
  response.once("close", () => leaving.abort());
  const { signal } = leaving;
  return new Request(origin + path, { method, headers, signal, ...(hasBody && { body: new Uint8Array(body) }) });
}

/** Whether a response is a stream of events, which may never end. */
export function isEventStreamResponse({ headers, body }: Response): boolean {
  return body !== null && headers.get("content-type")?.startsWith("text/event-stream") === true;
}

export function sendStream(response: Response, to: ServerResponse): void {
  to.writeHead(response.status, headersOf(response));
  to.flushHeaders();
  // A client that disconnects in the middle is not an error of the sandbox.
  pipeline(Readable.fromWeb(response.body as ReadableStream), to).catch(() => {});
}

/** Buffers a web-standard `Response`. */
export async function bufferResponse(response: Response): Promise<SandboxResponse> {
  const body = Buffer.from(await response.arrayBuffer());
  return { status: response.status, headers: headersOf(response), body };
}

function headersOf({ headers }: Response): Record<string, string> {
  return Object.fromEntries([...headers].filter(([name]) => !DROPPED.has(name)));
}
