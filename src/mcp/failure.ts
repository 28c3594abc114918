import { ProtocolError, SdkError, SdkErrorCode, SdkHttpError } from "@modelcontextprotocol/client";
import { type AgentAuthError, isAgentAuthError } from "../errors.js";
import { networkError } from "../http/network-error.js";
import { isJsonObject } from "../http/strict-json.js";

const MAX_DEPTH = 8;

/** Whether a request had no response in time. */
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
