import { AgentAuthError, isAgentAuthError, withHint } from "../../errors.js";
import {
  type AddressPolicy,
  classifyHost,
  type Exemptions,
  type Network,
  policyFor,
} from "../../http/address-class.js";
import { type BufferedResponse, type HttpEvent, requireUncompressed } from "../../http/buffered-response.js";
import { type Clock, systemClock } from "../../http/deadline.js";
import { HttpHeaders, HttpRequest, toNativeFetch } from "../../http/http-message.js";
import { Lru } from "../../http/lru.js";
import { maskError, networkError } from "../../http/network-error.js";
import { createTransport, type Transport, type TransportOptions } from "../../http/transport.js";
import { userAgent } from "../../http/version.js";
import { quote } from "../../redact.js";
import type { Grant, GrantEndpoints } from "../model/grant.js";
import { asUnavailable, normalizeResponse, secretsIn } from "./normalize-response.js";

/** A step of the flow, as `discover` reports it. */
export type Step =
  | "challenge"
  | "resource metadata"
  | "server metadata"
  | "registration"
  | "authorization"
  | "token"
  | "introspection"
  | "revocation"
  | "end session";

/** One request of the flow, its response, and whether that was used. */
export interface TraceEntry {
  /** What the request was for. */
  step: Step;
  /** The HTTP method. */
  method: string;
  /** The address of the request. */
  url: string;
  /** The HTTP status; undefined if there was no response. */
  status?: number | undefined;
  /** Whether the response was used. */
  used: boolean;
  /** The reason. */
  why: string;
}

/** Progress beyond single requests, as text for the user. */
export interface Progress {
  /** The operation. */
  subject: "refresh" | "login";
  /** The text for the user. */
  text: string;
}

/** HTTP clients for one MCP server and its issuer, with the address policy. */
export interface ServerConnection {
  readonly http: OAuthHttp;
  readonly fetch: typeof globalThis.fetch;
  /** The `User-Agent` of requests to the server that have none. */
  readonly userAgent: string;
  /**
   * The policy for addresses that the server names.
   *
   * @throws `AgentAuthError` `dns_failed` if the server's name does not resolve
   */
  addressPolicy(): Promise<AddressPolicy>;
}

/** The fields of a stored login that requests to its issuer need. */
export interface Remembered
  extends Pick<
    Grant,
    | ("issuer" | "namedIssuer" | "overrides" | "acceptedTokenType" | "resource")
    | ("authorizationParams" | "needsConsent")
  > {
  readonly endpoints: Partial<GrantEndpoints>;
}

export interface ConnectionOptions extends OAuthHttpOptions {
  network?: Network | undefined;
  policy?: { allowPrivateNetwork?: boolean | undefined } | undefined;
}

/** The connections of one client. Only servers of the same origin share a connection and its cached documents. */
export class ConnectionPool {
  readonly #options: ConnectionOptions;
  readonly #connections = new Map<string, ServerConnection>();
  readonly #http: OAuthHttp;
  /** The server of the latest call without overrides: most clients have one, whose address is read once. */
  #latest: { server: string; connection: ServerConnection } | undefined;

  constructor(options: ConnectionOptions) {
    this.#options = options;
    this.#http = new OAuthHttp(options);
  }

  /**
   * The connection for a server.
   *
   * @param grant an earlier login there: its overrides remain in force for its issuer
   * @throws `AgentAuthError` `bad_address` for a server at a forbidden address
   */
  get(server: string, grant?: Remembered): ServerConnection {
    if (grant !== undefined && grant.overrides.length > 0) return this.#find(server, grant);
    if (this.#latest?.server !== server) this.#latest = { server, connection: this.#find(server) };
    return this.#latest.connection;
  }

  #find(server: string, grant?: Remembered): ServerConnection {
    const url = new URL(server);
    if (classifyHost(url.hostname) === "forbidden") throw forbiddenAddressError(server);
    const exemptions = this.#options.policy?.allowPrivateNetwork ? "all" : listExemptHosts(grant);
    const name = JSON.stringify([url.origin, exemptions === "all" ? exemptions : [...exemptions].sort()]);
    const known = this.#connections.get(name);
    if (known) return known;
    const connection = this.#connect(url, exemptions);
    this.#connections.set(name, connection);
    return connection;
  }

