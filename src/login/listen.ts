import type { RequestListener, Server } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { SocketPool } from "./socket-pool.js";

/** Ample for the headers of a browser's redirect. */
const MAX_HEADER_BYTES = 16 * 1024;
/** Default time limit for a complete request, and for an idle connection. */
const REQUEST_TIMEOUT_MS = 5_000;
/** Attempts to find a port that is free on both loopback addresses. */
const PORT_ATTEMPTS = 10;

/** Limits of a listener. */
export interface ListenerLimits {
  /** Milliseconds for a complete request, and for an idle connection. Default: 5,000. */
  requestTimeoutMs?: number | undefined;
}

/** A bound listener. */
export interface Listener {
  readonly port: number;
  /** Exempts a connection that waits for the response from the limits. */
  keepAlive(socket: Socket): void;
  /** Ends every connection and stops listening. May be called again. */
  close(): Promise<void>;
}

/**
 * Listens on 127.0.0.1 and, with `ipv6` and where this machine has it, on ::1 at the same port. No other program can
 * share the port.
 *
 * @param address the port 0 lets the system choose
 * @throws the system's error where an address cannot be bound; `EADDRINUSE` also when only ::1 is taken, because a
 * browser may try that one first and would hand the code to the program that holds it
 */
export async function listen(
  { port, ipv6, ...limits }: ListenerLimits & { port: number; ipv6: boolean },
  handle: RequestListener,
): Promise<Listener> {
  for (let attempt = 1; ; attempt++) {
    const pool = new SocketPool();
    const first = await bind({ host: "127.0.0.1", port, ...limits }, pool, handle);
    const bound = (first.address() as AddressInfo).port;
    if (!ipv6) return listener(bound, [first], pool);
    try {
      return listener(bound, [first, await bind({ host: "::1", port: bound, ...limits }, pool, handle)], pool);
    } catch (error) {
      if (hasNoIpv6(error)) return listener(bound, [first], pool);
      await closeAll([first], pool);
      if (port !== 0 || attempt === PORT_ATTEMPTS) throw error;
    }
  }
}

function listener(port: number, servers: Server[], pool: SocketPool): Listener {
  return { port, keepAlive: (socket) => pool.keepAlive(socket), close: () => closeAll(servers, pool) };
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
      server.off("error", reject);
      // A connection that could not be accepted is ignored: the next one may be the browser.
      server.on("error", () => {});
      resolve(server);
    });
  });
}

async function closeAll(servers: Server[], pool: SocketPool): Promise<void> {
  const closed = servers.map((server) => new Promise<void>((resolve) => server.close(() => resolve())));
  pool.destroy();
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
