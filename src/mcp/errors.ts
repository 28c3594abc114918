import { AgentAuthError, errorMessage, isAgentAuthError, orUndefined } from "../errors.js";
import { saysSessionLost } from "../http/lost-session.js";
import { networkError } from "../http/network-error.js";
import { isJsonObject } from "../http/strict-json.js";
import { escapeText, quote } from "../redact.js";
import { parseServerJson, RPC_CODES, type RpcError } from "./json-rpc.js";

export class HttpFailure extends Error {
  override readonly name = "HttpFailure";
  /** The status and the body, and whether the session began with another token than the request had. */
  readonly data: { readonly status: number; readonly text: string; readonly hasNewToken?: boolean };

  constructor(status: number, text: string, hasNewToken = false) {
    super(`HTTP ${status}${text === "" ? "" : `: ${text}`}`);
    this.data = { status, text, ...(hasNewToken && { hasNewToken }) };
  }
}

/** A JSON-RPC error of an MCP server. */
export class RpcFailure extends Error {
  override readonly name = "RpcFailure";

  readonly code: number;
  readonly data: unknown;

  constructor({ code, message, data }: RpcError) {
    super(message);
    this.code = code;
    this.data = data;
  }
}

/** No response within the time limit. */
export class RequestTimeout extends Error {
  override readonly name = "RequestTimeout";
}

/** The status and the body of an HTTP error; undefined for other errors. */
export function readHttpFailure(error: unknown): HttpFailure["data"] | undefined {
  return error instanceof HttpFailure ? error.data : undefined;
}

/** A stream that ended too early, and why. */
export class StreamLost extends AgentAuthError {
  constructor(url: string, reason: unknown) {
    const why = reason instanceof Error ? `: ${escapeText(reason.message).slice(0, 300)}` : "";
    const text = `the connection to the MCP server ${quote(url)} closed before the response arrived${why}`;
    super("connection_reset", text, { class: "unavailable", cause: reason });
  }
}

const MAX_DEPTH = 8;

/** What {@link toRpcError} adds to an error. */
export interface RpcErrorContext {
  url: string;
  /** Whether the request belonged to a session. */
  hasSession: boolean;
  mask(text: string): string;
}

/**
 * The error object for a request of the host without a response: the server's own, if its HTTP error has one in the
 * body, else a description of the failure with the command that helps.
 */
export function toRpcError(error: unknown, { url, hasSession, mask }: RpcErrorContext): RpcError {
  if (isAgentAuthError(error)) {
    const { message, hint, ...rest } = error.toJSON();
    const shown = { message: toPrintable(message, mask), ...(hint !== undefined && { hint: toPrintable(hint, mask) }) };
    return {
      code: RPC_CODES.internal,
      message: [shown.message, shown.hint?.replace(/^(?=agentauth )/, "run: ")].filter(Boolean).join("; "),
      data: { ...rest, ...shown },
    };
  }
  const failure = readHttpFailure(error);
  if (failure !== undefined) return explainStatus(error, failure, { url, hasSession, mask });
  const reason = errorMessage(error);
  return internalRpcError(`the MCP server ${quote(url)}: ${toPrintable(reason, mask)}`);
}

function explainStatus(
  error: unknown,
  { status, text }: HttpFailure["data"],
  { url, hasSession, mask }: RpcErrorContext,
): RpcError {
  if (hasSession && isSessionLost(error))
    return internalRpcError(
      `the MCP server ${quote(url)} has ended the session, or was restarted (HTTP ${status}): restart this server in the host to begin a new session`,
      { status },
    );
  const serverError = errorObjectIn(mask(text));
  if (serverError && Number.isInteger(serverError["code"])) {
    const { code, message, data } = serverError as Record<string, unknown> & RpcError;
    return { code, message, ...("data" in serverError && { data }) };
  }
  const body = text.trim() ? `: ${quote(mask(text), 300)}` : "";
  return internalRpcError(`the MCP server ${quote(url)} answered HTTP ${status}${body}`, { status });
}

/** Codes of the JSON-RPC errors with which session checks answer; others belong to the request. */
const SESSION_CODES: ReadonlySet<unknown> = new Set([-32_000, -32_001, RPC_CODES.invalid]);

/**
 * Whether the server rejected a request that has a session ID because it does not know the session. It did not process
 * the request.
 */
export function isSessionLost(error: unknown): boolean {
  const failure = readHttpFailure(error);
  if (failure === undefined) return false;
  const { status, text, hasNewToken } = failure;
  const serverError = errorObjectIn(text);
  // Some servers hold a session to the token that it began with, and refuse a refreshed one.
  if (status === 403) return hasNewToken === true;
  if (status === 404)
    return !serverError || SESSION_CODES.has(serverError["code"]) || /\bsession\b/i.test(serverError.message);
  return (status === 400 || status === 401) && saysSessionLost(serverError?.message ?? text);
}

/** The body of an HTTP error, and the error object in it if it is a JSON-RPC response; nothing of other errors. */
export function errorBody(error: unknown): {
  text?: string | undefined;
  error?: (Record<string, unknown> & { message: string }) | undefined;
} {
  const text = readHttpFailure(error)?.text;
  return text === undefined ? {} : { text, error: errorObjectIn(text) };
}

function errorObjectIn(body: string): (Record<string, unknown> & { message: string }) | undefined {
  const response = orUndefined(() => parseServerJson(body));
  const error = isJsonObject(response) && response["jsonrpc"] === "2.0" ? response["error"] : undefined;
  if (!isJsonObject(error) || typeof error["message"] !== "string") return undefined;
  return { ...error, message: error["message"] };
}

function internalRpcError(message: string, data?: unknown): RpcError {
  return { code: RPC_CODES.internal, message, ...(data !== undefined && { data }) };
}

function toPrintable(text: string, mask: (text: string) => string): string {
  return escapeText(mask(text)).slice(0, 1000);
}

/** The error for a request that the server took and did not answer. */
export function noResponseError(url: string): AgentAuthError {
  const text = `the MCP server ${quote(url)} accepted the request and sent no response`;
  return new AgentAuthError("mcp_failed", text, { class: "remote" });
}

/** The error for what a lost session leaves open. */
export function sessionLostError(url: string): AgentAuthError {
  const text = `the MCP server ${quote(url)} has ended the session, or was restarted, before the response arrived: the request may have been processed`;
  return new AgentAuthError("connection_reset", text, { class: "unavailable" });
}

/** The error for a message that not every host can read. */
export function tooDeepError(url: string): AgentAuthError {
  const text = `the MCP server ${quote(url)} sent a message that is nested too deep`;
  return new AgentAuthError("mcp_failed", text, { class: "remote" });
}

/** Whether a request timed out. */
export function isTimeout(error: unknown): boolean {
  return error instanceof RequestTimeout;
}

/** The `AgentAuthError` among the causes, or one for a connection that failed; undefined for other errors. */
export function connectionError(error: unknown, url: string): AgentAuthError | undefined {
  let current = error;
  for (let depth = 0; depth < MAX_DEPTH && current instanceof Error; depth++) {
    if (isAgentAuthError(current)) return current;
    current = current.cause;
  }
  const converted = networkError(error, url);
  return converted.code === "network_failed" ? undefined : converted;
}

/** The message of the server's JSON-RPC error, also in the body of an HTTP error; not escaped. */
export function serverMessage(error: unknown): string | undefined {
  return error instanceof RpcFailure ? error.message : errorBody(error).error?.message;
}
