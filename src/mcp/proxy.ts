import { EventEmitter, once } from "node:events";
import type { Readable } from "node:stream";
import { AgentAuthError, isAgentAuthError } from "../errors.js";
import { settledWithin } from "../http/deadline.js";
import { isJsonObject } from "../http/strict-json.js";
import { quote } from "../redact.js";
import { isSessionLost, noResponseError, sessionLostError, tooDeepError, toRpcError } from "./errors.js";
import { type HttpChannel, MAX_MESSAGE_BYTES } from "./http-channel.js";
import {
  CANCELLED,
  cancelledMessage,
  describeMessage,
  INITIALIZE,
  INITIALIZED,
  isRpcRequest,
  isRpcResponse,
  isTooDeep,
  RPC_CODES,
  type RpcId,
  type RpcMessage,
  type RpcRequest,
  type RpcResponse,
  readMessage,
  readParam,
  rpcErrorResponse,
  SUBSCRIPTION,
} from "./json-rpc.js";
import { ParamHeaders } from "./param-headers.js";
import { ServerSession, type ServerSessionOptions } from "./server-session.js";
import { createStdioWriter, readLines, type StdioWriter } from "./stdio.js";
import { refusedRpcError, ToolPolicy, type ToolPolicyOptions } from "./tool-policy.js";

/**
 * How far a request of the host is:
 *
 * | state | the server | loses its session | the host cancels it |
 * |---|---|---|---|
 * | `sent` | has the request | the request waits, if a new session is possible; else it fails | it gets a message |
 * | `waiting` | refused it unprocessed with a lost session | it fails, if the new session does | it is dropped |
 * | `resent` | has it in the new session | it fails: it is not sent a third time | it gets a message |
 *
 * A response or a failure ends it in any state.
 */
export type RequestState = "sent" | "waiting" | "resent";

/** A request of the host without a response. */
export interface PendingRequest {
  readonly request: RpcRequest;
  /** Cancels its HTTP request. */
  readonly abort: AbortController;
  /** The revision that the request names, as it must since 2026-07-28, when sessions were removed; undefined before. */
  readonly revision: string | undefined;
  state: RequestState;
}

const PROTOCOL_VERSION = "io.modelcontextprotocol/protocolVersion";

/** The requests of the host that have no response yet, by id. */
export class PendingRequests {
  readonly #requests = new Map<RpcId, { pending: PendingRequest; onEnd: () => void }>();

  /** Adds a request. @param onEnd called when the request is removed, for whatever reason */
  add(request: RpcRequest, onEnd: () => void): PendingRequest {
    const meta = readParam(request, "_meta");
    const revision = isJsonObject(meta) ? meta[PROTOCOL_VERSION] : undefined;
    const pending: PendingRequest = {
      request,
      abort: new AbortController(),
      revision: typeof revision === "string" ? revision : undefined,
      state: "sent",
    };
    // Two requests with the same id get one response.
    this.remove(request.id);
    this.#requests.set(request.id, { pending, onEnd });
    return pending;
  }

  /** Removes a request; undefined if it already has a response or was cancelled. */
  remove(id: unknown): PendingRequest | undefined {
    const found = this.#requests.get(id as RpcId);
    if (!found) return undefined;
    this.#requests.delete(id as RpcId);
    found.onEnd();
    return found.pending;
  }

  get(id: unknown): PendingRequest | undefined {
    return this.#requests.get(id as RpcId)?.pending;
  }

  /** Whether this request, and not another with its id, is still pending. */
  has(pending: PendingRequest): boolean {
    return this.get(pending.request.id) === pending;
  }

  all(): PendingRequest[] {
    return [...this.#requests.values()].map(({ pending }) => pending);
  }
}

/**
 * Delays what follows `initialize` and `notifications/initialized` until the server has accepted them. A pipe keeps the
 * order of messages, separate HTTP requests do not. Responses are not delayed, since the server may wait for them.
 */
export class Handshake {
  readonly #forward: (message: RpcMessage) => void;
  #openSteps = 0;
  #queue: RpcMessage[] = [];

