import { ProtocolError, SdkError, SdkErrorCode, SdkHttpError } from "@modelcontextprotocol/client";
import { type AgentAuthError, isAgentAuthError } from "../errors.js";
import { networkError } from "../http/network-error.js";
import { isJsonObject } from "../http/strict-json.js";
import { escapeText, quote } from "../redact.js";
import { RPC_CODES, type RpcError } from "./json-rpc.js";

const MAX_DEPTH = 8;

/** What is said of a failure. */
export interface RpcErrorContext {
  /** The server, as it was named. */
  url: string;
  /** Whether the request belonged to a session. */
  hasSession: boolean;
  /** Masks secrets in a text. */
  mask(text: string): string;
}

/**
 * The error for a host's request that has no answer: the failure that the server itself described, where it did,
 * else what went wrong, with the command that helps.
 */
export function toRpcError(error: unknown, { url, hasSession, mask }: RpcErrorContext): RpcError {
  if (isAgentAuthError(error)) {
    const { message, hint, ...rest } = error.toJSON();
    const shown = { message: shownText(message, mask), ...(hint !== undefined && { hint: shownText(hint, mask) }) };
    return {
      code: RPC_CODES.internal,
      message: [shown.message, shown.hint?.replace(/^(?=agentauth )/, "run: ")].filter(Boolean).join("; "),
      data: { ...rest, ...shown },
    };
  }
  if (error instanceof SdkHttpError) return explainStatus(error, { url, hasSession, mask });
  const why = error instanceof Error ? error.message : String(error);
  return internal(`the MCP server ${quote(url)}: ${shownText(why, mask)}`);
}

function explainStatus(error: SdkHttpError, { url, hasSession, mask }: RpcErrorContext): RpcError {
  const { status } = error;
  const { text } = error.data as { text?: unknown };
  if (status === 404 && hasSession) {
    return internal(
      `the MCP server ${quote(url)} has ended the session, or was restarted (HTTP 404): restart this server in the host to begin a new session`,
      { status },
    );
  }
  const serverError = typeof text === "string" ? parseServerError(text, mask) : undefined;
  if (serverError) return serverError;
  const body = typeof text === "string" && text.trim() !== "" ? `: ${quote(mask(text), 300)}` : "";
  return internal(`the MCP server ${quote(url)} answered HTTP ${status ?? "?"}${body}`, { status });
}

/** The failure in a body that is a JSON-RPC answer. */
function parseServerError(body: string, mask: (text: string) => string): RpcError | undefined {
  try {
    const answer: unknown = JSON.parse(mask(body));
    const error = isJsonObject(answer) && answer["jsonrpc"] === "2.0" ? answer["error"] : undefined;
    if (!isJsonObject(error) || typeof error["message"] !== "string" || !Number.isInteger(error["code"]))
      return undefined;
    return {
      code: error["code"] as number,
      message: error["message"],
      ...("data" in error && { data: error["data"] }),
    };
  } catch {
    return undefined;
  }
}

function internal(message: string, data?: unknown): RpcError {
  return { code: RPC_CODES.internal, message, ...(data !== undefined && { data }) };
}

function shownText(text: string, mask: (text: string) => string): string {
  return escapeText(mask(text)).slice(0, 1000);
}

/** Whether a request had no answer in time. */
export function isLate(error: unknown): boolean {
  return error instanceof SdkError && error.code === SdkErrorCode.RequestTimeout;
}

/** Our own error among the causes, which `fetch` threw, or the one for a connection that broke in the midst of an answer. */
export function connectionError(error: unknown, url: string): AgentAuthError | undefined {
  let current = error;
  for (let depth = 0; depth < MAX_DEPTH && current instanceof Error; depth++) {
    if (isAgentAuthError(current)) return current;
    current = current.cause;
  }
  const found = networkError(error, url);
  return found.code === "network_failed" ? undefined : found;
}

/** What the server itself says went wrong, as a JSON-RPC error, also as the body of an HTTP error; as it came. */
export function serverWords(error: unknown): string | undefined {
  if (error instanceof ProtocolError) return error.message;
  const { text } = error instanceof SdkHttpError ? (error.data as { text?: unknown }) : {};
  if (typeof text !== "string") return undefined;
  try {
    const answer: unknown = JSON.parse(text);
    const rpcError = isJsonObject(answer) && answer["jsonrpc"] === "2.0" ? answer["error"] : undefined;
    return isJsonObject(rpcError) && typeof rpcError["message"] === "string" ? rpcError["message"] : undefined;
  } catch {
    return undefined;
  }
}
