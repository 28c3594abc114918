import type { Channel } from "node:diagnostics_channel";
import type { ClientRequest, IncomingMessage } from "node:http";
import { isIP, type Socket } from "node:net";
import { pipeline, Readable, type Transform } from "node:stream";
import { isAgentAuthError } from "../../errors.js";
import { withoutBrackets } from "../address.js";
import { startDeadline } from "../deadline.js";
import { HttpHeaders, HttpResponse } from "../http-message.js";
import { userAgent } from "../version.js";
import type { ProxyOptions, SsrfGuard, TunnelArgs } from "./agents.js";
import {
  agentPool,
  explainProxyFailure,
  httpModule,
  idleMs,
  isBlockedPort,
  ProxyError,
  proxyChooser,
} from "./agents.js";

const WITHOUT_BODY = new Set([204, 205, 304]);

/** The response that a message of Node is. */
function buildResponse(message: IncomingMessage, { method, url, signal, redirected }: PlainRequest): HttpResponse {
  const { statusCode: status = 0, statusMessage: statusText = "", rawHeaders } = message;
  const headers = new HttpHeaders();
  for (let at = 0; at + 1 < rawHeaders.length; at += 2) headers.append(rawHeaders[at] ?? "", rawHeaders[at + 1] ?? "");
  const hasBody = method !== "HEAD" && !WITHOUT_BODY.has(status);
  if (!hasBody) message.resume();
  const body = hasBody ? decodeContent(message, headers.get("content-encoding") ?? "") : null;
  return new HttpResponse(body, { status, statusText, headers, url: url.split("#", 1)[0], redirected, signal });
}

const MAX_CODINGS = 5;

/**
 * The body without its content codings (RFC 9110 section 8.4), or as it came where one is unknown.
 *
 * @throws `Error` for more codings than a server can have a reason for
 */
export function decodeContent(body: Readable, contentEncoding: string): Readable {
  const codings = contentEncoding
    .toLowerCase()
    .split(",")
    .map((coding) => coding.trim())
    .filter((coding) => coding !== "" && coding !== "identity");
  if (codings.length === 0) return body;
  if (codings.length > MAX_CODINGS) throw new Error(`more than ${MAX_CODINGS} content codings`);
  const zlib = process.getBuiltinModule("node:zlib");
  const { BROTLI_OPERATION_FLUSH, Z_SYNC_FLUSH } = zlib.constants;
  // A response that lacks the end of its compressed data is read as far as it goes, as by browsers.
  const lenient = { flush: Z_SYNC_FLUSH, finishFlush: Z_SYNC_FLUSH };
  const flushing = { flush: BROTLI_OPERATION_FLUSH, finishFlush: BROTLI_OPERATION_FLUSH };
  const decoders = codings.reverse().map((coding): (() => Transform) | undefined => {
    if (coding === "gzip" || coding === "x-gzip") return () => zlib.createGunzip(lenient);
    if (coding === "deflate") return () => zlib.createInflate(lenient);
    return coding === "br" ? () => zlib.createBrotliDecompress(flushing) : undefined;
  });
  const known = decoders.flatMap((create) => create ?? []);
  if (known.length < decoders.length) return body;
  const stages = known.map((create) => create());
  // Errors reach the reader through the last stage.
  pipeline([body, ...stages], () => undefined);
  return stages.at(-1) ?? body;
}

/** A request in plain parts: it can be sent again as often as needed, unless its body is a stream. */
export interface PlainRequest {
  readonly method: string;
  readonly url: string;
  /** Names in small letters, each once. */
  readonly headers: Iterable<readonly [name: string, value: string]>;
  readonly body?: string | Uint8Array | AsyncIterable<Uint8Array> | undefined;
  readonly signal?: AbortSignal | undefined;
  /** Whether it is one that a redirect asked for. */
  readonly redirected?: boolean;
}

/**
 * Sends one request and returns the response, a redirect too.
 *
 * It throws the reason of the signal, an `AgentAuthError` of the address policy, or a `TypeError` with the system's error
 * as its cause, as `fetch` does.
 */
export type PlainSend = (request: PlainRequest) => Promise<HttpResponse>;

/** How connections are made. */
export interface ConnectOptions extends ProxyOptions {
  /** The authorities to trust in place of Node's own list, PEM. */
  ca?: readonly string[] | undefined;
  /** Sent to every server that requests a certificate in the TLS handshake, never to a proxy. */
  clientCertificate?: ClientCertificate | undefined;
  /** Milliseconds without a byte of a response after which the request fails; 0 for never. Default 300,000. */
  idleTimeoutMs?: number | undefined;
}

