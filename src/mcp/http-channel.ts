import { AgentAuthError, errorMessage } from "../errors.js";
import { discardBody, isEventStream } from "../http/buffered-response.js";
import { systemClock } from "../http/deadline.js";
import { type HttpRequestInit, HttpResponse } from "../http/http-message.js";
import { escapeText } from "../redact.js";
import { HttpFailure, StreamLost } from "./errors.js";
import {
  declareExtension,
  INITIALIZE,
  INITIALIZED,
  isRpcResponse,
  parseServerJson,
  type RpcMessage,
  type RpcRequest,
  readServerMessage,
  writeExactJson,
} from "./json-rpc.js";

/** The longest message that is forwarded, in bytes: a line of the host, a response or an event of the server. */
export const MAX_MESSAGE_BYTES = 64 * 1024 * 1024;
const MAX_ERROR_BYTES = 256 * 1024;
/** A body that says that it is shorter than this is read at once, without a stream. */
const SHORT_BYTES = 256 * 1024;

const POST_HEADERS = { "content-type": "application/json", accept: "application/json, text/event-stream" };

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
  const text = `${what} of the MCP server is longer than ${maxBytes} bytes`;
  return new AgentAuthError("body_too_large", text, { class: "refused" });
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

/** Where an {@link HttpConnection} leads. */
export interface HttpConnectionOptions {
  url: string;
  fetch: SendRequest;
  /** As `fetch`, for what the host has not asked for: it never begins a login. Default: `fetch`. */
  unattended?: SendRequest | undefined;
  /** Identifies the token that was sent last. */
  token?: (() => unknown) | undefined;
  /** The extension of MCP that requests use, which the client then declares among its capabilities. */
  extension?: string | undefined;
}

/** Sends the HTTP requests of one session to a server over streamable HTTP. */
export class HttpConnection {
  readonly #options: HttpConnectionOptions;
  /** The one that the session began with. */
  #token: unknown;
  /** The id of the session; undefined before it began, and at servers without sessions. */
  sessionId: string | undefined;
  /** The revision that both sides agreed on. */
  revision: string | undefined;

  constructor(options: HttpConnectionOptions) {
    this.#options = options;
  }

