import { AgentAuthError, isAgentAuthError } from "../errors.js";
import { shownUrl } from "../http/address.js";
import { type AddressPolicy, checkAddress, classifyHost, policyFor } from "../http/address-class.js";
import { type BufferedResponse, requireUncompressed, saysJson, strictObject } from "../http/buffered-response.js";
import { type Clock, systemClock } from "../http/deadline.js";
import { networkError } from "../http/network-error.js";
import { formEncoded, serverMetadataAddresses } from "../http/oauth-syntax.js";
import { refusalError } from "../http/refuse.js";
import { SingleFlight } from "../http/single-flight.js";
import { createTransport } from "../http/transport.js";
import { userAgent } from "../http/version.js";
import { quote, Secret } from "../redact.js";
import type { IntrospectionOptions, ResourceServerOptions } from "./options.js";

/** How a {@link RefreshingCache} value is read, and for how long it is valid. */
export interface RefreshingCacheOptions<T> {
  read: (signal: AbortSignal) => Promise<T>;
  /** Milliseconds. */
  ttl: number;
  /** Milliseconds for which a value is used beyond `ttl` while it cannot be read again. Default 0. */
  staleMs?: number;
  clock: Pick<Clock, "now">;
}

/** For this long after a failure, requests get its error without another attempt. */
const FAILURE_MS = 5000;
const REFRESH_INTERVAL_MS = 60_000;

/** A remote value with a time to live: concurrent reads are shared, and it is refreshed before it expires. */
export class RefreshingCache<T> {
  readonly #options: RefreshingCacheOptions<T>;
  readonly #flights = new SingleFlight<T>();
  #value: { value: T; readAt: number } | undefined;
  #failure: { error: AgentAuthError; at: number } | undefined;

  constructor(options: RefreshingCacheOptions<T>) {
    this.#options = options;
  }

  /** The cached value, however old; undefined before the first read. */
  get current(): T | undefined {
    return this.#value?.value;
  }

  /** When the cached value was read, on the clock's `now()`; undefined before the first read. */
  get readAt(): number | undefined {
    return this.#value?.readAt;
  }