  constructor(forward: (message: RpcMessage) => void) {
    this.#forward = forward;
  }

  /** Forwards a message, at once or after the open steps. */
  pass(message: RpcMessage): void {
    if (this.#openSteps > 0 && !isRpcResponse(message)) this.#queue.push(message);
    else this.#forward(message);
  }

  /** Begins a step that later messages wait for. The function that it returns ends the step. */
  begin(): () => void {
    this.#openSteps += 1;
    let hasEnded = false;
    return () => {
      if (hasEnded) return;
      hasEnded = true;
      this.#openSteps -= 1;
      this.#release();
    };
  }

  /** Removes a delayed request; undefined if there is none with this id. */
  drop(id: unknown): RpcMessage | undefined {
    const found = this.#queue.find((message) => isRpcRequest(message) && message.id === (id as RpcId));
    this.#queue = this.#queue.filter((message) => message !== found);
    return found;
  }

  /** Removes and returns all delayed messages. */
  clear(): RpcMessage[] {
    return this.#queue.splice(0);
  }

  #release(): void {
    while (this.#openSteps === 0) {
      const next = this.#queue.shift();
      if (next === undefined) return;
      this.#forward(next);
    }
  }
}

/** How long to wait for the server to accept a notification. */
const MAX_ACCEPT_MS = 5000;
/** How long the other requests of a lost session may take to fail as well. */
const MAX_SETTLE_MS = 1000;

/** The two sides of an {@link McpProxy}, and its callbacks. */
export interface McpProxyOptions extends Omit<ServerSessionOptions, "onMessage"> {
  host: StdioWriter;
  /** Which tools the host may list and call. */
  policy: ToolPolicy;
  /** Called when the host's `initialize` fails in a way that a retry does not fix. */
  onFatalError(): void;
}

/** Forwards messages in both directions. Each request of the host gets a response: the server's, or an error. */
class McpProxy {
  readonly #options: McpProxyOptions;
  readonly #pending = new PendingRequests();
  readonly session: ServerSession;
  readonly #headers = new ParamHeaders();
  readonly #handshake = new Handshake((message) => this.#forward(message));
  /** The messages of the host that are not sent yet, with their sizes. */
  readonly #unsent = new Map<RpcMessage, number>();
  #unsentBytes = 0;
  /** Emits `change` when a message is sent or a request has its response. */
  readonly #events = new EventEmitter();
  #hasResponse = false;
  /** The first error of a request. */
  #firstError: AgentAuthError | undefined;
  /** Why `initialize` failed in a way that a retry does not fix. */
  #fatalError: AgentAuthError | undefined;

  constructor(options: McpProxyOptions) {
    this.#options = options;
    this.session = new ServerSession({ ...options, onMessage: (message) => this.#fromServer(message) });
  }

  /** Why the proxy failed: `initialize` failed for good, or no request had a response. */
  get error(): AgentAuthError | undefined {
    return this.#fatalError ?? (this.#hasResponse ? undefined : this.#firstError);
  }

  /** Forwards the messages of the host, one per line, until its input or the proxy ends. */
  async readHost(input: Readable, ended: AbortSignal): Promise<void> {
    const { host, maxBytes, onWarning } = this.#options;
    const reject = async (response: RpcResponse) => {
      onWarning(`the host: ${response.error?.message}`);
      host.send(response);
      await host.ready();
    };
    try {
      for await (const line of readLines(input, maxBytes)) {
        const message = `the message is longer than ${maxBytes} bytes`;
        if (line === undefined) await reject(rpcErrorResponse(null, { code: RPC_CODES.invalid, message }));
        else if (line.trim() !== "") {
          const read = readMessage(line);
          if ("failure" in read) await reject(read.failure);
          else this.#fromHost(read.message, line.length);
        }
        await this.#until(() => this.#unsentBytes <= maxBytes, ended);
      }
    } catch (error) {
      // A destroyed input means that the host or the proxy closed the pipe.
      if (!input.destroyed) throw error;
    }
  }

  /** Forwards a message of the host that is `bytes` long. */
  #fromHost(message: RpcMessage, bytes: number): void {
    this.#options.onLog(`host: ${describeMessage(message)}`);
    const refusal = this.#options.policy.refuse(message);
    if (refusal !== undefined) return void this.#refuse(message, refusal);
    const sent = isRpcResponse(message) ? this.session.requests.toServer(message) : message;
    if (sent?.method === CANCELLED) this.#cancel(sent);
    else if (sent === undefined) this.#options.onLog("host: the response belongs to a lost session");
    else {
      this.#unsent.set(sent, bytes);
      this.#unsentBytes += bytes;
      this.#handshake.pass(sent);
    }
  }

  #refuse(message: RpcMessage, why: string): void {
    const { host, onWarning } = this.#options;
    onWarning(`refused: ${why}`);
    if (isRpcRequest(message)) host.send(rpcErrorResponse(message.id, refusedRpcError(why)));
  }

