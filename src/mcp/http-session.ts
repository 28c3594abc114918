import { AgentAuthError } from "../errors.js";
import { discardBody, isEventStream } from "../http/buffered-response.js";
import { followSignal, systemClock } from "../http/deadline.js";
import { isJsonObject } from "../http/strict-json.js";
import { RequestTimeout, RpcFailure } from "./errors.js";
import { parseServerJson, writeExactJson } from "./exact-json.js";
import {
  bodyParts,
  httpFailure,
  isJsonResponse,
  isTooLong,
  POST_HEADERS,
  readEvents,
  readResponseBody,
  type SendRequest,
  sessionHeaders,
  textParts,
  tooLong,
} from "./http-exchange.js";
import {
  CLIENT_CAPABILITIES,
  cancelledMessage,
  declareExtension,
  INITIALIZE,
  isRpcRequest,
  isRpcResponse,
  RPC_CODES,
  type RpcMessage,
  type RpcRequest,
  rpcErrorResponse,
} from "./json-rpc.js";
import { sessionlessHeaders } from "./param-headers.js";

/** Limit of what is held in memory as a whole: a response or an event. */
const MAX_RESPONSE_LENGTH = 16 * 1024 * 1024;
/** Attempts to resume a broken stream, and the wait before each unless the server names another. */
const MAX_RESUMPTIONS = 2;
const RESUME_AFTER_MS = 1000;
const MAX_RESUME_AFTER_MS = 10_000;

/** The members of `_meta` with which each request of a revision without sessions describes its client. */
const META = "io.modelcontextprotocol/";

/** What an {@link HttpSession} sends requests with. */
export interface HttpSessionOptions {
  fetch: SendRequest;
  /** Identifies the token that was sent last. */
  token?: (() => unknown) | undefined;
  /** The name of the client. */
  name: string;
  /** The version of the client. */
  version: string;
  /** The extension of MCP that requests use, which the client then declares among its capabilities. */
  extension?: string | undefined;
}

export interface RequestLimits {
  signal: AbortSignal;
  /** Milliseconds until the response, or after the last notification of progress. */
  timeout: number;
  headers?: Record<string, string>;
}

/** Sends requests of JSON-RPC to an MCP server over streamable HTTP and reads their responses. */
export class HttpSession {
  readonly #url: string;
  readonly #options: HttpSessionOptions;
  readonly #closing = new AbortController();
  #nextId = 0;
  /** The token that the session began with. */
  #token: unknown;
  /** The id of the session; undefined before it began, and at servers without sessions. */
  sessionId: string | undefined;
  /** The revision that both sides agreed on. */
  revision: string | undefined;
  /** Whether the revision has no sessions: each request describes its client. */
  isSessionless = false;
  /** What the server can do. */
  capabilities: Record<string, unknown> = {};

  constructor(url: string, options: HttpSessionOptions) {
    this.#url = url;
    this.#options = options;
  }

  /**
   * Sends a request and returns its result.
   *
   * @param statelessRevision the revision that the request itself names
   * @throws `HttpFailure`, `RpcFailure`, `RequestTimeout`, and the errors of `fetch`
   */
  async request(
    method: string,
    params: Record<string, unknown>,
    { signal, timeout, headers = {} }: RequestLimits,
    statelessRevision = this.isSessionless ? this.revision : undefined,
  ): Promise<Record<string, unknown>> {
    const message: RpcRequest = { jsonrpc: "2.0", id: this.#nextId++, method, params };
    if (statelessRevision !== undefined) message.params = this.#describeClient(params, statelessRevision);
    const call = followSignal(signal);
    const onTimeout = () => call.abort(new RequestTimeout(`no response to ${method} in ${timeout} ms`));
    let timer = setTimeout(onTimeout, timeout);
    const onProgress = () => {
      clearTimeout(timer);
      timer = setTimeout(onTimeout, timeout);
    };
    try {
      const own = statelessRevision === undefined ? {} : sessionlessHeaders(message, statelessRevision);
      return await this.#exchange(message, { ...own, ...headers }, call.signal, onProgress);
    } catch (error) {
      if (!call.signal.aborted) throw error;
      if (method !== INITIALIZE && statelessRevision === undefined) this.#cancel(message);
      throw call.signal.reason;
    } finally {
      clearTimeout(timer);
      // What is left of the response is not read.
      call.abort(undefined);
      call.release();
    }
  }

  /** Sends a message without a response; resolves when the server has accepted it. */
  async notify(message: RpcMessage, signal: AbortSignal = this.#closing.signal): Promise<void> {
    const response = await this.#post(message, {}, signal);
    await discardBody(response);
  }

  /** Ends the messages without a waiting caller. */
  close(): void {
    this.#closing.abort();
  }

  #describeClient(params: Record<string, unknown>, revision: string): Record<string, unknown> {
    const { name, version } = this.#options;
    const meta = {
      [`${META}protocolVersion`]: revision,
      [`${META}clientInfo`]: { name, version },
      [CLIENT_CAPABILITIES]: {},
    };
    return { ...params, _meta: { ...meta, ...(params["_meta"] as object | undefined) } };
  }