  /** Posts a message. @throws `HttpFailure`, and the errors of `fetch` */
  protected async post(
    message: RpcMessage,
    more: Record<string, string>,
    signal: AbortSignal,
    isUnattended = false,
  ): Promise<Response> {
    const begins = message.method === INITIALIZE;
    // A host that begins again offers its own revision, not the one of the session before.
    if (begins) this.revision = undefined;
    const headers = { ...(begins ? {} : this.#headers()), ...more, ...POST_HEADERS };
    const body = writeExactJson(declareExtension(this.#options.extension, message));
    const response = await this.#fetch({ method: "POST", headers, body, signal }, isUnattended);
    const token = this.#options.token?.();
    if (!response.ok) throw await httpFailure(response, this.sessionId !== undefined && token !== this.#token);
    if (begins) this.sessionId = response.headers.get("mcp-session-id") || undefined;
    if (begins) this.#token = token;
    return response;
  }

  /** Asks for a stream: that of the server's own messages, or a broken one from its last event on. */
  protected get(lastEventId: string | undefined, signal: AbortSignal): Promise<Response> {
    const from = lastEventId === undefined ? {} : { "last-event-id": lastEventId };
    return this.#fetch({
      method: "GET",
      headers: { ...this.#headers(), accept: "text/event-stream", ...from },
      signal,
    });
  }

  /** Ends the session at the server. */
  protected delete(signal: AbortSignal): Promise<Response> {
    return this.#fetch({ method: "DELETE", headers: this.#headers(), signal }, true);
  }

  #headers(): Record<string, string> {
    return {
      ...(this.sessionId !== undefined && { "mcp-session-id": this.sessionId }),
      ...(this.revision !== undefined && { "mcp-protocol-version": this.revision }),
    };
  }

  #fetch(init: HttpRequestInit, isUnattended = false): Promise<Response> {
    const { fetch, unattended = fetch, url } = this.#options;
    return (isUnattended ? unattended : fetch)(url, init);
  }
}

/** Attempts to resume a broken stream before it is lost, and the waits before them unless the server names one. */
const MAX_RECONNECTIONS = 5;
const RECONNECT_AFTER_MS = 1000;
const MIN_RECONNECTION_DELAY_MS = 100;
const MAX_RECONNECTION_DELAY_MS = 10_000;
/** How long what follows a response is read. */
const MAX_TRAILER_MS = 5000;

/** Where an {@link HttpChannel} leads, and what it reports to. */
export interface HttpChannelOptions extends HttpConnectionOptions {
  /** Resolves when the host accepts more: nothing is read faster. */
  ready: Ready;
  /** The longest message, in bytes. */
  maxBytes: number;
  /** Masks secrets in a text of the server. */
  mask(text: string): string;
  onWarning(text: string): void;
  /** Called with a log line for each message and each broken connection, without content. */
  onLog(text: string): void;
}

/** Takes a message of the server. */
export type Receive = (message: RpcMessage) => void;

export interface ChannelRequest {
  /** Ends the request. */
  abort: AbortController;
  /** Whether the host has not asked for it. */
  isUnattended?: boolean;
  headers?: Record<string, string>;
  /** Takes each message that the response carries. */
  receive: Receive;
  /** Called when the server has the request. */
  onAccepted?(): void;
}

interface StreamReader {
  abort: AbortController;
  receive: Receive;
  /** Whether it can be resumed without the id of an event: it belongs to no request. */
  isNotifications: boolean;
}

/** Carries the messages of one session to a server over streamable HTTP, and those of the server back. */
export class HttpChannel extends HttpConnection {
  readonly #options: HttpChannelOptions;
  readonly #receive: Receive;
  /** What is being sent or read. */
  readonly #open = new Set<AbortController>();
  /** Milliseconds that the server asks for before a reconnection. */
  #retryMs: number | undefined;
  #isStreamLost = false;

  /** @param receive takes the messages of the server's notification stream */
  constructor(options: HttpChannelOptions, receive: Receive) {
    super(options);
    this.#options = options;
    this.#receive = receive;
  }

  /** Sends a message without a response; resolves when the server has accepted it. */
  async notify(message: RpcMessage): Promise<void> {
    await this.#during(new AbortController(), async (abort) => {
      const response = await this.post(message, {}, abort.signal);
      await discardBody(response);
      if (message.method === INITIALIZED) void this.#listen();
    });
  }