  /** Resolves when every request but subscriptions has a response, or the signal fires. */
  untilIdle(signal: AbortSignal): Promise<void> {
    const endsByItself = ({ request }: PendingRequest) => request.method !== SUBSCRIPTION;
    return this.#until(() => this.#unsent.size === 0 && !this.#pending.all().some(endsByItself), signal);
  }

  /** Answers each pending request with an error. */
  abortPending(): void {
    const sent = this.#pending.all().map(({ request }) => request);
    const ended = new AgentAuthError("aborted", "the proxy has ended", { class: "aborted" });
    for (const { id } of [...this.#handshake.clear().filter(isRpcRequest), ...sent]) {
      this.#pending.remove(id)?.abort.abort(ended);
      this.#options.host.send(rpcErrorResponse(id, toRpcError(ended, this.#context())));
    }
  }

  async #until(holds: () => boolean, signal: AbortSignal): Promise<void> {
    while (!holds() && !signal.aborted) await once(this.#events, "change", { signal }).catch(() => undefined);
  }

  #forward(message: RpcMessage): void {
    if (isRpcRequest(message)) {
      const endStep = message.method === INITIALIZE ? this.#handshake.begin() : () => {};
      const pending = this.#pending.add(message, () => {
        endStep();
        this.#events.emit("change");
      });
      void this.#request(pending);
    } else if (message.method === INITIALIZED) {
      const endStep = this.#handshake.begin();
      void settledWithin(this.#notify(message), MAX_ACCEPT_MS).then(endStep);
    } else void this.#notify(message);
  }

