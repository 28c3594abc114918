import type { RequestListener, Server } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { AgentAuthError, abortedError, errorMessage } from "../errors.js";
import { settledWithin, untilAborted } from "../http/deadline.js";
import { CallbackHandler, type CallbackHandlerOptions, type ShownOutcome } from "./callback-handler.js";
import type { RedirectOptions, RedirectPlan } from "./redirect-address.js";
import { formatAuthority, planRedirect, redirectUri } from "./redirect-address.js";

/** Ample for the headers of a browser's redirect. */
const MAX_HEADER_BYTES = 16 * 1024;
/** Default time limit for a complete request, and for an idle connection. */
const REQUEST_TIMEOUT_MS = 5_000;
/** Attempts to find a port that is free on both loopback addresses. */
const PORT_ATTEMPTS = 10;
/** The maximum number of open connections. A browser needs one or two. */
const MAX_SOCKETS = 32;

export interface ListenerLimits {
  /** Milliseconds for a complete request, and for an idle connection. Default: 5,000. */
  requestTimeoutMs?: number | undefined;
}

export interface Listener {
  readonly port: number;
  /** Exempts a connection that waits for the response from the limits. */
  keepAlive(socket: Socket): void;
  /** Ends every connection and stops listening. May be called again. */
  close(): Promise<void>;
}

/**
 * Listens on the first port of a plan that can be bound.
 *
 * @throws AgentAuthError `usage` where none can; it names a required port
 */
async function listenByPlan(
  plan: RedirectPlan,
  handle: RequestListener,
  limits: ListenerLimits = {},
): Promise<Listener> {
  let failure: unknown;
  for (const port of plan.ports) {
    try {
      return await listen({ port, ipv6: plan.host === "localhost", ...limits }, handle);
    } catch (error) {
      failure = error;
    }
  }
  const requiredPort = plan.ports.at(-1) ?? 0;
  const uri = plan.uri ?? redirectUri(plan, requiredPort);
  throw requiredPort === 0 ? bindError(failure) : busyError(uri, requiredPort, failure);
}

/**
 * Listens on 127.0.0.1 and, with `ipv6` and where this machine has it, on ::1 at the same port. No other program can
 * share the port.
 *
 * @param address the port 0 lets the system choose
 * @throws the system's error where an address cannot be bound; `EADDRINUSE` also when only ::1 is taken, because a
 * browser may try that one first and would hand the code to the program that holds it
 */
async function listen(
  { port, ipv6, ...limits }: ListenerLimits & { port: number; ipv6: boolean },
  handle: RequestListener,
): Promise<Listener> {
  for (let attempt = 1; ; attempt++) {
    const pool = new SocketPool();
    const first = await bind({ host: "127.0.0.1", port, ...limits }, pool, handle);
    const bound = (first.address() as AddressInfo).port;
    if (!ipv6) return createListener(bound, [first], pool);
    try {
      return createListener(bound, [first, await bind({ host: "::1", port: bound, ...limits }, pool, handle)], pool);
    } catch (error) {
      if (hasNoIpv6(error)) return createListener(bound, [first], pool);
      await closeAll([first]);
      if (port !== 0 || attempt === PORT_ATTEMPTS) throw error;
    }
  }
}

function createListener(port: number, servers: Server[], pool: SocketPool): Listener {
  return { port, keepAlive: (socket) => pool.keepAlive(socket), close: () => closeAll(servers) };
}

function bind(
  { host, port, requestTimeoutMs = REQUEST_TIMEOUT_MS }: ListenerLimits & { host: string; port: number },
  pool: SocketPool,
  handle: RequestListener,
): Promise<Server> {
  // Imported by an ES module, it would load all of fetch.
  const server = process.getBuiltinModule("node:http").createServer({
    maxHeaderSize: MAX_HEADER_BYTES,
    headersTimeout: requestTimeoutMs,
    requestTimeout: requestTimeoutMs,
    connectionsCheckingInterval: requestTimeoutMs / 5,
    // Explicit, because NODE_OPTIONS could enable it for the whole program.
    insecureHTTPParser: false,
  });
  // What is pipelined behind a request is not answered.
  server.maxRequestsPerSocket = 1;
  server.on("connection", (socket) => pool.add(socket));
  server.on("clientError", refuseBroken);
  server.on("request", (request, response) => {
    // A browser that disconnects is no error.
    response.on("error", () => {});
    handle(request, response);
  });
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen({ host, port, exclusive: true, ipv6Only: host === "::1" }, () => {
      // A connection that could not be accepted is ignored: the next one may be the browser.
      server.on("error", () => {});
      resolve(server);
    });
  });
}

