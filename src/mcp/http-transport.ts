import { StreamableHTTPClientTransport } from "#packages/mcp-client";
import { AgentAuthError } from "../errors.js";
import { escapeText } from "../redact.js";
import { currentRequest } from "./pending-requests.js";

/** Attempts to resume a broken stream before its request fails. */
const MAX_RECONNECTIONS = 5;
/** Upper bound of the delay that a server may ask for before a reconnection. */
const MAX_RECONNECTION_DELAY_MS = 10_000;

/** The longest message that is forwarded, in bytes: a line of the host, a response or an event of the server. */
export const MAX_MESSAGE_BYTES = 64 * 1024 * 1024;

const MAX_ERROR_BODY_BYTES = 256 * 1024;
const LONGEST_EVENT_END = 3;

const GAVE_UP = /^Maximum reconnection attempts/;

/** The official client transport, which handles sessions, protocol revisions and resumption of streams. */
export function createHttpTransport(url: string, fetch: typeof globalThis.fetch): StreamableHTTPClientTransport {
  return new StreamableHTTPClientTransport(new URL(url), {
    fetch: fetch as never,
    redirectPolicy: "same-origin",
    reconnectionOptions: {
      initialReconnectionDelay: 1000,
      maxReconnectionDelay: MAX_RECONNECTION_DELAY_MS,
      reconnectionDelayGrowFactor: 1.5,
      maxRetries: MAX_RECONNECTIONS,
    },
    reconnectionScheduler(reconnect, delay) {
      const timer = setTimeout(reconnect, Math.min(delay, MAX_RECONNECTION_DELAY_MS));
      // A stream must not keep the process alive once everything else has ended.
      timer.unref();
      return () => clearTimeout(timer);
    },
  });
}

/**
 * A `fetch` whose response bodies are read no faster than the reader accepts them. A message longer than `maxBytes`
 * fails the body.
 *
 * @param ready resolves when the reader accepts more
 */
export function backpressureFetch(
  fetch: typeof globalThis.fetch,
  ready: () => Promise<void>,
  maxBytes = MAX_MESSAGE_BYTES,
): typeof globalThis.fetch {
  return async (input, init) => {
    const response = await fetch(input, init);
    const pending = currentRequest.getStore();
    const isStream = /^text\/event-stream\b/i.test(response.headers.get("content-type") ?? "");
    if (pending && response.ok && isStream) pending.isStreaming = true;
    if (response.body === null) return response;
    const limit = response.ok ? maxBytes : MAX_ERROR_BODY_BYTES;
    const sizeAfter = response.ok && isStream ? eventLength() : totalLength();
    const body = response.body.pipeThrough(
      new TransformStream<Uint8Array, Uint8Array>({
        async transform(chunk, controller) {
          await ready();
          if (sizeAfter(chunk) > limit) throw tooLong(limit, pending === undefined);
          controller.enqueue(chunk);
        },
      }),
    );
    return withBody(response, body);
  };
}

function tooLong(limit: number, isNotification: boolean): AgentAuthError {
  const what = isNotification ? "a message" : "the response";
  return new AgentAuthError("body_too_large", `${what} of the MCP server is longer than ${limit} bytes`, {
    class: "refused",
  });
}

function totalLength(): (chunk: Uint8Array) => number {
  let size = 0;
  return ({ length }) => {
    size += length;
    return size;
  };
}

/** The bytes since the last blank line, which ends an event. */
function eventLength(): (chunk: Uint8Array) => number {
  let size = 0;
  let tail = Buffer.alloc(0);
  return (chunk) => {
    const recent = Buffer.concat([tail, chunk]);
    const ends = ["\n\n", "\n\r\n", "\r\r"].map((end) => {
      const at = recent.lastIndexOf(end);
      return at < 0 ? -1 : at + end.length;
    });
    const last = Math.max(...ends);
    size = last < 0 ? size + chunk.length : recent.length - last;
    tail = recent.subarray(Math.max(0, last, recent.length - LONGEST_EVENT_END));
    return size;
  };
}

/** The response with another body, and its original address. */
function withBody(response: Response, body: ReadableStream<Uint8Array>): Response {
  const { status, statusText, headers } = response;
  return Object.defineProperties(new Response(body, { status, statusText, headers }), {
    url: { get: () => response.url },
    redirected: { get: () => response.redirected },
    type: { get: () => response.type },
  });
}

/** What a {@link NotificationStream} reports to. */
export interface NotificationStreamOptions {
  /** Masks secrets in a text of the server. */
  mask(text: string): string;
  /** Called with each warning. */
  onWarning(text: string): void;
  /** Called with a log line for each forwarded message, without its content. */
  onLog(text: string): void;
}

/** The server's notification stream. If it cannot be resumed, it is reopened after the next response. */
export class NotificationStream {
  readonly #http: StreamableHTTPClientTransport;
  readonly #options: NotificationStreamOptions;
  #isLost = false;

  constructor(http: StreamableHTTPClientTransport, options: NotificationStreamOptions) {
    this.#http = http;
    this.#options = options;
  }

  /** Handles an error of the transport. */
  onError(error: Error): void {
    const { mask, onLog, onWarning } = this.#options;
    const pending = currentRequest.getStore();
    const gaveUp = GAVE_UP.test(error.message);
    if (pending) {
      // The error before this one says why the attempts failed.
      if (!gaveUp) pending.lastError = error;
      return;
    }
    onLog(`connection: ${escapeText(mask(error.message)).slice(0, 300)}`);
    if (!gaveUp) return;
    this.#isLost = true;
    onWarning("the server's notification stream was lost; it is reopened after the next response");
  }

  /** Called after each response of the server. */
  onResponse(): void {
    if (!this.#isLost) return;
    this.#isLost = false;
    currentRequest
      .run(undefined, () => this.#http.resumeStream(""))
      .catch(() => this.#options.onLog("server: the notification stream cannot be reopened"));
  }
}