  async #exchange(
    message: RpcRequest,
    headers: Record<string, string>,
    signal: AbortSignal,
    onProgress: () => void,
  ): Promise<Record<string, unknown>> {
    const response = await this.#post(message, headers, signal);
    if (message.method === INITIALIZE) this.sessionId = response.headers.get("mcp-session-id") || undefined;
    if (isEventStream(response) && response.body !== null) {
      return this.#fromStream(message, response.body, signal, onProgress);
    }
    const text = await readResponseBody(response, MAX_RESPONSE_LENGTH);
    if (!isJsonResponse(response)) {
      throw new AgentAuthError("mcp_failed", `the MCP server answered ${message.method} with no JSON`, {
        class: "remote",
      });
    }
    const result = this.#receive(text, message, onProgress);
    if (result === undefined) throw noResponse(message);
    return result;
  }

  /** Reads a stream up to the response, and resumes it where it breaks. */
  async #fromStream(
    message: RpcRequest,
    first: ReadableStream<Uint8Array>,
    signal: AbortSignal,
    onProgress: () => void,
  ): Promise<Record<string, unknown>> {
    let lastEventId: string | undefined;
    let wait = RESUME_AFTER_MS;
    let body = first;
    for (let resumptions = 0; ; resumptions++) {
      let broken: unknown = noResponse(message);
      try {
        for await (const event of readEvents(textParts(bodyParts(body)), MAX_RESPONSE_LENGTH, tooLongEvent)) {
          lastEventId = event.id ?? lastEventId;
          wait = Math.min(event.retry ?? wait, MAX_RESUME_AFTER_MS);
          if (event.data === "" || (event.type ?? "message") !== "message") continue;
          const result = this.#receive(event.data, message, onProgress);
          if (result !== undefined) return result;
        }
      } catch (error) {
        if (signal.aborted || error instanceof RpcFailure || isTooLong(error) || error instanceof SyntaxError)
          throw error;
        broken = error;
      }
      if (lastEventId === undefined || resumptions === MAX_RESUMPTIONS) throw broken;
      await systemClock.sleep(wait, signal);
      const headers = { accept: "text/event-stream", "last-event-id": lastEventId };
      const resumed = await this.#fetch({ method: "GET", headers: { ...sessionHeaders(this), ...headers }, signal });
      if (!resumed.ok || resumed.body === null) throw await httpFailure(resumed);
      body = resumed.body;
    }
  }

  /**
   * The result, with its numbers as they are written, if one of the messages is the response to the request; answers or
   * notes any other message.
   */
  #receive(text: string, request: RpcRequest, onProgress: () => void): Record<string, unknown> | undefined {
    const written = [parseServerJson(text, true)].flat();
    for (const [at, one] of [parseServerJson(text)].flat().entries())
      if (this.#isResult(one, request, onProgress)) return resultOf(written[at], request);
    return undefined;
  }

  #isResult(received: unknown, { id }: RpcRequest, onProgress: () => void): boolean {
    if (!isJsonObject(received)) throw new SyntaxError("a message of the MCP server is not a JSON object");
    const message = received as unknown as RpcMessage;
    if (!isRpcResponse(message)) {
      if (message.method === "notifications/progress") onProgress();
      else if (isRpcRequest(message) && !this.isSessionless) this.#answer(message);
      return false;
    }
    if (message.id !== undefined && message.id !== null && message.id !== id) return false;
    const { error } = message;
    if (isJsonObject(error)) throw new RpcFailure({ ...error, message: String(error.message) });
    return true;
  }

  /** Answers a request of the server: it has no other that this client could serve. */
  #answer({ id, method }: RpcRequest): void {
    const answer: RpcMessage =
      method === "ping"
        ? { jsonrpc: "2.0", id, result: {} }
        : rpcErrorResponse(id, { code: RPC_CODES.method, message: "Method not found" });
    void this.notify(answer).catch(() => undefined);
  }

  #cancel({ id }: RpcRequest): void {
    void this.notify(cancelledMessage(id, "cancelled")).catch(() => undefined);
  }

  async #post(message: RpcMessage, more: Record<string, string>, signal: AbortSignal): Promise<Response> {
    const headers = { ...sessionHeaders(this), ...more, ...POST_HEADERS };
    const body = writeExactJson(declareExtension(this.#options.extension, message));
    const response = await this.#fetch({ method: "POST", headers, body, signal });
    const token = this.#options.token?.();
    if (!response.ok) throw await httpFailure(response, this.sessionId !== undefined && token !== this.#token);
    if (message.method === INITIALIZE) this.#token = token;
    return response;
  }

  #fetch(init: Parameters<SendRequest>[1]): Promise<Response> {
    return this.#options.fetch(this.#url, init);
  }
}

function tooLongEvent(): AgentAuthError {
  return tooLong("an event", MAX_RESPONSE_LENGTH);
}

function resultOf(response: unknown, { method }: RpcRequest): Record<string, unknown> {
  const { result } = response as { result?: unknown };
  if (!isJsonObject(result)) throw new SyntaxError(`the result of ${method} is not a JSON object`);
  const { resultType, ...rest } = result;
  if (resultType === undefined || resultType === "complete") return rest;
  const text = `the MCP server answers ${method} only after a dialogue, which this command cannot have`;
  throw new AgentAuthError("mcp_failed", text, { class: "remote" });
}

function noResponse({ method }: RpcRequest): AgentAuthError {
  const text = `the connection to the MCP server closed before the response to ${method} arrived`;
  return new AgentAuthError("connection_reset", text, { class: "unavailable" });
}
