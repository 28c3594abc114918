import { AgentAuthError, isAgentAuthError } from "../../errors.js";
import { cancel, readText, saysJson } from "../../http/body.js";
import { follow, untilAborted } from "../../http/deadline.js";
import { HttpRequest } from "../../http/http-request.js";
import { networkError } from "../../http/network-error.js";
import { isJsonObject, parseStrictJson, StrictJsonError } from "../../http/strict-json.js";
import type { TraceEntry } from "../http/trace.js";
import { type BearerChallenge, bearerChallenge } from "./challenge.js";

/** What a request without a token depends on. */
export interface ChallengeContext {
  /** The `fetch` for the MCP server. */
  fetch: typeof globalThis.fetch;
  timeoutMs: number;
  trace: (entry: TraceEntry) => void;
}

/** The response of an MCP server to a request without a token. */
export interface UnauthenticatedResponse {
  /** Its challenge; undefined if it has none. */
  challenge: BearerChallenge | undefined;
  /** Whether it is a response of MCP: the server did what was requested. */
  isAnswered: boolean;
  /** Whether the server may want a session first. */
  isSessionMissing: boolean;
}

// Sent without a session: only the challenge matters, and some servers accept `initialize` without a token.
const TOOLS_BODY = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/list", params: {} });
const REVISION = "2025-11-25";
const INITIALIZE_BODY = JSON.stringify({
  jsonrpc: "2.0",
  id: 0,
  method: "initialize",
  params: { protocolVersion: REVISION, capabilities: {}, clientInfo: { name: "agentauth", version: "1" } },
});

/**
 * Sends a request without a token to the MCP server, to get its challenge.
 *
 * @throws `AgentAuthError` a network error
 */
export async function requestChallenge(
  context: ChallengeContext,
  mcpUrl: string,
  signal?: AbortSignal,
): Promise<UnauthenticatedResponse> {
  const { response, isAnswered } = await send(context, mcpUrl, { body: TOOLS_BODY, signal });
  const { status } = response;
  const challenge = challengeOf(response);
  const why = challenge
    ? "the server requires a bearer token"
    : "the server does not explicitly require a bearer token";
  context.trace({ step: "challenge", method: "POST", url: mcpUrl, status, used: challenge !== undefined, why });
  return { challenge, isAnswered, isSessionMissing: status === 400 || status === 404 };
}

/**
 * Whether a server answers requests without a token, in a new session if it may want one first.
 *
 * @throws `AgentAuthError` a network error
 */
export async function isOpen(
  context: ChallengeContext,
  mcpUrl: string,
  { isAnswered, isSessionMissing }: UnauthenticatedResponse,
  signal?: AbortSignal,
): Promise<boolean> {
  return isAnswered || (isSessionMissing && (await answersInSession(context, mcpUrl, signal)));
}

async function answersInSession(
  context: ChallengeContext,
  mcpUrl: string,
  signal: AbortSignal | undefined,
): Promise<boolean> {
  const opened = await send(context, mcpUrl, { body: INITIALIZE_BODY, signal });
  const session = opened.response.headers.get("mcp-session-id");
  if (!opened.isAnswered || session === null) return false;
  const headers = { "mcp-session-id": session, "mcp-protocol-version": REVISION };
  const { response, isAnswered } = await send(context, mcpUrl, { body: TOOLS_BODY, headers, signal });
  const why = isAnswered ? "the server answers without a token" : "the server does not answer without a token";
  context.trace({ step: "challenge", method: "POST", url: mcpUrl, status: response.status, used: isAnswered, why });
  // The server may not let clients end a session.
  await send(context, mcpUrl, { method: "DELETE", headers, signal }).catch(() => undefined);
  return isAnswered;
}

function challengeOf({ status, headers }: Response): BearerChallenge | undefined {
  return status === 401 || status === 403 ? bearerChallenge(headers) : undefined;
}

interface RequestParts {
  method?: "POST" | "DELETE";
  body?: string;
  headers?: Record<string, string>;
  signal: AbortSignal | undefined;
}

async function send(
  context: ChallengeContext,
  mcpUrl: string,
  { method = "POST", body, headers, signal }: RequestParts,
): Promise<{ response: Response; isAnswered: boolean }> {
  const call = follow(signal, context.timeoutMs, () => {
    return new AgentAuthError("timeout", `${new URL(mcpUrl).host}: no response in ${context.timeoutMs / 1000} s`, {
      class: "unavailable",
    });
  });
  try {
    const types = { "content-type": "application/json", accept: "application/json, text/event-stream" };
    const request = new HttpRequest(mcpUrl, {
      method,
      headers: { ...types, ...headers },
      body: body ?? null,
      redirect: "manual",
    });
    const response = await untilAborted(context.fetch(request, { signal: call.signal }), call.signal);
    return { response, isAnswered: await isAnswer(response, mcpUrl, call.signal) };
  } catch (thrown) {
    const error =
      call.signal.aborted && isAgentAuthError(call.signal.reason) ? call.signal.reason : networkError(thrown, mcpUrl);
    context.trace({ step: "challenge", method, url: mcpUrl, used: false, why: error.message });
    throw error;
  } finally {
    call.release();
  }
}

/** The most that is read of an answer. */
const MAX_ANSWER_BYTES = 256 * 1024;

/** Whether the server did what was requested: neither a web page nor an error of JSON-RPC is an answer. */
async function isAnswer(response: Response, mcpUrl: string, signal: AbortSignal): Promise<boolean> {
  if (response.status !== 200 || !saysJson(response.headers)) {
    // An event stream would not end.
    await cancel(response);
    return response.status === 200 && /^text\/event-stream\b/i.test(response.headers.get("content-type") ?? "");
  }
  try {
    const text = await untilAborted(readText(response, mcpUrl, MAX_ANSWER_BYTES, true), signal);
    const message = parseStrictJson(text);
    return isJsonObject(message) && "result" in message;
  } catch (error) {
    const isMalformed = error instanceof StrictJsonError || (isAgentAuthError(error) && error.class === "refused");
    if (isMalformed) return false;
    throw error;
  }
}
