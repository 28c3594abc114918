import { createServer, type IncomingHttpHeaders, type RequestListener, type ServerResponse } from "node:http";
import { createServer as createTlsServer } from "node:https";
import { type AddressInfo, createServer as createSocketServer, type Server, type Socket } from "node:net";
import { onTestFinished } from "vitest";

/** A request as it arrived, its body read. */
export interface SeenRequest {
  readonly method: string;
  /** Path and query. */
  readonly url: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

/** Answers one request; `nth` counts from 1. */
export type Answer = (response: ServerResponse, request: SeenRequest, nth: number) => unknown;

/** A server on 127.0.0.1 for the length of one test. */
export interface TestServer {
  /** Such as `http://127.0.0.1:41234`. */
  readonly origin: string;
  /** Every request that arrived, in order. */
  readonly requests: SeenRequest[];
  /** Ends the server and its connections; done by itself when the test ends. */
  close(): Promise<void>;
}

/** Starts an HTTP server whose answers a test writes. */
export async function startServer(answer: Answer): Promise<TestServer> {
  const requests: SeenRequest[] = [];
  return opened(createServer(listener(answer, requests)), "http", requests);
}

/** The same over TLS, with a key and a certificate in PEM. */
export async function startTlsServer(pem: string, answer: Answer): Promise<TestServer> {
  const requests: SeenRequest[] = [];
  return opened(createTlsServer({ key: pem, cert: pem }, listener(answer, requests)), "https", requests);
}

/** Starts a server without HTTP: a test writes the bytes. `nth` counts connections from 1. */
export async function startSocketServer(
  onRequest: (socket: Socket, head: string, nth: number) => unknown,
): Promise<TestServer & { heads: string[] }> {
  const heads: string[] = [];
  const server = createSocketServer((socket) => {
    socket.on("error", () => undefined);
    socket.on("data", (bytes) => {
      const head = bytes.toString("latin1");
      onRequest(socket, head, heads.push(head));
    });
  });
  return { ...(await opened(server, "http", [])), heads };
}

/** Answers with JSON. */
export function sendJson(
  response: ServerResponse,
  body: unknown,
  status = 200,
  headers: Record<string, string | string[]> = {},
): void {
  response.writeHead(status, { "content-type": "application/json", ...headers });
  response.end(JSON.stringify(body));
}

/** Resolves once `condition` holds. */
export async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await new Promise((resolve) => setTimeout(resolve, 1));
}

function listener(answer: Answer, requests: SeenRequest[]): RequestListener {
  return async (incoming, response) => {
    const parts: Buffer[] = [];
    for await (const part of incoming) parts.push(part as Buffer);
    const { method = "", url = "", headers } = incoming;
    const request = { method, url, headers, body: Buffer.concat(parts).toString() };
    await answer(response, request, requests.push(request));
  };
}

async function opened(server: Server, scheme: string, requests: SeenRequest[]): Promise<TestServer> {
  const sockets = new Set<Socket>();
  server.on("connection", (socket) => {
    sockets.add(socket);
    socket.on("close", () => sockets.delete(socket));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const close = async () => {
    const closed = new Promise<void>((resolve) => server.close(() => resolve()));
    for (const socket of sockets) socket.destroy();
    await closed;
  };
  onTestFinished(close);
  return { origin: `${scheme}://127.0.0.1:${(server.address() as AddressInfo).port}`, requests, close };
}
