import { AgentAuthError } from "../errors.js";
import { isJsonObject } from "../http/strict-json.js";
import { quote } from "../redact.js";
import { HttpChannel, type HttpChannelOptions, type Receive } from "./http-channel.js";
import type { RpcId, RpcMessage, RpcRequest, RpcResponse } from "./json-rpc.js";
import { CANCELLED, INITIALIZE, INITIALIZED, isRpcRequest, isRpcResponse, readParam } from "./json-rpc.js";

/** How long the server may take for each response that begins a new session. */
const MAX_RESPONSE_MS = 30_000;

/** A function that sends a request and returns its response; all other messages of the server go to `onMessage`. */
function createRequester(
  http: HttpChannel,
  onMessage: Receive,
  { ms, isUnattended }: { ms: number; isUnattended: boolean } = { ms: MAX_RESPONSE_MS, isUnattended: false },
) {
  return (request: RpcRequest): Promise<RpcResponse> => {
    const abort = new AbortController();
    let timer: NodeJS.Timeout | undefined;
    const response = new Promise<RpcResponse>((resolve, reject) => {
      const text = `the MCP server sent no response to ${quote(request.method, 80)}`;
      const noResponse = () => reject(new AgentAuthError("mcp_failed", text, { class: "remote" }));
      timer = setTimeout(noResponse, ms).unref();
      const receive = (message: RpcMessage) => {
        if (!isRpcResponse(message)) onMessage(message);
        else if (message.id === request.id) resolve(message);
      };
      // A stream that ended before its response.
      const fail = (error: unknown) =>
        error instanceof AgentAuthError && error.code === "connection_reset" ? noResponse() : reject(error);
      http.request(request, { abort, receive, isUnattended }).then(noResponse, fail);
    });
    return response.finally(() => {
      clearTimeout(timer);
      // Nothing follows the response, even if the server leaves its stream open.
      abort.abort();
    });
  };
}

/** What a {@link ServerSession} reads and reports to. */
export interface ServerSessionOptions extends HttpChannelOptions {
  /** Called with each message of the server that belongs to no request. */
  onMessage(message: RpcMessage): void;
}

/**
 * The connection to the server, and its session. A session that the server has lost is replaced once for all callers by one
 * with what the host sent in the lost one.
 */
export class ServerSession {
  readonly #options: ServerSessionOptions;
  #http: HttpChannel;
  /** What both sides agreed on when the host initialized the session; undefined before. */
  #agreement: { readonly params: unknown; readonly protocolVersion: string } | undefined;
  /** Requests whose effect is part of the session: subscriptions and the log level. */
  readonly #state = new Map<string, RpcRequest>();
  /** The channel of the session that is to replace a lost one. */
  #next: HttpChannel | undefined;
  #replacing: Promise<void> | undefined;
  /** Whether the session has answered a request. */
  #isProven = false;
  /** Methods to which the server answers as to a lost session, in a new one as well. */
  readonly #unrelated = new Set<string>();
  /** The channel of the session that is being replaced, or was. */
  #lost: HttpChannel | undefined;
  readonly requests = new ServerRequests();

  constructor(options: ServerSessionOptions) {
    this.#options = options;
    this.#http = this.#connect();
  }

  get http(): HttpChannel {
    return this.#http;
  }

  /** The channel for responses of the host: what it has not answered yet, the new session asked. */
  get forResponses(): HttpChannel {
    return this.#next ?? this.#http;
  }

  /** Sends a `ping` if there is a session, and waits for the answer for `ms` milliseconds. */
  async ping(ms: number): Promise<void> {
    if (this.#agreement === undefined) return;
    const http = this.#http;
    const ask = createRequester(http, (message) => this.#fromServer(http, message), { ms, isUnattended: true });
    await ask({ jsonrpc: "2.0", id: "agentauth-ping", method: "ping" }).catch((error: unknown) =>
      this.#options.onLog(`ping: ${quote(this.#options.mask(String(error)), 300)}`),
    );
  }

  close(): void {
    this.#http.close();
    this.#next?.close();
  }

  onResponse(request: RpcRequest, { result }: RpcResponse): void {
    const protocolVersion =
      request.method === INITIALIZE && isJsonObject(result) ? result["protocolVersion"] : undefined;
    if (typeof protocolVersion === "string") {
      this.#agreement = { params: request.params, protocolVersion };
      this.#state.clear();
      this.#http.revision = protocolVersion;
    } else {
      this.#isProven = true;
      if (isJsonObject(result)) this.#remember(request);
    }
    this.#unrelated.delete(request.method);
    this.#http.onResponse();
  }

  /** Remembers what a new session must repeat. */
  #remember(request: RpcRequest): void {
    const subscription = `subscription ${readParam(request, "uri")}`;
    if (request.method === "resources/subscribe") this.#state.set(subscription, request);
    else if (request.method === "resources/unsubscribe") this.#state.delete(subscription);
    else if (request.method === "logging/setLevel") this.#state.set("level", request);
  }

  /** Called when a new session did not help a request. */
  onUnrelated({ method }: RpcRequest): void {
    this.#unrelated.add(method);
  }

  /**
   * Whether the session of this channel can be replaced because of a request. A method that fails in a session that
   * works does not end it.
   */
  isReplaceable(http: HttpChannel, { method }: RpcRequest): boolean {
    const isRelated = !this.#isProven || !this.#unrelated.has(method);
    return isRelated && http.sessionId !== undefined && this.#agreement !== undefined;
  }

  /**
   * Replaces the session of a channel, if another call has not done so yet.
   *
   * @param prepare runs before the new session begins; it receives the ids of requests that the lost session asked
   */
  async replace(lost: HttpChannel, prepare: (open: RpcId[]) => Promise<void>): Promise<void> {
    if (this.#http !== lost) return;
    this.#replacing ??= this.#replace(prepare).finally(() => {
      this.#replacing = undefined;
    });
    await this.#replacing;
  }

