import { messageOf } from "../errors.js";
import { discardBody, isEventStream } from "../http/buffered-response.js";
import { systemClock } from "../http/deadline.js";
import { escapeText } from "../redact.js";
import { StreamLost } from "./errors.js";
import { parseServerJson, writeExactJson } from "./exact-json.js";
import {
  bodyParts,
  httpFailure,
  isJsonResponse,
  isTooLong,
  POST_HEADERS,
  type Ready,
  readEvents,
  readResponseBody,
  type SendRequest,
  sessionHeaders,
  textParts,
  tooLong,
} from "./http-exchange.js";
import {
  declareExtension,
  INITIALIZE,
  INITIALIZED,
  isRpcResponse,
  type RpcMessage,
  type RpcRequest,
  readServerMessage,
} from "./json-rpc.js";

/** Attempts to resume a broken stream before it is lost, and the waits before them unless the server names one. */
const MAX_RECONNECTIONS = 5;
const RECONNECT_AFTER_MS = 1000;
const MIN_RECONNECTION_DELAY_MS = 100;
const MAX_RECONNECTION_DELAY_MS = 10_000;
/** How long what follows a response is read. */
const MAX_TRAILER_MS = 5000;

/** Where an {@link HttpChannel} leads, and what it reports to. */
export interface HttpChannelOptions {
  url: string;
  fetch: SendRequest;
  /** As `fetch`, for what the host has not asked for: it never begins a login. Default: `fetch`. */
  unattended?: SendRequest | undefined;
  /** Identifies the token that was sent last. */
  token?: (() => unknown) | undefined;
  /** The extension of MCP that requests use, which the client then declares among its capabilities. */
  extension?: string | undefined;
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
export class HttpChannel {
  readonly #options: HttpChannelOptions;
  readonly #receive: Receive;
  /** What is being sent or read. */
  readonly #open = new Set<AbortController>();
  /** Milliseconds that the server asks for before a reconnection. */
  #retryMs: number | undefined;
  #isStreamLost = false;
  /** The one that the session began with. */
  #token: unknown;
  /** The id of the session; undefined before it began, and at servers without sessions. */
  sessionId: string | undefined;
  /** The revision that both sides agreed on. */
  revision: string | undefined;

  /** @param receive takes the messages of the server's notification stream */
  constructor(options: HttpChannelOptions, receive: Receive) {
    this.#options = options;
    this.#receive = receive;
  }

  /** Sends a message without a response; resolves when the server has accepted it. */
  async notify(message: RpcMessage): Promise<void> {
    await this.#during(new AbortController(), async (abort) => {
      const response = await this.#post(message, {}, abort);
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
      const response = await this.#post(message, headers, abort, isUnattended);
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
    await this.#during(new AbortController(), async (abort) => {
      const response = await this.#fetch({ method: "DELETE", headers: sessionHeaders(this) }, abort, true);
      await discardBody(response);
    });
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
        const resumed =
          isNotifications || lastEventId !== undefined ? await this.#resume(lastEventId, abort) : undefined;
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
    const from = lastEventId === undefined ? {} : { "last-event-id": lastEventId };
    const headers = { ...sessionHeaders(this), accept: "text/event-stream", ...from };
    const response = await this.#fetch({ method: "GET", headers }, abort);
    if (response.ok) return response.body ?? undefined;
    if (response.status !== 405) throw await httpFailure(response);
    await discardBody(response);
    return undefined;
  }

  async #post(
    message: RpcMessage,
    more: Record<string, string>,
    abort: AbortController,
    isUnattended = false,
  ): Promise<Response> {
    const begins = message.method === INITIALIZE;
    // A host that begins again offers its own revision, not the one of the session before.
    if (begins) this.revision = undefined;
    const own = begins ? {} : sessionHeaders(this);
    const headers = { ...own, ...more, ...POST_HEADERS };
    const body = writeExactJson(declareExtension(this.#options.extension, message));
    const init = { method: "POST", headers, body };
    const response = await this.#fetch(init, abort, isUnattended);
    const token = this.#options.token?.();
    if (!response.ok) throw await httpFailure(response, this.sessionId !== undefined && token !== this.#token);
    if (begins) this.sessionId = response.headers.get("mcp-session-id") || undefined;
    if (begins) this.#token = token;
    return response;
  }

  #fetch(init: Parameters<SendRequest>[1], { signal }: AbortController, isUnattended = false): Promise<Response> {
    const { fetch, unattended = fetch, url } = this.#options;
    return (isUnattended ? unattended : fetch)(url, { ...init, signal });
  }

  #logFailure(error: unknown): void {
    const { onLog, mask } = this.#options;
    onLog(`connection: ${escapeText(mask(messageOf(error))).slice(0, 300)}`);
  }
}
