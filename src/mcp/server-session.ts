import type { StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { NotificationStream, type NotificationStreamOptions } from "./http-transport.js";
import { INITIALIZE, isRequest, type RpcId, type RpcMessage, type RpcRequest, type RpcResponse } from "./json-rpc.js";
import { ServerRequests } from "./server-requests.js";
import { SessionRecovery } from "./session-recovery.js";

/** What a {@link ServerSession} reads and reports to. */
export interface ServerSessionOptions extends NotificationStreamOptions {
  url: string;
  /** Creates a transport. */
  connect(): StreamableHTTPClientTransport;
  /** Called with each message of the server. */
  onMessage(message: RpcMessage): void;
}

/** The connection to the server, and its session. A session that the server has lost is replaced once for all callers. */
export class ServerSession {
  readonly #options: ServerSessionOptions;
  readonly #recovery: SessionRecovery;
  #http: StreamableHTTPClientTransport;
  #notifications: NotificationStream;
  /** The transport of the session that is to replace a lost one. */
  #next: StreamableHTTPClientTransport | undefined;
  #replacing: Promise<void> | undefined;
  /** Whether the session has answered a request. */
  #isProven = false;
  /** Methods to which the server answers as to a lost session, in a new one as well. */
  readonly #unrelated = new Set<string>();
  /** The transport of the session that is being replaced, or was. */
  #lost: StreamableHTTPClientTransport | undefined;
  /** The requests of the server. */
  readonly requests = new ServerRequests();

  constructor(options: ServerSessionOptions) {
    this.#options = options;
    this.#recovery = new SessionRecovery(options);
    this.#http = options.connect();
    this.#notifications = this.#use(this.#http);
  }

  /** The transport of the current session. */
  get http(): StreamableHTTPClientTransport {
    return this.#http;
  }

  /** The transport for responses of the host: what it has not answered yet, the new session asked. */
  get forResponses(): StreamableHTTPClientTransport {
    return this.#next ?? this.#http;
  }

  /** Starts the first transport. */
  start(): Promise<void> {
    return this.#http.start();
  }

  /** Ends the session at the server. */
  terminate(): Promise<void> {
    return this.#http.terminateSession();
  }

  /** Closes all connections. */
  async close(): Promise<void> {
    await Promise.all([this.#http.close(), this.#next?.close()]);
  }

  /** Called with each response of the server. */
  onResponse(request: RpcRequest, response: RpcResponse): void {
    const protocolVersion = this.#recovery.observe(request, response);
    if (protocolVersion !== undefined) this.#http.setProtocolVersion(protocolVersion);
    else this.#isProven = true;
    this.#unrelated.delete(request.method);
    this.#notifications.onResponse();
  }

  /** Called when a new session did not help a request. */
  onUnrelated({ method }: RpcRequest): void {
    this.#unrelated.add(method);
  }

  /** Called before each request of the host. */
  beforeRequest({ method }: RpcRequest): void {
    // A host that begins again offers its own revision, not the one of the session before.
    if (method === INITIALIZE) this.#http.setProtocolVersion("");
  }

  /**
   * Whether the session of this transport can be replaced because of a request. A method that fails in a session that
   * works does not end it.
   */
  isReplaceable(http: StreamableHTTPClientTransport, { method }: RpcRequest): boolean {
    const isRelated = !this.#isProven || !this.#unrelated.has(method);
    return isRelated && http.sessionId !== undefined && this.#recovery.isPossible;
  }

  /**
   * Replaces the session of a transport, if another call has not done so yet.
   *
   * @param prepare runs before the new session begins; it receives the ids of requests that the lost session asked
   */
  async replace(lost: StreamableHTTPClientTransport, prepare: (open: RpcId[]) => Promise<void>): Promise<void> {
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
    await lost.close();
  }

  async #begin(): Promise<void> {
    const next = this.#options.connect();
    this.#next = next;
    this.#use(next);
    try {
      await this.#recovery.begin(next, this.#options.onMessage);
    } catch (error) {
      await next.close();
      throw error;
    } finally {
      this.#next = undefined;
    }
    this.#notifications = this.#use(next);
    this.#http = next;
    this.#isProven = false;
    this.#unrelated.clear();
  }

  /** Forwards the messages of a transport, and returns its notification stream. */
  #use(http: StreamableHTTPClientTransport): NotificationStream {
    const notifications = new NotificationStream(http, this.#options);
    http.onerror = (error) => notifications.onError(error);
    http.onmessage = (received) => {
      const message = received as RpcMessage;
      // The answer to a request of a lost session has nowhere to go.
      if (http !== this.#lost || !isRequest(message)) this.#options.onMessage(message);
    };
    return notifications;
  }
}
