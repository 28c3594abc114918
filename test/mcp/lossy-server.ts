import type { ServerResponse } from "node:http";
import { type SeenRequest, sendJson, startServer } from "../helpers/server.js";

/** A message of the host. */
export interface LossyCall {
  readonly id?: string | number;
  readonly method?: string;
  readonly params?: Readonly<Record<string, unknown>>;
  /** The session that it names. */
  readonly session: string;
}

type Handler = (response: ServerResponse, call: LossyCall) => unknown;

export interface LossyOptions {
  /** Answers `initialize`; the default opens a session. */
  initialize?: ((response: ServerResponse, call: LossyCall, session: string) => unknown) | undefined;
  /** Answers requests; the default is an empty result. */
  answer?: Handler | undefined;
  /** Answers notifications and responses; the default accepts them. */
  notify?: Handler | undefined;
  /** Answers messages of a session that the server does not know. */
  lost?: Handler | undefined;
}

export const EVENTS = { "content-type": "text/event-stream" };

/** Answers with the result of `initialize`. */
export function sendSession(response: ServerResponse, { id, params }: LossyCall, session: string, more: object = {}) {
  const result = {
    protocolVersion: params?.["protocolVersion"],
    capabilities: {},
    serverInfo: { name: "s", version: "1" },
  };
  const headers = { "content-type": "application/json", "mcp-session-id": session };
  response.writeHead(200, headers).end(JSON.stringify({ jsonrpc: "2.0", id, result: { ...result, ...more } }));
}

/** Answers that the session is not known, as the official SDK does. */
export const sessionNotFound: Handler = (response) =>
  sendJson(response, { jsonrpc: "2.0", error: { code: -32_001, message: "Session not found" }, id: null }, 404);

/** An MCP server that forgets its sessions when a test says so. */
export async function startLossyServer({
  initialize = sendSession,
  answer,
  notify = (response) => response.writeHead(202).end(),
  lost = sessionNotFound,
}: LossyOptions = {}) {
  const calls: (LossyCall & { http: string; headers: SeenRequest["headers"] })[] = [];
  const known = new Set<string>();
  const streams: ServerResponse[] = [];
  let count = 0;
  const server = await startServer((response, { method, headers, body }) => {
    const session = String(headers["mcp-session-id"] ?? "");
    const call: LossyCall = { ...(body === "" ? {} : (JSON.parse(body) as object)), session };
    calls.push({ ...call, http: method, headers });
    if (call.method === "initialize") {
      count += 1;
      known.add(`session-${count}`);
      return initialize(response, call, `session-${count}`);
    }
    if (!known.has(session)) return lost(response, call);
    if (method === "DELETE") return response.writeHead(200).end();
    if (method === "GET") {
      streams.push(response.writeHead(200, EVENTS));
      return response.flushHeaders();
    }
    if (call.id === undefined || call.method === undefined) return notify(response, call);
    return answer ? answer(response, call) : sendJson(response, { jsonrpc: "2.0", id: call.id, result: {} });
  });
  const of = (method: string) => calls.filter((call) => call.method === method);
  return {
    ...server,
    url: `${server.origin}/mcp`,
    calls,
    /** The calls of a method. */
    of,
    /** Open notification streams, in order. */
    streams,
    /** Forgets every session. */
    restart: () => known.clear(),
  };
}