  async #notify(message: RpcMessage): Promise<void> {
    const http = isRpcResponse(message) ? this.session.forResponses : this.session.http;
    try {
      await http.notify(message);
    } catch (error) {
      this.#options.onWarning(`${describeMessage(message)}: ${toRpcError(error, this.#context()).message}`);
    } finally {
      this.#onSent(message);
    }
  }

  /** Sends a request, and once more if a new session makes up for the one that the server has lost. */
  async #request(pending: PendingRequest): Promise<void> {
    const { http } = this.session;
    try {
      await this.#send(http, pending);
    } catch (error) {
      if (!isSessionLost(error) || !this.#isRecoverable(pending, http)) this.#fail(pending, error);
      else await this.#resend(pending, http);
    }
  }

  /** Resolves when the request has its response. */
  async #send(http: HttpChannel, pending: PendingRequest): Promise<void> {
    const { request, abort, revision } = pending;
    try {
      await http.request(request, {
        abort,
        headers: revision === undefined ? {} : this.#headers.ofSessionless(request, revision),
        receive: (message) => {
          if (this.session.isForwarded(http, message)) this.#fromServer(message, pending);
        },
        onAccepted: () => this.#onSent(request),
      });
    } finally {
      this.#onSent(request);
    }
    if (!this.#pending.has(pending)) return;
    throw noResponseError(this.#options.url);
  }

  /** Whether a new session can make up for the lost one. A request that fails also in the new one is not sent again. */
  #isRecoverable(pending: PendingRequest, http: HttpChannel): boolean {
    const begins = this.#pending.all().some(({ request }) => request.method === INITIALIZE);
    const isFirst = pending.state === "sent" && pending.revision === undefined;
    return isFirst && !begins && this.session.isReplaceable(http, pending.request);
  }

  /** Sends a request that the server rejected unprocessed again, in a new session. */
  async #resend(pending: PendingRequest, lost: HttpChannel): Promise<void> {
    pending.state = "waiting";
    this.#events.emit("change");
    const endStep = this.#handshake.begin();
    try {
      await this.session.replace(lost, (open) => this.#abandon(open));
    } catch (error) {
      return this.#fail(pending, error);
    } finally {
      endStep();
    }
    // A request that the host has cancelled is aborted, and is not sent.
    pending.state = "resent";
    try {
      await this.#send(this.session.http, pending);
    } catch (error) {
      if (isSessionLost(error)) this.session.onUnrelated(pending.request);
      this.#fail(pending, error);
    }
  }

  /** Ends what a lost session leaves open: the host's requests that may have been processed, and the server's own. */
  async #abandon(open: RpcId[]): Promise<void> {
    const { host, url, onLog } = this.#options;
    onLog("server: the session is lost, and a new one begins");
    const isSettled = () => this.#pending.all().every(({ state }) => state === "waiting");
    await this.#until(isSettled, AbortSignal.timeout(MAX_SETTLE_MS));
    const lost = sessionLostError(url);
    for (const pending of this.#pending.all()) if (pending.state !== "waiting") this.#fail(pending, lost);
    if (this.#pending.all().length === 0)
      throw new AgentAuthError("aborted", "no request is left", { class: "aborted" });
    for (const requestId of open) host.send(cancelledMessage(requestId, "the server has ended the session"));
  }

  #fail(pending: PendingRequest, error: unknown): void {
    if (!this.#pending.has(pending)) return;
    const { host, onWarning, onFatalError } = this.#options;
    const { id, method } = pending.request;
    const rpcError = toRpcError(error, this.#context(pending));
    host.send(rpcErrorResponse(id, rpcError));
    if (isAgentAuthError(error)) this.#firstError ??= error;
    if (method === INITIALIZE && isAgentAuthError(error) && error.class !== "unavailable") {
      this.#fatalError = error;
      for (const delayed of this.#handshake.clear().filter(isRpcRequest))
        host.send(rpcErrorResponse(delayed.id, rpcError));
      onFatalError();
    } else onWarning(`${quote(method, 80)}: ${rpcError.message}`);
    this.#pending.remove(id);
    pending.abort.abort();
  }

  /** A request without a session is cancelled by closing its HTTP request, any other by a message. */
  #cancel(message: RpcMessage): void {
    const id = readParam(message, "requestId");
    const delayed = this.#handshake.drop(id);
    if (delayed) this.#onSent(delayed);
    const pending = this.#pending.remove(id);
    if (delayed || pending?.revision !== undefined || pending?.state === "waiting") pending?.abort.abort();
    else void settledWithin(this.#notify(message), MAX_ACCEPT_MS).then(() => pending?.abort.abort());
  }

  /** Forwards a message of the server. @param carrier the request whose HTTP response carries it */
  #fromServer(message: RpcMessage, carrier?: PendingRequest): void {
    const { host, policy, onLog } = this.#options;
    if (isTooDeep(message)) return void this.#refuseTooDeep(message, carrier);
    if (!isRpcResponse(message)) {
      onLog(`server: ${describeMessage(message)}`);
      host.send(this.session.requests.toHost(message));
      return;
    }
    const pending = this.#pendingOf(message, carrier);
    onLog(`server: response ${pending ? `to ${describeMessage(pending.request)}` : "without a pending request"}`);
    if (!pending) return;
    this.#hasResponse = true;
    this.#headers.update(pending.request, message);
    const { id, method } = pending.request;
    if (method === "tools/list" && "result" in message) message.result = policy.filterList(message.result);
    host.send({ ...message, id });
    this.#pending.remove(id);
    this.session.onResponse(pending.request, message);
  }

  #refuseTooDeep(message: RpcMessage, carrier: PendingRequest | undefined): void {
    const { url, onWarning } = this.#options;
    const error = tooDeepError(url);
    const pending = isRpcResponse(message) ? this.#pendingOf(message, carrier) : undefined;
    if (pending) this.#fail(pending, error);
    else onWarning(error.message);
  }

  /** A response without an id belongs to the request whose HTTP response carries it. */
  #pendingOf({ id }: RpcResponse, carrier: PendingRequest | undefined): PendingRequest | undefined {
    if (id === undefined || id === null) return carrier && this.#pending.has(carrier) ? carrier : undefined;
    return this.#pending.get(id);
  }

  #context(pending?: PendingRequest) {
    const { url, mask } = this.#options;
    const isInSession = pending !== undefined && pending.request.method !== INITIALIZE;
    const hasSession = isInSession && this.session.http.sessionId !== undefined;
    return { url, mask, hasSession };
  }

  #onSent(message: RpcMessage): void {
    this.#unsentBytes -= this.#unsent.get(message) ?? 0;
    this.#unsent.delete(message);
    this.#events.emit("change");
  }
}