  /**
   * Sends a request; resolves when the server has sent all that its HTTP response carries, which may lack the response.
   *
   * @throws `HttpFailure`, `AgentAuthError`, `SyntaxError`, and the errors of `fetch`
   */
  async request(message: RpcRequest, how: ChannelRequest): Promise<void> {
    const { abort, headers = {}, receive, onAccepted, isUnattended = false } = how;
    await this.#during(abort, async () => {
      const response = await this.post(message, headers, abort.signal, isUnattended);
      onAccepted?.();
      // JSON comes first: to ask for the stream of a body makes one.
      if (isJsonResponse(response)) {
        const { maxBytes, ready } = this.#options;
        const parsed = parseServerJson(await readResponseBody(response, maxBytes, ready));
        for (const one of Array.isArray(parsed) ? parsed : [parsed]) receive(readServerMessage(one));
      } else if (isEventStream(response) && response.body !== null) {
        await this.#readStream(response.body, { abort, receive, isNotifications: false });
      } else {
        await discardBody(response);
        if (response.status === 202) return;
        throw new SyntaxError(`Unexpected content type: ${response.headers.get("content-type")}`);
      }
    });
  }

  /** Called after each response of the server: a lost notification stream is opened again. */
  onResponse(): void {
    if (this.#isStreamLost) void this.#listen();
  }

  /** Ends the session at the server. */
  async terminate(): Promise<void> {
    if (this.sessionId === undefined) return;
    await this.#during(new AbortController(), async ({ signal }) => discardBody(await this.delete(signal)));
  }

  /** Ends all that is being sent or read. */
  close(): void {
    for (const abort of this.#open) abort.abort();
  }

  async #during(abort: AbortController, work: (abort: AbortController) => Promise<void>): Promise<void> {
    this.#open.add(abort);
    try {
      await work(abort);
    } finally {
      this.#open.delete(abort);
    }
  }

  /** Reads the notification stream until the channel closes, the server ends it for good, or it is lost. */
  async #listen(): Promise<void> {
    const wasLost = this.#isStreamLost;
    this.#isStreamLost = false;
    await this.#during(new AbortController(), async (abort) => {
      try {
        const body = await this.#openStream(undefined, abort);
        if (body) await this.#readStream(body, { abort, receive: this.#receive, isNotifications: true });
      } catch (error) {
        if (abort.signal.aborted) return;
        this.#logFailure(error);
        if (error instanceof StreamLost) {
          this.#isStreamLost = true;
          this.#options.onWarning("the server's notification stream was lost; it is reopened after the next response");
        } else if (wasLost) this.#options.onLog("server: the notification stream cannot be reopened");
      }
    });
  }

  /**
   * Reads a stream, and resumes it where it breaks: that of a request until its response, if an event has had an id.
   *
   * @throws `StreamLost` if it cannot be resumed, or ends before the response
   */
  async #readStream(first: ReadableStream<Uint8Array>, reader: StreamReader): Promise<void> {
    const { abort, receive, isNotifications } = reader;
    const { ready, maxBytes } = this.#options;
    let body = first;
    let lastEventId: string | undefined;
    let isAnswered = false;
    let trailer: NodeJS.Timeout | undefined;
    const take = (text: string) => {
      const message = readServerMessage(parseServerJson(text));
      receive(message);
      if (isNotifications || isAnswered || !isRpcResponse(message)) return;
      isAnswered = true;
      // Nothing follows the response, even if the server leaves its stream open.
      trailer = setTimeout(() => abort.abort(), MAX_TRAILER_MS).unref();
    };
    const oversized = () => tooLong(isNotifications ? "a message" : "the response", maxBytes);
    try {
      for (;;) {
        let reason: unknown;
        try {
          for await (const event of readEvents(textParts(bodyParts(body, ready)), maxBytes, oversized)) {
            lastEventId = event.id || lastEventId;
            this.#retryMs = event.retry ?? this.#retryMs;
            if (event.data === "" || (event.type ?? "message") !== "message") continue;
            try {
              take(event.data);
            } catch (error) {
              reason = error;
              this.#logFailure(error);
            }
          }
        } catch (error) {
          if (abort.signal.aborted) throw error;
          if (isTooLong(error) && !isNotifications) throw error;
          reason = error;
          this.#logFailure(error);
        }
        if (isAnswered) return;
        const isResumable = isNotifications || lastEventId !== undefined;
        const resumed = isResumable ? await this.#resume(lastEventId, abort) : undefined;
        if (resumed === undefined && isNotifications) return;
        if (resumed === undefined) throw new StreamLost(this.#options.url, reason);
        body = resumed;
      }
    } finally {
      clearTimeout(trailer);
    }
  }

  /** @returns undefined if the server offers no stream. @throws `StreamLost` after the last attempt */
  async #resume(
    lastEventId: string | undefined,
    abort: AbortController,
  ): Promise<ReadableStream<Uint8Array> | undefined> {
    for (let attempt = 0, failed: unknown; ; attempt++) {
      if (attempt === MAX_RECONNECTIONS) throw new StreamLost(this.#options.url, failed);
      const wait = Math.max(this.#retryMs ?? RECONNECT_AFTER_MS * 1.5 ** attempt, MIN_RECONNECTION_DELAY_MS);
      await systemClock.sleep(Math.min(wait, MAX_RECONNECTION_DELAY_MS), abort.signal);
      try {
        return await this.#openStream(lastEventId, abort);
      } catch (error) {
        if (abort.signal.aborted) throw error;
        failed = error;
        this.#logFailure(error);
      }
    }
  }

  /** @returns undefined if the server offers no stream */
  async #openStream(
    lastEventId: string | undefined,
    abort: AbortController,
  ): Promise<ReadableStream<Uint8Array> | undefined> {
    const response = await this.get(lastEventId, abort.signal);
    if (response.ok) return response.body ?? undefined;
    if (response.status !== 405) throw await httpFailure(response);
    await discardBody(response);
    return undefined;
  }

  #logFailure(error: unknown): void {
    const { onLog, mask } = this.#options;
    onLog(`connection: ${escapeText(mask(errorMessage(error))).slice(0, 300)}`);
  }
}
