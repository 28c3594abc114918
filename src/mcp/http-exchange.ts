import { AgentAuthError } from "../errors.js";
import type { HttpRequestInit } from "../http/http-request.js";
import { HttpResponse } from "../http/http-response.js";
import { HttpFailure } from "./errors.js";

/** The longest message that is forwarded, in bytes: a line of the host, a response or an event of the server. */
export const MAX_MESSAGE_BYTES = 64 * 1024 * 1024;
const MAX_ERROR_BYTES = 256 * 1024;
/** A body that says that it is shorter than this is read at once, without a stream. */
const SHORT_BYTES = 256 * 1024;

export const POST_HEADERS = {
  "content-type": "application/json",
  accept: "application/json, text/event-stream",
} as const;

/** What the headers of a session say: its id, and the revision that both sides agreed on. */
export interface SessionState {
  readonly sessionId: string | undefined;
  readonly revision: string | undefined;
}

export function sessionHeaders({ sessionId, revision }: SessionState): Record<string, string> {
  return {
    ...(sessionId !== undefined && { "mcp-session-id": sessionId }),
    ...(revision !== undefined && { "mcp-protocol-version": revision }),
  };
}

/** Sends a request with the token, and follows redirects within the origin: a message may hold what no other may see. */
export type SendRequest = (url: string, init: HttpRequestInit) => Promise<Response>;

/** Resolves when the reader of a body accepts more. @param hasBegun whether it has had a part of it */
export type Ready = (hasBegun?: boolean) => Promise<void> | undefined;

export function isJsonResponse({ headers }: Response): boolean {
  return /^application\/json\b/i.test(headers.get("content-type") ?? "");
}

/** An HTTP error with its body. @param hasNewToken whether the session began with another token than the request had */
export async function httpFailure(response: Response, hasNewToken = false): Promise<HttpFailure> {
  const lacksScope = /insufficient_scope/.test(response.headers.get("www-authenticate") ?? "");
  const text = await readResponseBody(response, MAX_ERROR_BYTES);
  return new HttpFailure(response.status, text, hasNewToken && !lacksScope);
}

/** The parts of a body, read no faster than the reader accepts them. */
export async function* bodyParts(
  body: ReadableStream<Uint8Array>,
  ready: Ready = () => undefined,
): AsyncGenerator<Uint8Array> {
  const reader = body.getReader();
  try {
    for (let hasBegun = false; ; hasBegun = true) {
      const { done, value } = await reader.read();
      if (done) return;
      // Not before: one that has no more to read would keep its last message in memory until its turn.
      await ready(hasBegun);
      yield value;
    }
  } finally {
    await reader.cancel().catch(() => undefined);
  }
}

/** A body as text. @throws `AgentAuthError` `body_too_large` */
export async function readResponseBody(response: Response, maxBytes: number, ready?: Ready): Promise<string> {
  const parts: Uint8Array[] = [];
  let size = 0;
  const take = (part: Uint8Array) => {
    size += part.length;
    if (size > maxBytes) throw tooLong("the response", maxBytes);
    parts.push(part);
  };
  const declared = Number(response.headers.get("content-length") ?? Number.NaN);
  if (response instanceof HttpResponse && declared <= SHORT_BYTES) {
    await ready?.();
    await response.readTo(take);
  } else if (response.body !== null) for await (const part of bodyParts(response.body, ready)) take(part);
  const text = Buffer.concat(parts, size).toString("utf8");
  return text.startsWith("\u{feff}") ? text.slice(1) : text;
}

export function tooLong(what: string, maxBytes: number): AgentAuthError {
  return new AgentAuthError("body_too_large", `${what} of the MCP server is longer than ${maxBytes} bytes`, {
    class: "refused",
  });
}

/** Whether a body was longer than its limit. */
export function isTooLong(error: unknown): boolean {
  return error instanceof AgentAuthError && error.code === "body_too_large";
}

export interface StreamEvent {
  /** Where a broken stream is resumed; undefined if the stream has named no event. */
  id: string | undefined;
  /** The message; empty in an event that has an id alone. */
  data: string;
  /** The type; undefined stands for `message`. */
  type: string | undefined;
  /** Milliseconds to wait before resuming; undefined if the stream has not said. */
  retry: number | undefined;
}

/** The text as it comes, a part at a time. */
export async function* textParts(parts: AsyncIterable<Uint8Array>): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  for await (const part of parts) yield decoder.decode(part, { stream: true });
}

/**
 * The events of a stream (HTML, section 9.2).
 *
 * @param tooLong the error for an event of more than `max` characters; one that arrives in a single part is not measured
 */
export async function* readEvents(
  parts: AsyncIterable<string>,
  max: number,
  tooLong: () => Error,
): AsyncGenerator<StreamEvent> {
  let rest = "";
  let endedInCr = false;
  let event: StreamEvent = { id: undefined, data: "", type: undefined, retry: undefined };
  let lines: string[] = [];
  let length = 0;
  for await (const part of parts) {
    // The second half of CRLF, whose first half has ended a line already.
    rest += endedInCr && part.startsWith("\n") ? part.slice(1) : part;
    endedInCr = part === "" ? endedInCr : part.endsWith("\r");
    // A long line is not searched again with each of its parts.
    const hasEnd = /[\r\n]/.test(part);
    const end = hasEnd ? Math.max(rest.lastIndexOf("\n"), rest.lastIndexOf("\r")) + 1 : 0;
    const complete = rest.slice(0, end);
    rest = rest.slice(end);
    for (const line of complete.split(/\r\n|\r|\n/).slice(0, -1)) {
      length += line.length;
      if (line !== "") {
        const [, field = "", value = ""] = /^([^:]*):? ?(.*)$/s.exec(line) ?? [];
        if (field === "data") lines.push(value);
        else if (field === "id" && !value.includes("\0")) event = { ...event, id: value };
        else if (field === "event") event = { ...event, type: value };
        else if (field === "retry" && /^\d+$/.test(value)) event = { ...event, retry: Number(value) };
        continue;
      }
      yield { ...event, data: lines.join("\n") };
      event = { ...event, type: undefined };
      lines = [];
      length = 0;
    }
    if (length + rest.length > max) throw tooLong();
  }
}