const CONNECT_MS = 10_000;
/** A connection that was idle for less is as good as a new one. */
const FRESH_MS = 1000;
const REPEATABLE = new Set(["GET", "HEAD", "OPTIONS", "PUT", "DELETE"]);
/** They would change how the message is framed, or what is spoken on the connection. */
const REFUSED_HEADERS = new Set(["transfer-encoding", "keep-alive", "upgrade", "expect", "trailer", "te"]);

/**
 * Sends over `node:http` and `node:https`: through the proxies, trusting the authorities, to what the guard allows. The
 * addresses that the guard has checked are the ones connected to. Node's `fetch` does the same for ten times the CPU at
 * its first request.
 *
 * Every request is published on the diagnostics channel `agentauth:request:create`, and right before its first byte is
 * written on `agentauth:request:write`; a socket that is destroyed there has sent nothing of it.
 */
export function createSend(options: ConnectOptions, guard: SsrfGuard | undefined): PlainSend {
  const { ca, clientCertificate, idleTimeoutMs: idleTimeout = 300_000 } = options;
  const trusted = ca && { ca: [...ca] };
  const agentFor = agentPool({
    guard,
    // Explicit here and for servers, so that NODE_TLS_REJECT_UNAUTHORIZED cannot switch it off.
    proxyTls: { ...trusted, rejectUnauthorized: true },
    serverTls: { ...trusted, ...clientCertificate },
  });
  const viaProxy = proxyChooser(options);
  return async (request) => {
    const { signal } = request;
    const url = checkedUrl(request.url);
    const proxy = viaProxy(url);
    // The proxy resolves the name: only a literal address can be checked here.
    if (proxy !== undefined) guard?.checkWritten(url.hostname);
    // A literal address is connected to without a lookup.
    else if (isIP(withoutBrackets(url.hostname)) > 0) await guard?.resolve(url.hostname);
    // After that wait: a signal that has fired calls no listener that is added later.
    if (signal?.aborted) throw signal.reason;
    try {
      const agent = agentFor(url.protocol, proxy);
      for (;;) {
        const response = await sendOnConnection({ request, url, agent, idleTimeout });
        if (response === "unsent") continue;
        guard?.onResponse(url.hostname);
        return response;
      }
    } catch (error) {
      if (signal?.aborted) throw signal.reason;
      if (isAgentAuthError(error)) throw error;
      const failed = error instanceof ProxyError && proxy ? explainProxyFailure(error, proxy, url) : undefined;
      throw failed ?? new TypeError("fetch failed", { cause: error instanceof ProxyError ? error.cause : error });
    }
  };
}

function checkedUrl(address: string): URL {
  const url = new URL(address);
  if (url.protocol !== "http:" && url.protocol !== "https:") throw fetchError(new Error("unknown scheme"));
  if (isBlockedPort(url)) throw fetchError(new Error("bad port"));
  if (url.username !== "" || url.password !== "")
    throw new TypeError("an address with credentials cannot be requested");
  return url;
}

function fetchError(cause: Error): TypeError {
  return new TypeError("fetch failed", { cause });
}

interface ConnectionRequest {
  request: PlainRequest;
  url: URL;
  agent: TunnelArgs["agent"];
  idleTimeout: number;
}

/**
 * Sends a request and waits for the head of its response.
 *
 * @returns `unsent` if the server had closed the idle connection that was to be used: nothing was written to it
 */
function sendOnConnection({ request, url, agent, idleTimeout }: ConnectionRequest): Promise<HttpResponse | "unsent"> {
  const { method, body, signal } = request;
  const isTls = url.protocol === "https:";
  const tunnel = new AbortController();
  const args: TunnelArgs = {
    method,
    agent,
    host: withoutBrackets(url.hostname),
    port: url.port || (isTls ? 443 : 80),
    path: `${url.pathname}${url.search}`,
    headers: buildHeaders(request, url),
    timeout: idleTimeout,
    insecureHTTPParser: false,
    until: tunnel.signal,
  };
  return new Promise((resolve, reject) => {
    const sent = httpModule(isTls).request(args);
    // Node drops what is beyond 2,000 headers; their size is limited anyway.
    sent.maxHeadersCount = 0;
    let message: IncomingMessage | undefined;
    let isWritten = false;
    const fail = (error: Error) => {
      tunnel.abort(error);
      message?.destroy(error);
      sent.destroy(error);
      reject(error);
    };
    const onLate = () => fail(timedOut("no connection in time"));
    const connecting = sent.reusedSocket ? undefined : startDeadline(CONNECT_MS, onLate);
    const onAbort = () => fail(asError(signal?.reason));
    signal?.addEventListener("abort", onAbort, { once: true });
    sent.once("close", () => {
      connecting?.clear();
      signal?.removeEventListener("abort", onAbort);
      if (message) return;
      if (sent.reusedSocket && !isWritten) resolve("unsent");
      reject(Object.assign(new Error("socket hang up"), { code: "ECONNRESET" }));
    });
    // Bytes that follow a whole response end the connection; they are no part of it.
    sent.on("error", (error) => {
      if (sent.reusedSocket && !isWritten) resolve("unsent");
      else if (!message?.complete) fail(error);
    });
    // A reader that is slower than the server is no reason to end the request.
    sent.on("timeout", () => message?.readableLength || fail(timedOut("no data in time")));
    sent.once("upgrade", (_message, socket) => {
      socket.destroy();
      fail(Object.assign(new Error("bad upgrade"), { code: "ECONNRESET" }));
    });
    sent.once("response", (received) => {
      message = received;
      try {
        resolve(buildResponse(received, request));
      } catch (error) {
        fail(asError(error));
      }
    });
    const published = { request: sent, method, url: url.href };
    publish("agentauth:request:create", published);
    whenConnected(sent, { agent, isTls }, (socket) => {
      if (sent.reusedSocket && (socket.destroyed || socket.readableEnded || isTooOld(socket, method)))
        return void sent.destroy();
      connecting?.clear();
      isWritten = true;
      publish("agentauth:request:write", { ...published, socket });
      if (!socket.destroyed) write(sent, body, fail);
    });
  });
}