  #connect(server: URL, exemptions: Exemptions): ServerConnection {
    const { network, fetch } = this.#options;
    const agent = { userAgent: userAgent(this.#options.userAgent) };
    const literal = classifyHost(server.hostname);
    if (!network) {
      const bounds = policyFor(literal, exemptions);
      const send = toNativeFetch(fetch, true);
      return { ...agent, http: this.#http, fetch: send, addressPolicy: async () => bounds };
    }
    const connection = network.connectTo(server, exemptions);
    const rethrow = (error: unknown): never => {
      throw networkError(error, server.href);
    };
    return {
      ...agent,
      http: new OAuthHttp({ ...this.#options, fetch: connection.fetch }),
      fetch: toNativeFetch(connection.fetch, true),
      addressPolicy: async () => policyFor(literal ?? (await connection.addressClass().catch(rethrow)), exemptions),
    };
  }
}

/** The hosts of an issuer for which the user allowed private addresses. */
function listExemptHosts(grant: Remembered | undefined): ReadonlySet<string> {
  if (!grant?.overrides.includes("allowPrivateNetwork")) return new Set();
  const addresses = [grant.issuer, grant.namedIssuer, ...Object.values(grant.endpoints)];
  return new Set(addresses.flatMap((address) => (address === undefined ? [] : new URL(address).hostname)));
}

function forbiddenAddressError(server: string): AgentAuthError {
  const message = `the MCP server's address ${quote(server)} is link-local, of a metadata service or reserved: nothing is ever sent there`;
  return new AgentAuthError("bad_address", message, { class: "refused" });
}

/** Options for the HTTP requests of the flow. */
export interface OAuthHttpOptions extends Pick<TransportOptions, "fetch" | "clock" | "random" | "onEvent" | "logger"> {
  /**
   * Milliseconds for each request. Default 15,000. Each discovery document is limited to 15 s in total, discovery to 30
   * s.
   */
  timeoutMs?: number | undefined;
  /** Retries of repeatable requests (metadata), the first attempt not included; 0 for none. Default 2. */
  maxRetries?: number | undefined;
  /** Program name for `User-Agent`. */
  userAgent?: string | undefined;
}

const METADATA_BYTES = 256 * 1024;
/**
 * Total for one document with its attempts, redirects and waits: a slow body would otherwise use the full time of every
 * attempt.
 */
const DOCUMENT_DEADLINE_MS = 15_000;
const TOKEN_BYTES = 1024 * 1024;
const MAX_LIFE_S = 24 * 60 * 60;
const MAX_DOCUMENTS = 100;

/** The HTTP requests of the flow, with size limits, deadlines and strict parsing. */
export class OAuthHttp {
  readonly #metadata: Transport;
  readonly #once: Transport;
  readonly #probe: Transport;
  readonly #headers: Record<string, string>;

  /** Each for as long as its headers allow (RFC 9111), in Unix milliseconds. */
  readonly #documents = new Lru<{ reply: BufferedResponse; until: number }>(MAX_DOCUMENTS);
  readonly #clock: Pick<Clock, "epoch">;

  constructor(options: OAuthHttpOptions) {
    this.#clock = options.clock ?? systemClock;
    const { timeoutMs: timeout = 15_000, maxRetries } = options;
    const base = { ...options, timeoutMs: timeout, onEvent: withoutQueries(options.onEvent) };
    const deadlineMs = DOCUMENT_DEADLINE_MS;
    this.#metadata = createTransport({ ...base, deadlineMs, maxRetries, maxBodyBytes: METADATA_BYTES });
    this.#once = createTransport({ ...base, maxRetries: 0, maxBodyBytes: TOKEN_BYTES });
    this.#probe = createTransport({ ...base, maxRetries: 0, maxBodyBytes: TOKEN_BYTES, redirects: "manual" });
    // Documents of this size need no compression, and without it no decompression bomb is possible.
    this.#headers = { "user-agent": userAgent(options.userAgent), "accept-encoding": "identity" };
  }

  /** Reads a metadata document, from the cache if it is fresh; retries temporary failures, for 15 s in total. */
  async document(url: string, signal: AbortSignal | undefined): Promise<BufferedResponse> {
    const cached = this.#documents.get(url);
    if (cached && this.#clock.epoch() < cached.until) return cached.reply;
    const headers = { ...this.#headers, accept: "application/json" };
    const read = (more: Record<string, string>) =>
      this.#metadata(new HttpRequest(url, { headers: { ...headers, ...more } }), signal);
    const first = await read({ "mcp-protocol-version": "2025-11-25" }).catch(rethrowRedirect);
    // A server that refuses the revision serves the same document without one.
    const reply = requireUncompressed(first.response.status === 400 ? await read({}).catch(rethrowRedirect) : first);
    const life = reply.response.ok ? computeFreshSeconds(reply.response.headers) : 0;
    if (life > 0) this.#documents.set(url, { reply, until: this.#clock.epoch() + life * 1000 });
    else this.#documents.delete(url);
    return reply;
  }

  /** Clears the document cache: after a rejected token or a failed login the metadata may have changed. */
  forgetDocuments(): void {
    this.#documents.clear();
  }

  probe(url: string, signal: AbortSignal | undefined): Promise<BufferedResponse> {
    return this.#probe(new HttpRequest(url, { headers: { ...this.#headers, accept: "text/html" } }), signal);
  }

  /**
   * The `fetch` for oauth4webapi: one request, never repeated, with its response strictly parsed and normalized (see
   * {@link normalizeResponse}).
   *
   * @param beforeSend called right before the request is sent; if it throws, nothing is sent
   * @param prover signs the DPoP proof, if the tokens are to be bound to a key (RFC 9449 section 5)
   */
  fetcher({ signal, beforeSend, prover }: FetcherOptions) {
    return async (url: string, init: FetcherInit): Promise<Response> => {
      const headers = new HttpHeaders(init.headers);
      for (const [name, value] of Object.entries(this.#headers)) headers.set(name, value);
      if (!headers.has("accept")) headers.set("accept", "application/json");
      const { method, body } = init;
      if (prover) headers.set("dpop", await prover.proof({ method, url }));
      const request = new HttpRequest(url, { method, headers, ...(body != null && { body: body as string }) });
      const sent = secretsIn(headers, body);
      const mask = (text: string) => sent.redactKnown(text);
      beforeSend?.();
      try {
        const reply = await this.#once(request, signal, { mask }).catch((error: unknown) => {
          // A truncated response is neither a success nor a rejection.
          throw isAgentAuthError(error, "bad_json") && error.retryable ? asUnavailable(error) : error;
        });
        prover?.nonces.learn(url, reply.response.headers);
        return normalizeResponse(requireUncompressed(reply), sent);
      } catch (error) {
        throw isAgentAuthError(error) ? maskError(error, mask) : error;
      }
    };
  }
}

/** Seconds that a response is fresh: `max-age` less `Age`; 0 without `max-age` (no heuristics). */
function computeFreshSeconds(headers: Headers): number {
  const directives = (headers.get("cache-control") ?? "").toLowerCase().split(",");
  const names = directives.map((directive) => directive.trim());
  if (names.some((name) => /^(?:no-store|no-cache)\b/.test(name))) return 0;
  const ages = names.flatMap((name) => /^max-age="?(\d{1,10})"?$/.exec(name)?.[1] ?? []);
  // If two values differ, the shorter one is safe.
  const maxAge = ages.length === 0 ? 0 : Math.min(...ages.map(Number));
  const age = Number(headers.get("age") ?? 0);
  return Math.min(MAX_LIFE_S, maxAge) - (Number.isFinite(age) && age > 0 ? age : 0);
}

/** Queries of the flow hold `id_token_hint` and `state`, which must not be traced. */
function withoutQueries(onEvent: OAuthHttpOptions["onEvent"]): OAuthHttpOptions["onEvent"] {
  return onEvent && ((event: HttpEvent) => onEvent(event.type === "request" ? { ...event, query: "" } : event));
}

/** Metadata of another host would speak for this one (RFC 9728 section 7.3): only the owner of this one can change that. */
function rethrowRedirect(error: unknown): never {
  if (!isAgentAuthError(error) || error.code !== "redirect_refused") throw error;
  throw withHint(error, "the server's owner must publish the metadata at this address itself, not on another host");
}

interface FetcherOptions {
  signal: AbortSignal | undefined;
  beforeSend?: (() => void) | undefined;
  prover?: Prover | undefined;
}

interface FetcherInit {
  method: string;
  headers: Record<string, string> | Headers;
  body?: unknown;
}

/** Whether an error means that the peer was unreachable or did not answer, rather than that it rejected the request. */
export function isUnavailable(error: unknown): error is AgentAuthError {
  return isAgentAuthError(error) && error.class === "unavailable";
}

/** The error for a response that is a failure of the server, not a decision about the request. */
export function serverFailure(url: string, status: number): AgentAuthError {
  const code = status === 429 ? "rate_limited" : "server_error";
  return new AgentAuthError(code, `${url}: HTTP ${status}`, { class: "unavailable", status, url });
}

/** A nonce by RFC 9449 section 8.1, limited in length so that servers accept the proof. */
const NONCE = /^[\x21\x23-\x5b\x5d-\x7e]{1,2048}$/;
const MAX_ORIGINS = 256;

/** The last nonce that each server sent for our proofs (RFC 9449 sections 8 and 9), for all requests of a client. */
export class Nonces {
  readonly #byOrigin = new Lru<string>(MAX_ORIGINS);

  get(url: string): string | undefined {
    return this.#byOrigin.get(new URL(url).origin);
  }

  /** Stores the nonce of a response, if it has one. */
  learn(url: string, headers: Headers): void {
    const nonce = headers.get("dpop-nonce");
    if (nonce !== null && NONCE.test(nonce)) this.#byOrigin.set(new URL(url).origin, nonce);
  }
}

/** Signs a proof for each request that we have the key that a token is bound to (RFC 9449 section 4). */
export interface Prover {
  /** The hash of the public key (RFC 7638), which identifies it at the issuer. */
  thumbprint(): Promise<string>;
  /** A proof for one request. Each is new: a server accepts none twice. */
  proof(request: { method: string; url: string }, accessToken?: string): Promise<string>;
  readonly nonces: Nonces;
}
