import { createHash, timingSafeEqual } from "node:crypto";
import type { IncomingMessage, ServerResponse } from "node:http";
import { isIP } from "node:net";
import type { ServiceErrorCode } from "../../error-codes.js";
import { orUndefined } from "../../errors.js";
import { withoutBrackets } from "../../http/address.js";
import { MASK, Redactor } from "../../redact.js";

/** Whether only this machine can reach a host to bind to. */
export function isLoopback(host: string): boolean {
  return host === "localhost" || host === "::1" || (isIP(host) === 4 && host.startsWith("127."));
}

/** Rejects requests of web pages, except those of the origin `page`. @throws Refusal */
export type HostGuard = (request: IncomingMessage, page?: string) => void;

interface GuardedHost {
  host: string;
  port: number;
  publicUrl: string | undefined;
}

/**
 * Returns the check that rejects requests of web pages: any page can make a browser send requests to loopback,
 * and with DNS rebinding read the responses too, but it can neither choose the Host header nor hide its Origin.
 *
 * Bound to more than loopback, any numeric address is an allowed host: rebinding needs a name. A proxy passes on the host of
 * the public address with its port or without, or the one that it connects to.
 */
export function hostGuard({ host, port, publicUrl }: GuardedHost): HostGuard {
  const published = publicUrl === undefined ? undefined : new URL(publicUrl);
  const names = new Set(["localhost", isIP(host) === 6 ? `[${host}]` : host]);
  const suffix = port === 80 ? "" : `:${port}`;
  const isAllowed = (authority: string) => {
    const lower = authority.toLowerCase();
    const name = lower.endsWith(`:${port}`) ? lower.slice(0, -`:${port}`.length) : suffix === "" ? lower : undefined;
    if (name === undefined) return false;
    return names.has(name) || (!isLoopback(host) && isIP(withoutBrackets(name)) !== 0);
  };
  return (request, page) => {
    const hosts = request.headersDistinct["host"] ?? [];
    const isPublic = [published?.host, published?.hostname].includes(hosts[0]?.toLowerCase() ?? "");
    if (hosts.length !== 1 || !(isPublic || isAllowed(hosts[0] ?? "")))
      throw new Refusal(403, "not_permitted", "the Host header does not name this sandbox");
    for (const origin of request.headersDistinct["origin"] ?? []) {
      if (
        origin !== page &&
        origin !== publicUrl &&
        !(origin.startsWith("http://") && isAllowed(origin.slice("http://".length)))
      )
        throw new Refusal(403, "not_permitted", "requests from other origins are refused");
    }
  };
}

const CHALLENGE = { "www-authenticate": 'Bearer realm="sandbox"' } as const;

/** Returns the check of the bearer token. */
export function tokenGuard(token: string): (request: IncomingMessage) => void {
  const expected = sha256(token);
  return (request) => {
    const values = request.headersDistinct["authorization"] ?? [];
    const [, sent] = /^bearer +(\S+) *$/i.exec(values[0] ?? "") ?? [];
    if (values.length !== 1 || sent === undefined)
      throw new Refusal(401, "not_authenticated", "send one header Authorization: Bearer <API token>", CHALLENGE);
    if (!timingSafeEqual(sha256(sent), expected))
      throw new Refusal(401, "bad_authtoken", "the token is not valid for this sandbox", CHALLENGE);
  };
}

/**
 * The refusal of a request with more than one authentication method (RFC 6749, section 2.3). Beside HTTP Basic, `client_id` in
 * the form counts as another one, as at Cloudflare's provider.
 */
export function doubleAuthentication(form: URLSearchParams, authorization = ""): SandboxResponse | undefined {
  const isBasic = /^basic /i.test(authorization);
  const inForm = ["client_secret", "client_assertion"].filter((name) => form.has(name)).length;
  if (isBasic ? inForm === 0 && !form.has("client_id") : inForm < 2) return undefined;
  const error_description = "the client must use one authentication method in a request";
  return jsonResponse({ error: "invalid_request", error_description }, 400);
}

function sha256(token: string): Buffer {
  return createHash("sha256").update(token).digest();
}

/** The response headers that an MCP client reads, beside those that every page may read. */
const EXPOSED = "WWW-Authenticate, Mcp-Session-Id, DPoP-Nonce, Retry-After";
const MAX_AGE_SECONDS = "600";

/** The origin of a request, if pages of that origin may use the sandbox. */
export function allowedOrigin(request: IncomingMessage, allowed: readonly string[]): string | undefined {
  const [origin = "", ...more] = request.headersDistinct["origin"] ?? [];
  return more.length === 0 && allowed.includes(origin) ? origin : undefined;
}

/**
 * Lets a page of an origin read the response. Returns the response to the question of its browser whether the page may send a
 * request; undefined for any other request.
 */