  async #replace(prepare: (open: RpcId[]) => Promise<void>): Promise<void> {
    const lost = this.#http;
    this.#lost = lost;
    try {
      await prepare(this.requests.lose());
      await this.#begin();
    } catch (error) {
      this.#lost = undefined;
      throw error;
    }
    lost.close();
  }

  async #begin(): Promise<void> {
    const next = this.#connect();
    this.#next = next;
    try {
      await this.#initialize(next);
    } catch (error) {
      next.close();
      throw error;
    } finally {
      this.#next = undefined;
    }
    this.#http = next;
    this.#isProven = false;
    this.#unrelated.clear();
  }

  /**
   * Begins a session with a channel that was not used yet.
   *
   * @throws the error of the channel, or `AgentAuthError` if the server refuses the session or agrees to another
   * revision than the one that the host speaks
   */
  async #initialize(next: HttpChannel): Promise<void> {
    const { url, onWarning } = this.#options;
    const ask = createRequester(next, (message) => this.#fromServer(next, message));
    const { params, protocolVersion } = this.#agreement ?? {};
    const { result, error } = await ask({ jsonrpc: "2.0", id: "agentauth-initialize", method: INITIALIZE, params });
    if (!isJsonObject(result) || protocolVersion === undefined || result["protocolVersion"] !== protocolVersion) {
      const why = error
        ? quote(error.message, 300)
        : `its protocol revision is no longer ${quote(protocolVersion ?? "", 80)}`;
      const message = `the MCP server ${quote(url)} has ended the session, and a new one cannot replace it: ${why}; restart this server in the host`;
      throw new AgentAuthError("mcp_failed", message, { class: "remote" });
    }
    next.revision = protocolVersion;
    await next.notify({ jsonrpc: "2.0", method: INITIALIZED });
    const repeated = [...this.#state.values()].map(async (request, index) => {
      const response = await ask({ ...request, id: `agentauth-${index}` });
      if (response.error) onWarning(`${quote(request.method, 80)}: the server refuses it in its new session`);
    });
    await Promise.all(repeated);
  }

  #connect(): HttpChannel {
    const http: HttpChannel = new HttpChannel(this.#options, (message) => this.#fromServer(http, message));
    return http;
  }

  #fromServer(http: HttpChannel, message: RpcMessage): void {
    if (this.isForwarded(http, message)) this.#options.onMessage(message);
  }

  /** Whether a message of a channel reaches the host: the answer to a request of a lost session has nowhere to go. */
  isForwarded(http: HttpChannel, message: RpcMessage): boolean {
    return http !== this.#lost || !isRpcRequest(message);
  }
}

/**
 * The requests of the server that the host has not answered. A new session may repeat the ids of a lost one: its request
 * gets another id at the host where a late response to the old one could still come.
 */
export class ServerRequests {
  /** The ids at the server, by those at the host. */
  readonly #open = new Map<RpcId, RpcId>();
  /** Ids at the host of requests of lost sessions. */
  readonly #lost = new Set<RpcId>();
  #renamed = 0;

  toHost(message: RpcMessage): RpcMessage {
    if (isRpcRequest(message)) {
      const id = this.#lost.has(message.id) ? `agentauth-${++this.#renamed}` : message.id;
      this.#open.set(id, message.id);
      return { ...message, id };
    }
    if (message.method !== CANCELLED) return message;
    const requestId = readParam(message, "requestId");
    const [renamed] = [...this.#open].find(([id, serverId]) => id !== serverId && serverId === requestId) ?? [];
    if (renamed === undefined) return message;
    return { ...message, params: { ...(message.params as object), requestId: renamed } };
  }

  /** A response of the host as the server gets it; undefined if it belongs to a lost session. */
  toServer(response: RpcResponse): RpcResponse | undefined {
    const id = response.id as RpcId;
    const serverId = this.#open.get(id);
    if (serverId === undefined) return this.#lost.delete(id) ? undefined : response;
    this.#open.delete(id);
    return { ...response, id: serverId };
  }

  /** Called when the session is lost. @returns the ids at the host of the requests that it leaves open */
  lose(): RpcId[] {
    const ids = [...this.#open.keys()];
    this.#open.clear();
    for (const id of ids) this.#lost.add(id);
    return ids;
  }
}
