import type { IncomingMessage, Server, ServerResponse } from "node:http";
import { type AddressInfo, isIP, type Socket } from "node:net";
import { type AgentAuthError, usageError } from "../../errors.js";
import { quote } from "../../redact.js";

/** Time that responses in progress get to finish when the server closes. */
const CLOSE_GRACE_MS = 500;

/** A listening server. */
export interface Listening {
  origin: string;
  port: number;
  /** Stops listening and closes every connection, within a second. */
  close(): Promise<void>;
}

/** Handles a request; if it rejects, the connection is destroyed. */
export type RequestHandler = (request: IncomingMessage, response: ServerResponse) => Promise<void>;

/**
 * Listens on an address.
 *
 * @throws AgentAuthError `usage` where the address is not available
 */
export async function startServer(host: string, port: number, handle: RequestHandler): Promise<Listening> {
  // Loaded here: an import would cost every program that imports the sandbox, started or not.
  const { createServer } = process.getBuiltinModule("node:http");
  const server = createServer((request, response) => {
    // A client that disconnects in the middle is not an error of the sandbox.
    request.on("error", () => {});
    response.on("error", () => {});
    handle(request, response).catch(() => response.destroy());
  });
  server.on("clientError", refuseMalformed);
  await new Promise<void>((resolve, reject) => {
    server.once("error", (cause: NodeJS.ErrnoException) => reject(listenError(host, port, cause)));
    server.listen({ host, port, exclusive: true }, resolve);
  });
  const address = server.address() as AddressInfo;
  const name = isIP(host) === 6 ? `[${host}]` : host;
  return {
    origin: `http://${name}${address.port === 80 ? "" : `:${address.port}`}`,
    port: address.port,
    close: () => closeServer(server),
  };
}

async function closeServer(server: Server): Promise<void> {
  const closed = new Promise<void>((resolve) => server.close(() => resolve()));
  server.closeIdleConnections();
  const timer = setTimeout(() => server.closeAllConnections(), CLOSE_GRACE_MS);
  await closed;
  clearTimeout(timer);
}

/** Answers bytes that are not HTTP, for which Node.js creates no response object. */
function refuseMalformed(error: NodeJS.ErrnoException, socket: Socket): void {
  if (error.code === "ECONNRESET" || !socket.writable) return void socket.destroy();
  const status = error.code === "HPE_HEADER_OVERFLOW" ? "431 Request Header Fields Too Large" : "400 Bad Request";
  socket.end(`HTTP/1.1 ${status}\r\nx-request-id: req_unreadable\r\ncontent-length: 0\r\nconnection: close\r\n\r\n`);
}

function listenError(host: string, port: number, cause: NodeJS.ErrnoException): AgentAuthError {
  const reason = cause.code === "EADDRINUSE" ? "the port is in use" : cause.message;
  const message = `the sandbox cannot listen on ${quote(host)} port ${port}: ${reason}`;
  const hint = cause.code === "EADDRINUSE" ? "choose another port, or 0 for a free one" : "choose another host or port";
  return usageError(message, hint, cause);
}
