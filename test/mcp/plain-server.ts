import type { ServerResponse } from "node:http";
import { type SeenRequest, sendJson, startServer } from "../helpers/server.js";

/** A JSON-RPC request. */
export interface PlainCall {
  readonly id: number | string;
  readonly method: string;
  readonly params: Readonly<Record<string, unknown>>;
  /** Token of its progress notifications. */
  readonly progressToken: unknown;
}

/** Answers a request. A request that it ignores gets no response. */
export type PlainAnswer = (call: PlainCall, response: ServerResponse) => unknown;

/** Options of {@link startPlainServer}. */
export interface PlainOptions {
  /** `endless`: `notifications/initialized` gets no response; `none`: no request gets one. */
  handshake?: "whole" | "endless" | "none";
  capabilities?: object;
}

/**
 * An MCP server of the previous revision that accepts any token. It does the handshake; `answer` handles all other
 * requests.
 */
export async function startPlainServer(
  answer: PlainAnswer,
  { handshake = "whole", capabilities = { tools: {} } }: PlainOptions = {},
) {
  const server = await startServer((response, request) => {
    const call = request.method === "POST" ? callOf(request) : undefined;
    if (call === undefined) return void response.writeHead(405).end();
    if (handshake === "none") return undefined;
    if (call.method === "notifications/initialized" && handshake === "endless") return undefined;
    if (call.id === undefined) return void response.writeHead(202).end();
    if (call.method === "server/discover") return sendError(response, call.id, -32_601, "Method not found");
    if (call.method !== "initialize") return answer({ ...call, id: call.id }, response);
    const serverInfo = { name: "plain", version: "1" };
    const protocolVersion = call.params["protocolVersion"];
    return sendResult(response, call.id, { protocolVersion, capabilities, serverInfo });
  });
  return { ...server, url: `${server.origin}/mcp` };
}

/** Answers with a result. */
export function sendResult(response: ServerResponse, id: PlainCall["id"], result: object): void {
  sendJson(response, { jsonrpc: "2.0", id, result });
}

/** Answers with an error of JSON-RPC. */
export function sendError(response: ServerResponse, id: PlainCall["id"], code: number, message: string, status = 200) {
  sendJson(response, { jsonrpc: "2.0", id, error: { code, message } }, status);
}

function callOf({ body }: SeenRequest): (Omit<PlainCall, "id"> & Partial<Pick<PlainCall, "id">>) | undefined {
  const { id, method, params = {} } = JSON.parse(body) as PlainCall & { params?: Record<string, unknown> };
  const meta = params["_meta"] as { progressToken?: unknown } | undefined;
  return { ...(id !== undefined && { id }), method, params, progressToken: meta?.progressToken };
}