async function closeAll(servers: Server[]): Promise<void> {
  const closed = servers.map((server) => new Promise<void>((resolve) => server.close(() => resolve())));
  for (const server of servers) server.closeAllConnections();
  await Promise.all(closed);
}

/** Answers input that is not HTTP, for which there is no response object. */
function refuseBroken(error: NodeJS.ErrnoException, socket: Socket): void {
  if (!socket.writable) return void socket.destroy();
  const status =
    error.code === "HPE_HEADER_OVERFLOW"
      ? "431 Request Header Fields Too Large"
      : error.code === "ERR_HTTP_REQUEST_TIMEOUT"
        ? "408 Request Timeout"
        : "400 Bad Request";
  socket.end(`HTTP/1.1 ${status}\r\ncontent-length: 0\r\ncache-control: no-store\r\nconnection: close\r\n\r\n`);
}

function hasNoIpv6(error: unknown): boolean {
  const code = (error as NodeJS.ErrnoException).code;
  return code === "EADDRNOTAVAIL" || code === "EAFNOSUPPORT" || code === "EINVAL";
}

function busyError(uri: string, port: number, cause: unknown): AgentAuthError {
  const isTaken = (cause as NodeJS.ErrnoException).code === "EADDRINUSE";
  const reason = isTaken ? "another program uses it" : errorMessage(cause);
  const message = `port ${port} is needed for the redirect address ${uri}, but ${reason}`;
  const hint = `stop the program that uses port ${port}, or choose another`;
  const remedy = { action: "configure", option: "redirectPort" } as const;
  return new AgentAuthError("usage", message, { class: "usage", hint, remedy, cause });
}

function bindError(cause: unknown): AgentAuthError {
  const message = `nothing can listen on this machine's loopback address: ${errorMessage(cause)}`;
  const hint = "log in without a listener: by the flow paste";
  const remedy = { action: "configure", option: "flow" } as const;
  return new AgentAuthError("usage", message, { class: "usage", hint, remedy, cause });
}

/**
 * The open connections of a listener, never more than 32.
 *
 * A new connection closes the oldest, not the other way round: else a program that opens 32 idle connections
 * locks the browser out.
 */
class SocketPool {
  readonly #open = new Set<Socket>();
  readonly #exempt = new Set<Socket>();