/** Options of {@link runStdioProxy}. */
export interface StdioProxyOptions
  extends Pick<
    McpProxyOptions,
    "url" | "fetch" | "unattended" | "token" | "extension" | "mask" | "onWarning" | "onLog"
  > {
  /** Which tools the host may list and call. Default: all. */
  tools?: ToolPolicyOptions | undefined;
  /** Milliseconds between requests that keep an idle session alive. Default: none. */
  keepAliveMs?: number | undefined;
  /** Messages of the host, one per line. Its end ends the proxy. */
  input: Readable;
  /** Writes to the host; resolves when the host has read the text, rejects when the pipe is closed. */
  write(text: string): Promise<void>;
  signal: AbortSignal;
  /** The longest message that is forwarded, in bytes. Default {@link MAX_MESSAGE_BYTES}. */
  maxBytes?: number | undefined;
}

/** How long pending requests may take after the host has closed its input. */
const DRAIN_MS = 1000;
const TERMINATE_MS = 2000;

/**
 * Forwards every message between a host on stdio and a server of streamable HTTP, until the host closes its input, the
 * signal fires, or the host's `initialize` fails in a way that a retry does not fix.
 *
 * @throws `AgentAuthError` if no request succeeded, for example without a login; the host gets the error too
 */
export async function runStdioProxy(options: StdioProxyOptions): Promise<void> {
  const { tools, keepAliveMs, input, signal, write, maxBytes = MAX_MESSAGE_BYTES, ...server } = options;
  const ended = new AbortController();
  const stop = () => ended.abort(signal.reason);
  ended.signal.addEventListener("abort", () => input.destroy());
  const host = createStdioWriter(write, () => ended.abort());
  const proxy = new McpProxy({
    ...server,
    host,
    ready: host.ready,
    maxBytes,
    policy: new ToolPolicy(tools),
    onFatalError: () => ended.abort(),
  });
  const pings =
    keepAliveMs === undefined ? undefined : setInterval(() => void proxy.session.ping(keepAliveMs), keepAliveMs);
  pings?.unref();
  signal.addEventListener("abort", stop);
  if (signal.aborted) stop();
  try {
    await proxy.readHost(input, ended.signal);
    await settledWithin(proxy.untilIdle(ended.signal), DRAIN_MS);
    proxy.abortPending();
    // Failure is ignored: the server may have no sessions, or be unreachable.
    await settledWithin(proxy.session.http.terminate(), TERMINATE_MS);
  } finally {
    clearInterval(pings);
    signal.removeEventListener("abort", stop);
    proxy.session.close();
    await host.flushed();
    input.destroy();
  }
  if (proxy.error) throw proxy.error;
}
