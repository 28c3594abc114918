import { EventEmitter, once } from "node:events";
import { AgentAuthError, isAgentAuthError } from "../errors.js";
import { settledWithin } from "../http/deadline.js";
import { quote } from "../redact.js";
import { isSessionLost, noResponseError, sessionLostError, tooDeepError, toRpcError } from "./errors.js";
import type { HttpChannel } from "./http-channel.js";
import {
  CANCELLED,
  cancelledMessage,
  describeMessage,
  INITIALIZE,
  INITIALIZED,
  isRpcRequest,
  isRpcResponse,
  isTooDeep,
  type RpcId,
  type RpcMessage,
  type RpcResponse,
  readParam,
  rpcErrorResponse,
  SUBSCRIPTION,
} from "./json-rpc.js";
import { ParamHeaders } from "./param-headers.js";
import { Handshake, type PendingRequest, PendingRequests, ProxyOutcome, UnsentMessages } from "./pending-requests.js";
import { ServerSession, type ServerSessionOptions } from "./server-session.js";
import type { StdioWriter } from "./stdio.js";
import { refusedRpcError, type ToolPolicy } from "./tool-policy.js";

/** How long to wait for the server to accept a notification. */
const MAX_ACCEPT_MS = 5000;
/** How long the other requests of a lost session may take to fail as well. */
const MAX_SETTLE_MS = 1000;

/** The two sides of an {@link McpProxy}, and its callbacks. */
export interface McpProxyOptions extends Omit<ServerSessionOptions, "onMessage"> {
  host: Pick<StdioWriter, "send">;
  /** Which tools the host may list and call. */
  policy: ToolPolicy;
  /** Called when the host's `initialize` fails in a way that a retry does not fix. */
  onFatalError(): void;
}

/** Forwards messages in both directions. Each request of the host gets a response: the server's, or an error. */
export class McpProxy {
  readonly #options: McpProxyOptions;
  readonly #pending = new PendingRequests();
  readonly #session: ServerSession;
  readonly #headers = new ParamHeaders();
  readonly #handshake = new Handshake((message) => this.#forward(message));
  readonly #unsent = new UnsentMessages();
  /** Emits `change` when a message is sent or a request has its response. */
  readonly #events = new EventEmitter();
  readonly #outcome = new ProxyOutcome();

  constructor(options: McpProxyOptions) {
    this.#options = options;
    this.#session = new ServerSession({ ...options, onMessage: (message) => this.#fromServer(message) });
  }

  /** Keeps the session alive: see {@link ServerSession.ping}. */
  ping(ms: number): Promise<void> {
    return this.#session.ping(ms);
  }

  /** Ends the session at the server. */
  terminate(): Promise<void> {
    return this.#session.terminate();
  }

  close(): void {
    this.#session.close();
  }

  /** Why the proxy failed: `initialize` failed for good, or no request had a response. */
  get error(): AgentAuthError | undefined {
    return this.#outcome.error;
  }

  /** Forwards a message of the host that is `bytes` long. */
  fromHost(message: RpcMessage, bytes: number): void {
    this.#options.onLog(`host: ${describeMessage(message)}`);
    const refusal = this.#options.policy.refuse(message);
    if (refusal !== undefined) return void this.#refuse(message, refusal);
    const sent = isRpcResponse(message) ? this.#session.requests.toServer(message) : message;
    if (sent?.method === CANCELLED) this.#cancel(sent);
    else if (sent === undefined) this.#options.onLog("host: the response belongs to a lost session");
    else {
      this.#unsent.add(sent, bytes);
      this.#handshake.pass(sent);
    }
  }

  #refuse(message: RpcMessage, why: string): void {
    const { host, onWarning } = this.#options;
    onWarning(`refused: ${why}`);
    if (isRpcRequest(message)) host.send(rpcErrorResponse(message.id, refusedRpcError(why)));
  }

  /** Resolves when at most `maxBytes` of the host's messages are not yet sent, or the signal fires. */
  untilBelow(maxBytes: number, signal: AbortSignal): Promise<void> {
    return this.#until(() => this.#unsent.bytes <= maxBytes, signal);
  }

  /** Resolves when every request but subscriptions has a response, or the signal fires. */
  untilIdle(signal: AbortSignal): Promise<void> {
    const endsByItself = ({ request }: PendingRequest) => request.method !== SUBSCRIPTION;
    return this.#until(() => this.#unsent.isEmpty && !this.#pending.all().some(endsByItself), signal);
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
    const http = isRpcResponse(message) ? this.#session.forResponses : this.#session.http;
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
    const { http } = this.#session;
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
          if (this.#session.isForwarded(http, message)) this.#fromServer(message, pending);
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
    return isFirst && !begins && this.#session.isReplaceable(http, pending.request);
  }

  /** Sends a request that the server rejected unprocessed again, in a new session. */
  async #resend(pending: PendingRequest, lost: HttpChannel): Promise<void> {
    pending.state = "waiting";
    this.#events.emit("change");
    const endStep = this.#handshake.begin();
    try {
      await this.#session.replace(lost, (open) => this.#abandon(open));
    } catch (error) {
      return this.#fail(pending, error);
    } finally {
      endStep();
    }
    // A request that the host has cancelled is aborted, and is not sent.
    pending.state = "resent";
    try {
      await this.#send(this.#session.http, pending);
    } catch (error) {
      if (isSessionLost(error)) this.#session.onUnrelated(pending.request);
      this.#fail(pending, error);
    }
  }

  /** Ends what a lost session leaves open: the host's requests that may have been processed, and the server's own. */
  async #abandon(open: RpcId[]): Promise<void> {
    const { host, url, onLog } = this.#options;
    onLog("server: the session is lost, and a new one begins");
    await this.#until(
      () => this.#pending.all().every(({ state }) => state === "waiting"),
      AbortSignal.timeout(MAX_SETTLE_MS),
    );
    const lost = sessionLostError(url);
    for (const pending of this.#pending.all()) if (pending.state !== "waiting") this.#fail(pending, lost);
    if (this.#pending.all().length === 0) {
      throw new AgentAuthError("aborted", "no request is left", { class: "aborted" });
    }
    for (const requestId of open) host.send(cancelledMessage(requestId, "the server has ended the session"));
  }

  #fail(pending: PendingRequest, error: unknown): void {
    if (!this.#pending.has(pending)) return;
    const { host, onWarning, onFatalError } = this.#options;
    const { id, method } = pending.request;
    const rpcError = toRpcError(error, this.#context(pending));
    host.send(rpcErrorResponse(id, rpcError));
    if (isAgentAuthError(error)) this.#outcome.onFailure(error);
    if (method === INITIALIZE && isAgentAuthError(error) && error.class !== "unavailable") {
      this.#outcome.onFatalFailure(error);
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
      host.send(this.#session.requests.toHost(message));
      return;
    }
    const pending = this.#pendingOf(message, carrier);
    onLog(
      `server: ${pending ? `response to ${describeMessage(pending.request)}` : "response without a pending request"}`,
    );
    if (!pending) return;
    this.#outcome.onResponse();
    this.#headers.update(pending.request, message);
    const { id, method } = pending.request;
    if (method === "tools/list" && "result" in message) message.result = policy.filterList(message.result);
    host.send({ ...message, id });
    this.#pending.remove(id);
    this.#session.onResponse(pending.request, message);
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
    const hasSession = isInSession && this.#session.http.sessionId !== undefined;
    return { url, mask, hasSession };
  }

  #onSent(message: RpcMessage): void {
    this.#unsent.remove(message);
    this.#events.emit("change");
  }
}
