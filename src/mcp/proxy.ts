import { EventEmitter, once } from "node:events";
import type { JSONRPCMessage } from "@modelcontextprotocol/client";
import { AgentAuthError, isAgentAuthError } from "../errors.js";
import { isJsonObject } from "../http/strict-json.js";
import { escapeText, quote } from "../redact.js";
import { toRpcError } from "./errors.js";
import { NotificationStream, type NotificationStreamOptions } from "./http-transport.js";
import {
  failure,
  isRequest,
  isResponse,
  param,
  type RpcMessage,
  type RpcRequest,
  type RpcResponse,
} from "./json-rpc.js";
import { ParamHeaders } from "./param-headers.js";
import { currentRequest, Handshake, type PendingRequest, PendingRequests } from "./pending-requests.js";
import type { StdioWriter } from "./stdio.js";

/** How long to wait for the server to accept a notification. */
const MAX_ACCEPT_MS = 5000;
const CANCELLED = "notifications/cancelled";
const INITIALIZED = "notifications/initialized";
/** A request whose response arrives only when the subscription ends. */
const SUBSCRIPTION = "subscriptions/listen";

/** The two sides of an {@link McpProxy}, and its callbacks. */
export interface McpProxyOptions extends NotificationStreamOptions {
  url: string;
  host: StdioWriter;
  /** Called when the host's `initialize` fails in a way that a retry does not fix. */
  onFatalError(): void;
}

/** Forwards messages in both directions. Each request of the host gets a response: the server's, or an error. */
export class McpProxy {
  readonly #options: McpProxyOptions;
  readonly #pending = new PendingRequests();
  readonly #notifications: NotificationStream;
  readonly #headers = new ParamHeaders();
  readonly #handshake = new Handshake((message) => this.#forward(message));
  readonly #sizes = new Map<RpcMessage, number>();
  /** Emits `change` when a message is sent or a request has its response. */
  readonly #events = new EventEmitter();
  #queuedBytes = 0;
  #hasResponse = false;
  #firstError: AgentAuthError | undefined;
  /** Why `initialize` failed for good. */
  #fatalError: AgentAuthError | undefined;

  constructor(options: McpProxyOptions) {
    this.#options = options;
    options.http.onmessage = (message) => this.#fromServer(message as RpcMessage);
    this.#notifications = new NotificationStream(options);
    options.http.onerror = (error) => this.#notifications.onError(error);
  }

  /** Why the proxy failed: `initialize` failed for good, or no request had a response. */
  get error(): AgentAuthError | undefined {
    return this.#fatalError ?? (this.#hasResponse ? undefined : this.#firstError);
  }

  /** Forwards a message of the host that is `bytes` long. */
  fromHost(message: RpcMessage, bytes: number): void {
    this.#options.onLog(`host: ${describe(message)}`);
    if (message.method === CANCELLED) this.#cancel(message);
    else {
      this.#sizes.set(message, bytes);
      this.#queuedBytes += bytes;
      this.#handshake.pass(message);
    }
  }

  /** Resolves when at most `maxBytes` of the host's messages are not yet sent, or the signal fires. */
  untilBelow(maxBytes: number, signal: AbortSignal): Promise<void> {
    return this.#until(() => this.#queuedBytes <= maxBytes, signal);
  }

  /** Resolves when every request but subscriptions has a response, or the signal fires. */
  untilIdle(signal: AbortSignal): Promise<void> {
    const endsByItself = ({ request }: PendingRequest) => request.method !== SUBSCRIPTION;
    return this.#until(() => this.#sizes.size === 0 && !this.#pending.all().some(endsByItself), signal);
  }