export function admitPage(
  origin: string,
  { method, headers }: IncomingMessage,
  response: ServerResponse,
): SandboxResponse | undefined {
  response.setHeader("access-control-allow-origin", origin);
  response.setHeader("access-control-expose-headers", EXPOSED);
  response.setHeader("vary", "Origin");
  if (method !== "OPTIONS" || headers["access-control-request-method"] === undefined) return undefined;
  const requested = headers["access-control-request-headers"];
  return {
    status: 200,
    headers: {
      "access-control-allow-methods": "GET, POST, DELETE",
      ...(requested !== undefined && { "access-control-allow-headers": requested }),
      "access-control-max-age": MAX_AGE_SECONDS,
    },
    body: "",
  };
}

/** Reads the body of a request. @throws Refusal 413 where it is longer than `max` bytes */
export async function readBody(request: IncomingMessage, max: number): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let length = 0;
  // Leaving the loop must not destroy the connection: the refusal is still to be sent on it.
  for await (const chunk of request.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
    length += chunk.length;
    if (length > max)
      throw new Refusal(413, "bad_request", `the body must have at most ${max} bytes`, { connection: "close" });
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

/** Parsed JSON; undefined for any other text. */
export function parseJson(text: string): unknown {
  return orUndefined(() => JSON.parse(text));
}

export function readForm(body: Buffer | undefined): URLSearchParams {
  return new URLSearchParams(body?.toString("utf8"));
}

export interface SandboxResponse {
  status: number;
  headers: Readonly<Record<string, string | readonly string[]>>;
  body: string | Buffer;
}

/** An error answer of the service. */
export interface ErrorEnvelope {
  status: "error";
  code: string;
  message: string;
}

const JSON_HEADERS = { "content-type": "application/json", "cache-control": "no-store" } as const;

export function jsonResponse(body: unknown, status = 200): SandboxResponse {
  return { status, headers: JSON_HEADERS, body: JSON.stringify(body) };
}

export function errorResponse(
  status: number,
  code: ServiceErrorCode,
  message: string,
  headers: Readonly<Record<string, string>> = {},
): SandboxResponse {
  const body: ErrorEnvelope = { status: "error", code, message };
  return { ...jsonResponse(body, status), headers: { ...JSON_HEADERS, ...headers } };
}

/** Rejects a request: the router sends its `answer`. */
export class Refusal extends Error {
  readonly response: SandboxResponse;

  constructor(status: number, code: ServiceErrorCode, message: string, headers?: Readonly<Record<string, string>>) {
    super(message);
    this.response = errorResponse(status, code, message, headers);
  }
}

/** The methods of a path that can only be read. */
export const READ_METHODS: readonly string[] = ["GET", "HEAD"];

/** Checks the method of a request. @throws Refusal 405 that names the methods of the path */
export function requireMethod(method: string, allowed: readonly string[]): void {
  if (allowed.includes(method)) return;
  const allow = allowed.join(", ");
  throw new Refusal(405, "invalid_action", `this path takes ${allow}`, { allow });
}

/** A request that the sandbox received. The log stores no headers and bodies, and so no credentials. */
export interface LoggedRequest {
  /** The HTTP method. */
  method: string;
  /** The path, without the query. */
  path: string;
  /** The query, decoded; values of parameters that are secret are masked. */
  query: Record<string, string>;
  /** Milliseconds by the sandbox's clock. */
  at: number;
  /** The HTTP status of the response; 0 before it is sent, and where the connection was reset instead. */
  status: number;
  /** The grant type of a token request, or the method of an MCP request. */
  operation?: string;
  /** The kinds of the faults that struck it, joined by commas. */
  fault?: string;
}

/** The last {@link MAX_LOGGED} requests, oldest first. */
export interface RequestLog extends ReadonlyArray<LoggedRequest> {
  /** How many requests there were, including those that the log has dropped. */
  readonly total: number;
}

/** How many requests the log holds. */
export const MAX_LOGGED = 10_000;

export function createRequestLog(): { log: RequestLog; add: (entry: LoggedRequest) => void } {
  const entries: LoggedRequest[] = [];
  let total = 0;
  const log = Object.defineProperty(entries, "total", { get: () => total }) as LoggedRequest[] & { total: number };
  const add = (entry: LoggedRequest) => {
    total += 1;
    entries.push(entry);
    if (entries.length > MAX_LOGGED) entries.shift();
  };
  return { log, add };
}

const redactor = new Redactor();

export function loggedQuery(query: URLSearchParams): Record<string, string> {
  // The redactor recognises secret parameters by their encoded form, name=value.
  const masked = redactor.redact(query.toString()).replace(/(^|&)(user_code=)[^&]+/g, `$1$2${MASK}`);
  return Object.fromEntries(new URLSearchParams(masked));
}
