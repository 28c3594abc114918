import { StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { AgentAuthError } from "../errors.js";
import { escapeText } from "../redact.js";
import { currentRequest } from "./pending-requests.js";

/** Attempts to take up a stream that broke off, before its request counts as lost. */
const MAX_RECONNECTIONS = 5;
/** A server may ask for a longer wait; a request that hangs on it would hang as long. */
const MAX_WAIT_MS = 10_000;

/** The longest message that is passed on, in bytes: of a host a line, of a server an answer or an event. */
export const MAX_MESSAGE_BYTES = 64 * 1024 * 1024;

const MAX_REFUSAL_BYTES = 256 * 1024;
const LONGEST_BOUNDARY = 3;

const GAVE_UP = /^Maximum reconnection attempts/;

/** The way to the server: the official transport, which knows sessions, revisions and how broken streams are resumed. */
export function createHttpSide(url: string, fetch: typeof globalThis.fetch): StreamableHTTPClientTransport {
  return new StreamableHTTPClientTransport(new URL(url), {
    fetch: fetch as never,
    redirectPolicy: "same-origin",
    reconnectionOptions: {
      initialReconnectionDelay: 1000,
      maxReconnectionDelay: MAX_WAIT_MS,
      reconnectionDelayGrowFactor: 1.5,
      maxRetries: MAX_RECONNECTIONS,
    },
    reconnectionScheduler(reconnect, delay) {
      const timer = setTimeout(reconnect, Math.min(delay, MAX_WAIT_MS));
      // A stream must not keep the process alive once everything else has ended.
      timer.unref();
      return () => clearTimeout(timer);
    },
  });
}

/**
 * A `fetch` whose answers come no faster than they can be handed on, and never grow without end: a message that is too
 * long breaks its answer off.
 *
 * @param ready resolves when there is room for more
 */
export function backpressureFetch(
  fetch: typeof globalThis.fetch,
  ready: () => Promise<void>,
  maxBytes = MAX_MESSAGE_BYTES,
): typeof globalThis.fetch {
  return async (input, init) => {
    const answer = await fetch(input, init);
    const flight = currentRequest.getStore();
    const isStream = /^text\/event-stream\b/i.test(answer.headers.get("content-type") ?? "");
    if (flight && answer.ok && isStream) flight.isStreaming = true;
    if (answer.body === null) return answer;
    const limit = answer.ok ? maxBytes : MAX_REFUSAL_BYTES;
    const grow = answer.ok && isStream ? eventLength() : totalLength();
    const body = answer.body.pipeThrough(
      new TransformStream<Uint8Array, Uint8Array>({
        async transform(chunk, controller) {
          await ready();
          if (grow(chunk) > limit) throw tooLong(limit, flight === undefined);
          controller.enqueue(chunk);
        },
      }),
    );
    return withBody(answer, body);
  };
}

function tooLong(limit: number, unasked: boolean): AgentAuthError {
  const what = unasked ? "a message" : "the answer";
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

/** The bytes since the last blank line, which is where an event ends. */
function eventLength(): (chunk: Uint8Array) => number {
  let size = 0;
  let tail = Buffer.alloc(0);
  return (chunk) => {
    const seen = Buffer.concat([tail, chunk]);
    const ends = ["\n\n", "\n\r\n", "\r\r"].map((end) => {
      const at = seen.lastIndexOf(end);
      return at < 0 ? -1 : at + end.length;
    });
    const last = Math.max(...ends);
    size = last < 0 ? size + chunk.length : seen.length - last;
    tail = seen.subarray(Math.max(0, last, seen.length - LONGEST_BOUNDARY));
    return size;
  };
}

/** The response with another body, and its original address. */
function withBody(answer: Response, body: ReadableStream<Uint8Array>): Response {
  const { status, statusText, headers } = answer;
  return Object.defineProperties(new Response(body, { status, statusText, headers }), {
    url: { get: () => answer.url },
    redirected: { get: () => answer.redirected },
    type: { get: () => answer.type },
  });
}

/** What a {@link NotificationStream} reads and reports to. */
export interface NotificationStreamOptions {
  http: StreamableHTTPClientTransport;
  /** Masks secrets in a text that comes from elsewhere. */
  mask(text: string): string;
  /** Hears what went wrong. */
  onTrouble(text: string): void;
  /** Hears of each message that passes, without what is in it. */
  onStep(text: string): void;
}

/** The stream of what a server says unasked: where it breaks off for good, it is opened again once the server answers. */
export class NotificationStream {
  readonly #options: NotificationStreamOptions;
  #isLost = false;

  constructor(options: NotificationStreamOptions) {
    this.#options = options;
  }

  /** Takes what the transport says of a failure. */
  onError(error: Error): void {
    const { mask, onStep, onTrouble } = this.#options;
    const flight = currentRequest.getStore();
    const gaveUp = GAVE_UP.test(error.message);
    if (flight) {
      // The earlier error says more than that the attempts are used up.
      if (!gaveUp) flight.trouble = error;
      return;
    }
    onStep(`connection: ${escapeText(mask(error.message)).slice(0, 300)}`);
    if (!gaveUp) return;
    this.#isLost = true;
    onTrouble("the stream of the server's own messages broke off; it is opened again once the server answers");
  }

  /** Has heard that the server is there. */
  onAnswer(): void {
    if (!this.#isLost) return;
    this.#isLost = false;
    const { http, onStep } = this.#options;
    currentRequest
      .run(undefined, () => http.resumeStream(""))
      .catch(() => onStep("server: its own messages are not to be had"));
  }
}
