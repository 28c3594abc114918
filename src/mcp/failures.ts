import { AgentAuthError } from "../errors.js";
import { escapeText, quote } from "../redact.js";
import type { RpcError } from "./json-rpc.js";

/** An HTTP error of an MCP server. */
export class HttpFailure extends Error {
  override readonly name = "HttpFailure";
  /** The status and the body. */
  readonly data: { readonly status: number; readonly text: string };

  constructor(status: number, text: string) {
    super(`HTTP ${status}${text === "" ? "" : `: ${text}`}`);
    this.data = { status, text };
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
export function httpFailureOf(error: unknown): { status: number; text: string } | undefined {
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