/**
 * Whether a request that cannot be repeated (RFC 9110 section 9.2.2) might meet a server that is about to close the idle
 * connection: a busy one may do so before it reads what has arrived, and a code or a refresh token would be lost.
 */
function isTooOld(socket: Socket, method: string): boolean {
  return !REPEATABLE.has(method) && idleMs(socket) > FRESH_MS;
}

function write(sent: ClientRequest, body: PlainRequest["body"], fail: (error: Error) => void): void {
  if (body === undefined || typeof body === "string" || body instanceof Uint8Array) {
    sent.end(body);
    return;
  }
  Readable.from(body, { objectMode: false }).on("error", fail).pipe(sent);
}

function whenConnected(
  sent: ClientRequest & { agent?: unknown },
  { agent, isTls }: { agent: TunnelArgs["agent"]; isTls: boolean },
  go: (socket: Socket) => void,
): void {
  sent.once("socket", (socket) => {
    // One that replaces the agent, to answer requests in tests, reads a request before its socket connects.
    if (sent.agent !== agent) return go(socket);
    // What a server that restarted has done to an idle connection is seen within two turns of the event loop.
    if (sent.reusedSocket) setImmediate(() => setImmediate(go, socket));
    else if (!isTls && !socket.connecting) go(socket);
    else socket.once(isTls ? "secureConnect" : "connect", () => go(socket));
  });
}

function buildHeaders({ headers, body, method }: PlainRequest, { host }: URL): Record<string, string | string[]> {
  const all: Record<string, string | string[]> = { host };
  for (const [name, value] of headers) {
    if (REFUSED_HEADERS.has(name) || (name === "connection" && !/^(?:keep-alive|close)$/i.test(value)))
      throw new TypeError(`the header ${name} cannot be set`);
    // The host is that of the address, and the length that of the body, whatever the caller says.
    if (name !== "content-length" && name !== "host") all[name] = value;
  }
  all["accept"] ??= "*/*";
  // Firewalls in front of servers answer 403 without it.
  all["user-agent"] ??= userAgent();
  all["accept-encoding"] ??= "br, gzip";
  if (typeof body === "string" || body instanceof Uint8Array) all["content-length"] = String(Buffer.byteLength(body));
  else if (body === undefined && method !== "GET" && method !== "HEAD") all["content-length"] = "0";
  return all;
}

function timedOut(message: string): Error {
  return Object.assign(new Error(message), { code: "ETIMEDOUT" });
}

function asError(reason: unknown): Error {
  return reason instanceof Error ? reason : new Error("aborted", { cause: reason });
}

/**
 * Publishes a message on a channel of `node:diagnostics_channel`, and keeps the channel: Node 20 collects one without
 * subscribers, and what cleans up after it removes a later channel of the same name together with its subscribers.
 */
export function publish(name: string, message: object): void {
  let channel = channels.get(name);
  if (channel === undefined) {
    channel = process.getBuiltinModule("node:diagnostics_channel").channel(name);
    channels.set(name, channel);
  }
  channel.publish(message);
}

const channels = new Map<string, Channel>();

/** The client certificate for servers that request one in the TLS handshake, PEM. */
export interface ClientCertificate {
  /** The certificate, with those between it and its authority where there are any. */
  cert: string;
  /** Its private key, not encrypted. */
  key: string;
}