  add(socket: Socket): void {
    this.#open.add(socket);
    socket.once("close", () => this.#remove(socket));
    if (this.#open.size > MAX_SOCKETS) this.#closeOldest();
  }

  /** Exempts a connection from being closed for a new one. */
  keepAlive(socket: Socket): void {
    if (this.#open.has(socket)) this.#exempt.add(socket);
  }

  #closeOldest(): void {
    const oldest = [...this.#open].find((socket) => !this.#exempt.has(socket));
    if (oldest) this.#remove(oldest);
    oldest?.destroy();
  }

  #remove(socket: Socket): void {
    this.#open.delete(socket);
    this.#exempt.delete(socket);
  }
}

/**
 * A redirect address at which nothing listens, for a callback that the user pastes.
 *
 * The address must look like that of a listener, because that is what loopback clients register. Its port is bound for
 * a moment and released: so no other program holds it when the login begins, and the browser stops with the whole address
 * in its address bar instead of sending the code to another program. A given port is used without a check: with a
 * browser on another machine it does not matter what listens here.
 *
 * @throws AgentAuthError `usage` where nothing can be bound
 */
export async function reserveRedirect(options: RedirectOptions): Promise<string> {
  const { redirectUri: own, redirectPort: port } = options;
  const plan = planRedirect(own === undefined ? options : { ...options, redirectPort: port ?? 80 });
  if (plan.uri !== undefined) return plan.uri;
  if (port !== undefined) return redirectUri(plan, port);
  const ports = plan.ports.flatMap((port) => (port === 0 ? [...unassignedPorts(), port] : [port]));
  const listener = await listenByPlan({ ...plan, ports }, (request) => request.socket.destroy());
  await listener.close();
  return redirectUri(plan, listener.port);
}

/**
 * Some ports that systems do not assign to connections (Linux assigns from 32768, the others from 49152): the login may be
 * finished minutes later, and any request of this machine can have an assigned one by then.
 */
const unassignedPorts = () => Array.from({ length: 5 }, () => 15_000 + Math.floor(15_000 * Math.random()));

/** Time for the browser to fetch its last page. */
const LAST_PAGE_MS = 2_000;

/** How a callback listener is opened. */
export interface LoopbackOptions
  extends RedirectOptions,
    ListenerLimits,
    Partial<Pick<CallbackHandlerOptions, "onOtherPath" | "onProbe" | "onStatelessError">> {
  /** Closes everything at once. */
  signal: AbortSignal;
}

/** A callback listener; bound until it is closed. */
export interface Loopback {
  /** Where the authorization server sends the browser (RFC 8252 section 7.3). */
  readonly redirectUri: string;
  /** The address of this machine where the callback must come in; another one, where a proxy is in front of it. */
  readonly listensAt: string;
  /**
   * A short address that leads to the login page until the callback is there, under the rules of `ShortLink`.
   *
   * @param onWithdrawn called once when it stops working, since something on this machine searched for it
   * @returns undefined where it has stopped working
   */
  shortLink(url: string, onWithdrawn: () => void): string | undefined;
  /** Waits for the callback with this state; any other changes nothing. Rejects when the signal fires. */
  receive(state: string, signal: AbortSignal): Promise<URLSearchParams>;
  /** Redirects the browser of a callback to another request, if it requests its page; undefined where there is no browser. */
  redirectAgain(url: string): Promise<boolean> | undefined;
  /** Sends the outcome to the browser, waits for that at most two seconds, and closes everything. */
  close(outcome: ShownOutcome): Promise<void>;
}

/**
 * Opens a callback listener on this machine.
 *
 * @throws AgentAuthError `usage` where the required port is taken, or where nothing can be bound
 */
export async function openLoopback(options: LoopbackOptions): Promise<Loopback> {
  const { signal, requestTimeoutMs } = options;
  const plan = planRedirect(options);
  if (signal.aborted) throw abortedError(signal);
  // Filled once the port is known; until then every request is refused.
  const hosts = new Set<string>();
  const handler = new CallbackHandler({
    hosts,
    path: plan.path,
    publicPath: plan.uri === undefined ? plan.path : new URL(plan.uri).pathname,
    onProbe: () => options.onProbe?.(),
    onOtherPath: (path) => options.onOtherPath?.(path),
    onStatelessError: (error) => options.onStatelessError?.(error),
    keepAlive: (socket) => listener.keepAlive(socket),
  });
  const listener = await listenByPlan(plan, (request, response) => handler.handle(request, response), {
    requestTimeoutMs,
  });
  const names = plan.host === "localhost" ? ["localhost", "127.0.0.1", "[::1]"] : [plan.host];
  for (const name of names) hosts.add(formatAuthority(name, listener.port));
  // A proxy may leave the browser's Host as it is.
  if (plan.uri !== undefined) hosts.add(new URL(plan.uri).host);
  const onAbort = () => void listener.close();
  signal.addEventListener("abort", onAbort, { once: true });
  if (signal.aborted) {
    await listener.close();
    throw abortedError(signal);
  }
  const listensAt = redirectUri(plan, listener.port);
  return {
    redirectUri: plan.uri ?? listensAt,
    listensAt,
    shortLink(url, onWithdrawn) {
      const path = handler.shortPathTo(url, onWithdrawn);
      return path === undefined ? undefined : redirectUri({ host: plan.host, path }, listener.port);
    },
    receive: (state, stop) => untilAborted(untilAborted(handler.expect(state), signal), stop),
    redirectAgain: (url) => handler.redirectAgain(url),
    async close(outcome) {
      await settledWithin(untilAborted(handler.finish(outcome), signal), LAST_PAGE_MS);
      signal.removeEventListener("abort", onAbort);
      await listener.close();
    },
  };
}
