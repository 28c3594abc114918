import { once } from "node:events";
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from "node:http";
import { createServer as createTlsServer } from "node:https";
import type { AddressInfo, Server, Socket } from "node:net";
import { freePort } from "./port.js";

/** A received request, with its body. */
export interface Seen {
  readonly peer: string;
  readonly method: string;
  /** Without the query. */
  readonly path: string;
  /** With the query. */
  readonly url: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

/** The reply of a route: JSON unless there is a text; `raw` writes the response itself, or never answers. */
export interface Reply {
  status?: number;
  headers?: Record<string, string | string[]>;
  json?: unknown;
  text?: string | Buffer;
  raw?: (response: ServerResponse) => unknown;
}

/** Creates the reply to one request; `nth` counts the requests to this path from 1. */
export type Handler = (request: Seen, nth: number) => Reply | Promise<Reply>;

/** The reply to the requests to one path, or what creates it. */
export type Route = Reply | Handler;

/** The requests to one or more peers, in order. */
export type RequestLog = Pick<Seen[], "push" | "filter">;

/** How a peer listens. */
export interface PeerOptions {
  /** The advertised origin, if it differs from the listening address. */
  origin?: string;
  tls?: { key: string; cert: string };
  /** Whether to log each connection, even without a request. */
  isTripwire?: boolean;
}

/** A loopback server with replaceable routes; a path without a route is 404. */
export class Peer {
  readonly routes: Record<string, Route> = {};
  /** The status line for CONNECT requests; without it the connection is closed. */
  tunnels: string | undefined;
  readonly name: string;
  readonly #log: RequestLog;
  readonly #options: PeerOptions;
  readonly #sockets = new Set<Socket>();
  #server: Server | undefined;

  constructor(name: string, log: RequestLog, options: PeerOptions = {}) {
    this.name = name;
    this.#log = log;
    this.#options = options;
  }

  async start(host = "127.0.0.1"): Promise<this> {
    const listener = (request: IncomingMessage, response: ServerResponse) => void this.#answer(request, response);
    const { tls, isTripwire } = this.#options;
    const server = tls ? createTlsServer(tls, listener) : createServer(listener);
    // On a busy machine the program may reuse a kept-alive connection late.
    server.keepAliveTimeout = 60_000;
    server.on("connect", ({ url = "" }: IncomingMessage, socket: Socket) => {
      this.#note({ method: "CONNECT", path: url, url, headers: {}, body: "" });
      socket.end(this.tunnels === undefined ? "" : `HTTP/1.1 ${this.tunnels}\r\ncontent-length: 0\r\n\r\n`);
    });
    server.on("connection", (socket: Socket) => {
      if (isTripwire) this.#note({ method: "CONNECTION", path: "", url: "", headers: {}, body: "" });
      this.#sockets.add(socket);
      socket.on("error", () => undefined);
      socket.on("close", () => this.#sockets.delete(socket));
    });
    // The system may assign the port of a server that has ended, and a program that still tries that one is no finding.
    const port = isTripwire ? await freePort() : 0;
    await once(server.listen(port, host), "listening");
    this.#server = server;
    return this;
  }

  get port(): number {
    if (!this.#server) throw new Error(`${this.name} is not started`);
    return (this.#server.address() as AddressInfo).port;
  }

  get origin(): string {
    return this.#options.origin ?? `${this.#options.tls ? "https" : "http"}://127.0.0.1:${this.port}`;
  }

  /** The received requests. */
  get requests(): Seen[] {
    return this.#log.filter((seen) => seen.peer === this.name);
  }

  /** The received requests to a path. */
  to(path: string): Seen[] {
    return this.requests.filter((seen) => seen.path === path);
  }

  /** The form of the n-th request to a path, from 0. */
  form(path: string, nth = 0): URLSearchParams {
    return new URLSearchParams(this.to(path)[nth]?.body);
  }

  async close(): Promise<void> {
    const closed = new Promise<void>((resolve) => this.#server?.close(() => resolve()));
    for (const socket of this.#sockets) socket.destroy();
    await closed;
  }

  #note(seen: Omit<Seen, "peer">): void {
    this.#log.push({ peer: this.name, ...seen });
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const parts: Buffer[] = [];
    try {
      for await (const part of request) parts.push(part as Buffer);
    } catch {
      return;
    }
    const { method = "", url = "", headers } = request;
    const path = url.split("?")[0] ?? url;
    this.#note({ method, path, url, headers, body: Buffer.concat(parts).toString() });
    const route = this.routes[path] ?? { status: 404, text: "nothing here" };
    const seen = this.to(path);
    const last = seen.at(-1);
    write(response, typeof route === "function" && last ? await route(last, seen.length) : (route as Reply));
  }
}

function write(response: ServerResponse, { status = 200, headers = {}, json, text, raw }: Reply): void {
  if (raw) return void raw(response);
  if (text === undefined && json !== undefined) {
    response.writeHead(status, { "content-type": "application/json", ...headers });
    response.end(JSON.stringify(json));
  } else response.writeHead(status, headers).end(text ?? "");
}

/** A raw JSON body, for text that `JSON.stringify` does not produce. */
export function rawJson(text: string | Buffer, status = 200, headers: Record<string, string> = {}): Reply {
  return { status, headers: { "content-type": "application/json", ...headers }, text };
}

/** The bytes of a whole response, including its head; then the connection closes. */
export function rawBytes(bytes: string | Buffer): Reply {
  return { raw: ({ socket }) => socket?.end(bytes) };
}

/** Resets the connection. */
export const reset: Reply = { raw: ({ socket }) => socket?.destroy() };

/** Never answers. */
export const silence: Reply = { raw: () => undefined };

/** Writes a piece at an interval until the connection closes. */
export function endless(head: string, piece: string | Buffer, everyMs: number): Reply {
  return {
    raw({ socket }) {
      if (!socket) return;
      socket.write(head);
      const timer = setInterval(() => socket.writable && socket.write(piece), everyMs);
      socket.once("close", () => clearInterval(timer));
    },
  };
}

/** Writes up to `bytes` bytes. */
export function flood(head: string, bytes: number): Reply {
  const piece = Buffer.alloc(64 * 1024, 0x20);
  return {
    raw({ socket }) {
      if (!socket) return;
      let left = bytes;
      socket.write(head);
      const more = () => {
        while (left > 0 && socket.writable) {
          left -= piece.length;
          if (!socket.write(piece)) return;
        }
        if (left <= 0) socket.end();
      };
      socket.on("drain", more);
      more();
    },
  };
}