  /** Seconds until {@link refresh} reads again, at least one. */
  get cooldown(): number {
    return Math.max(1, Math.ceil((this.#lastAt + REFRESH_INTERVAL_MS - this.#options.clock.now()) / 1000));
  }

  /** The cached value while it is valid, else a new one. @throws the error of reading it, which is cached for five seconds */
  async get(signal: AbortSignal | undefined): Promise<T> {
    const { ttl, staleMs = 0, clock } = this.#options;
    const now = clock.now();
    const cached = this.#value;
    if (cached && now - cached.readAt < ttl) {
      // Refreshed in the background in the second half of its life, so that no request waits, and a short failure has no effect.
      if (now - cached.readAt > ttl / 2 && this.#mayReadAgain(now)) void this.#read(undefined).catch(() => undefined);
      return cached.value;
    }
    const stale = cached && now - cached.readAt < ttl + staleMs ? cached : undefined;
    if (this.#failure && now - this.#failure.at < FAILURE_MS) {
      if (stale) return stale.value;
      throw this.#failure.error;
    }
    if (!stale) return this.#read(signal);
    // Only a failure of the issuer: who aborted gets no value.
    return this.#read(signal).catch((error: unknown) => {
      if (this.#failure?.error !== error) throw error;
      return stale.value;
    });
  }

  /**
   * Reads the value again, once a minute at most: in between, returns the cached one.
   *
   * @throws the error of reading it, for a minute
   */
  async refresh(signal: AbortSignal | undefined): Promise<T> {
    const now = this.#options.clock.now();
    if (this.#value === undefined || this.#mayReadAgain(now)) return this.#read(signal);
    if (this.#failure) throw this.#failure.error;
    return this.#value.value;
  }

  #mayReadAgain(now: number): boolean {
    return now - this.#lastAt >= REFRESH_INTERVAL_MS;
  }

  get #lastAt(): number {
    return Math.max(this.#value?.readAt ?? -Infinity, this.#failure?.at ?? -Infinity);
  }

  #read(signal: AbortSignal | undefined): Promise<T> {
    return this.#flights.run("read", (own) => this.#readOnce(own), signal);
  }

  async #readOnce(signal: AbortSignal): Promise<T> {
    const { read, clock } = this.#options;
    try {
      const value = await read(signal);
      this.#value = { value, readAt: clock.now() };
      this.#failure = undefined;
      return value;
    } catch (error) {
      if (isAgentAuthError(error) && error.class !== "aborted") this.#failure = { error, at: clock.now() };
      throw error;
    }
  }
}

/** The requests of a resource server to an issuer. Their errors mean that a token cannot be verified, not that it is invalid. */
export interface Issuer {
  /** Its identifier, as in `iss`. */
  readonly issuer: string;
  /** Reads its key set (RFC 7517 section 5). */
  keys(signal: AbortSignal): Promise<Record<string, unknown>>;
  /** Introspects a token (RFC 7662 section 2.2). */
  introspect(token: string, signal: AbortSignal): Promise<Record<string, unknown>>;
}

const MAX_BYTES = 256 * 1024;
const ATTEMPTS = 2;

/** An issuer over HTTP: every address is from the options or its metadata, and checked before anything is sent to it. */
export function httpIssuer(issuer: string, options: ResourceServerOptions, keyTtlSeconds: number): Issuer {
  const connection = connectIssuer(issuer, options);
  const headers = { "user-agent": userAgent(options.userAgent), "accept-encoding": "identity", accept: JSON_TYPE };
  const read = async (url: string, signal: AbortSignal) =>
    requireUncompressed(await connection.send(new Request(url, { headers }), signal));
  const metadata = new RefreshingCache({
    read: (signal) => findMetadata(issuer, (url) => read(url, signal)),
    ttl: keyTtlSeconds * 1000,
    clock: options.clock ?? systemClock,
  });
  const endpoint = async (field: string, signal: AbortSignal): Promise<string> => {
    const { document, url } = await metadata.get(signal);
    return checkAddress(document[field], field, url, { bounds: await connection.bounds() });
  };
  const { jwksUris, introspection } = options;
  return {
    issuer,
    async keys(signal) {
      const url = jwksUris?.[issuer] ?? (await endpoint("jwks_uri", signal));
      return strictObject(requireOk(await read(url, signal)));
    },
    async introspect(token, signal) {
      const form = new URLSearchParams({ token, token_type_hint: "access_token" });
      const requestHeaders = new Headers(headers);
      await authenticate(introspection, { headers: requestHeaders, form });
      requestHeaders.set("content-type", "application/x-www-form-urlencoded");
      const url = introspection?.endpoint ?? (await endpoint("introspection_endpoint", signal));
      const request = new Request(url, { method: "POST", headers: requestHeaders, body: form.toString() });
      return strictObject(requireOk(requireUncompressed(await connection.send(request, signal))));
    },
  };
}

const JSON_TYPE = "application/json";

function connectIssuer(issuer: string, options: ResourceServerOptions) {
  const { network, fetch, timeoutMs: timeout = 5000, clock, random, policy } = options;
  const url = new URL(issuer);
  const exemptions = policy?.allowPrivateNetwork ? "all" : new Set<string>();
  const literal = classifyHost(url.hostname);
  const networkConnection = network?.connectTo(url, exemptions);
  const deadlineMs = ATTEMPTS * timeout;
  const base = { fetch: networkConnection?.fetch ?? fetch, timeoutMs: timeout, deadlineMs, clock, random };
  return {
    send: createTransport({ ...base, maxRetries: ATTEMPTS - 1, maxBodyBytes: MAX_BYTES }),
    async bounds(): Promise<AddressPolicy> {
      if (literal !== undefined) return policyFor(literal, exemptions);
      const resolved = networkConnection?.addressClass().catch((error: unknown) => {
        throw networkError(error, issuer);
      });
      return policyFor(await resolved, exemptions);
    },
  };
}

/** The first document that names exactly this issuer. Any other, or none, leads to the next address. */
async function findMetadata(issuer: string, read: (url: string) => Promise<BufferedResponse>) {
  let first: AgentAuthError | undefined;
  for (const url of serverMetadataAddresses(issuer).flat()) {
    try {
      const reply = await read(url);
      // A missing document, or an HTML page: the document is at another address.
      if (!reply.response.ok && reply.status < 500 && reply.status !== 429) continue;
      if (reply.response.ok && !saysJson(reply.response.headers)) continue;
      const document = strictObject(requireOk(reply));
      if (document["issuer"] === issuer) return { document, url };
      const rule = `must be exactly ${quote(issuer)} (RFC 8414 section 3.3)`;
      throw refusalError("issuer_mismatch", { field: "issuer", value: document["issuer"], from: url, rule });
    } catch (error) {
      if (!isAgentAuthError(error)) throw error;
      // All addresses are on one host: one that does not respond is not asked four times.
      if (error.class === "unavailable" && error.status === undefined) throw error;
      first ??= error;
    }
  }
  const message = `the authorization server ${quote(issuer)} publishes no metadata (RFC 8414)`;
  throw first ?? new AgentAuthError("no_server_metadata", message, { class: "refused" });
}

function requireOk(reply: BufferedResponse): BufferedResponse {
  if (reply.response.ok) return reply;
  const url = shownUrl(reply.url);
  const code = reply.status >= 500 ? "server_error" : reply.status === 429 ? "rate_limited" : "http_error";
  throw new AgentAuthError(code, `${url}: HTTP ${reply.status}`, { class: "unavailable", status: reply.status, url });
}

async function authenticate(
  options: IntrospectionOptions | undefined,
  request: { headers: Headers; form: URLSearchParams },
): Promise<void> {
  const { clientId = "", clientSecret = "", authenticate: customAuthenticate } = options ?? {};
  if (customAuthenticate) {
    try {
      return await customAuthenticate(request);
    } catch {
      const message = "introspection.authenticate failed, so that the issuer could not be asked";
      throw new AgentAuthError("network_failed", message, { class: "unavailable" });
    }
  }
  const secret = clientSecret instanceof Secret ? clientSecret.reveal() : clientSecret;
  // Both parts form-encoded before they are joined (RFC 6749 section 2.3.1).
  const pair = `${formEncoded(clientId)}:${formEncoded(secret)}`;
  request.headers.set("authorization", `Basic ${btoa(pair)}`);
}