  /** Answers each pending request with an error. */
  abortPending(): void {
    const waiting = this.#handshake.clear().filter(isRequest);
    for (const { request } of this.#pending.all()) waiting.push(request);
    const ended = new AgentAuthError("aborted", "the proxy has ended", { class: "aborted" });
    for (const { id } of waiting) {
      this.#pending.remove(id)?.abort.abort(ended);
      this.#options.host.send(failure(id, toRpcError(ended, this.#context())));
    }
  }

  async #until(holds: () => boolean, signal: AbortSignal): Promise<void> {
    while (!holds() && !signal.aborted) await once(this.#events, "change", { signal }).catch(() => undefined);
  }

  #forward(message: RpcMessage): void {
    if (isRequest(message)) {
      const endStep = message.method === "initialize" ? this.#handshake.begin() : () => {};
      const pending = this.#pending.add(message, () => {
        endStep();
        this.#events.emit("change");
      });
      void this.#post(message, pending);
    } else if (message.method === INITIALIZED) {
      const endStep = this.#handshake.begin();
      void settledWithin(this.#post(message), MAX_ACCEPT_MS).then(endStep);
    } else void this.#post(message);
  }

  async #post(message: RpcMessage, pending?: PendingRequest): Promise<void> {
    const { http, onWarning, url } = this.#options;
    try {
      await currentRequest.run(pending, () =>
        http.send(message as JSONRPCMessage, pending && this.#sendOptions(pending)),
      );
      if (pending && !pending.isStreaming) {
        const text = `the MCP server ${quote(url)} accepted the request and sent no response`;
        this.#fail(pending, new AgentAuthError("mcp_failed", text, { class: "remote" }));
      }
    } catch (error) {
      if (pending) this.#fail(pending, error);
      else onWarning(`${describe(message)}: ${toRpcError(error, this.#context()).message}`);
    } finally {
      this.#onSent(message);
    }
  }

  #sendOptions(pending: PendingRequest) {
    const { url } = this.#options;
    return {
      requestSignal: pending.abort.signal,
      headers: pending.isSessionless ? this.#headers.of(pending.request) : {},
      onRequestStreamEnd: () => {
        const why =
          pending.lastError instanceof Error ? `: ${escapeText(pending.lastError.message).slice(0, 300)}` : "";
        const message = `the connection to the MCP server ${quote(url)} closed before the response arrived${why}`;
        this.#fail(pending, new AgentAuthError("connection_reset", message, { class: "unavailable" }));
      },
    };
  }

  #fail(pending: PendingRequest, error: unknown): void {
    if (!this.#pending.has(pending)) return;
    const { host, onWarning, onFatalError } = this.#options;
    const { id, method } = pending.request;
    const rpcError = toRpcError(error, this.#context(pending));
    host.send(failure(id, rpcError));
    if (isAgentAuthError(error)) this.#firstError ??= error;
    if (method === "initialize" && isAgentAuthError(error) && error.class !== "unavailable") {
      this.#fatalError = error;
      for (const delayed of this.#handshake.clear().filter(isRequest)) host.send(failure(delayed.id, rpcError));
      onFatalError();
    } else onWarning(`${quote(method, 80)}: ${rpcError.message}`);
    this.#pending.remove(id);
    pending.abort.abort();
  }

  /** A request without a session is cancelled by closing its HTTP request, any other by a message. */
  #cancel(message: RpcMessage): void {
    const id = param(message, "requestId");
    const delayed = this.#handshake.drop(id);
    if (delayed) this.#onSent(delayed);
    const pending = this.#pending.remove(id);
    if (delayed || pending?.isSessionless) pending?.abort.abort();
    else void settledWithin(this.#post(message), MAX_ACCEPT_MS).then(() => pending?.abort.abort());
  }

  #fromServer(message: RpcMessage): void {
    const { host, onLog } = this.#options;
    if (!isResponse(message)) {
      onLog(`server: ${describe(message)}`);
      host.send(message);
      return;
    }
    const pending = this.#pendingOf(message);
    onLog(`server: ${pending ? `response to ${describe(pending.request)}` : "response without a pending request"}`);
    if (!pending) return;
    this.#hasResponse = true;
    this.#observe(pending.request, message);
    host.send({ ...message, id: pending.request.id });
    this.#pending.remove(pending.request.id);
    // Nothing follows the response, even if the server leaves its stream open.
    const { abort, isStreaming } = pending;
    if (isStreaming) setTimeout(() => abort.abort(), MAX_ACCEPT_MS).unref();
    this.#notifications.onResponse();
  }

  /** A response without an id belongs to the request whose HTTP response carries it. */
  #pendingOf({ id }: RpcResponse): PendingRequest | undefined {
    const current = currentRequest.getStore();
    if (id === undefined || id === null) return current && this.#pending.has(current) ? current : undefined;
    return this.#pending.get(id);
  }

  #observe(request: RpcRequest, response: RpcResponse): void {
    const { result } = response;
    if (request.method === "initialize" && isJsonObject(result) && typeof result["protocolVersion"] === "string") {
      this.#options.http.setProtocolVersion(result["protocolVersion"]);
    }
    this.#headers.update(request, response);
  }

  #context(pending?: PendingRequest) {
    const { url, mask, http } = this.#options;
    const hasSession = http.sessionId !== undefined && pending !== undefined && pending.request.method !== "initialize";
    return { url, mask, hasSession };
  }

  #onSent(message: RpcMessage): void {
    this.#queuedBytes -= this.#sizes.get(message) ?? 0;
    this.#sizes.delete(message);
    this.#events.emit("change");
  }
}

/** A message in the log: its method, never its content. */
function describe(message: RpcMessage): string {
  return isResponse(message) ? "response" : quote(message.method, 80);
}

/** Resolves when the promise settles, or after a time. */
export function settledWithin(work: Promise<unknown>, ms: number): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    const done = () => {
      clearTimeout(timer);
      resolve();
    };
    work.then(done, done);
  });
}
