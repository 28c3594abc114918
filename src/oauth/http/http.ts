import { AgentAuthError, isAgentAuthError } from "../../errors.js";
import type { BufferedResponse, HttpEvent } from "../../http/buffered-response.js";
import { type Clock, systemClock } from "../../http/deadline.js";
import { maskError } from "../../http/mask-error.js";
import { refused } from "../../http/refuse.js";
import { strictObject, uncompressed } from "../../http/strict-object.js";
import { createTransport, type Transport, type TransportOptions } from "../../http/transport.js";
import { userAgent } from "../../http/user-agent.js";
import { Redactor } from "../../redact.js";
import { DocumentCache } from "../discovery/document-cache.js";
import type { Prover } from "../dpop/dpop.js";

/** How requests of the flow leave. */
export interface OAuthHttpOptions extends Pick<TransportOptions, "fetch" | "clock" | "random" | "onEvent"> {
  /** Milliseconds for each request. Default 15,000. A discovery document ends within 15 s in all, discovery within 30 s. */
  timeoutMs?: number | undefined;
  /** Attempts for what may be repeated: reading metadata. Default 3. */
  maxAttempts?: number | undefined;
  /** The name of the program, for `User-Agent`. */
  userAgent?: string | undefined;
}

const METADATA_BYTES = 256 * 1024;
/**
 * For one document with its attempts, redirects and waits: a body that drips would otherwise take the time of every
 * attempt.
 */
const DOCUMENT_DEADLINE_MS = 15_000;
const TOKEN_BYTES = 1024 * 1024;

/** The requests of the flow, with caps, deadlines and strict reading. */
export class OAuthHttp {
  readonly #metadata: Transport;
  readonly #once: Transport;
  readonly #probe: Transport;
  readonly #headers: Record<string, string>;

  readonly #documents = new DocumentCache();
  readonly #clock: Pick<Clock, "epoch">;

  constructor(options: OAuthHttpOptions) {
    this.#clock = options.clock ?? systemClock;
    const { timeoutMs: timeout = 15_000, maxAttempts } = options;
    const base = { ...options, timeoutMs: timeout, onEvent: withoutQueries(options.onEvent) };
    const deadline = DOCUMENT_DEADLINE_MS;
    this.#metadata = createTransport({ ...base, deadline, maxAttempts, maxBodyBytes: METADATA_BYTES });
    this.#once = createTransport({ ...base, maxAttempts: 1, maxBodyBytes: TOKEN_BYTES });
    this.#probe = createTransport({ ...base, maxAttempts: 1, maxBodyBytes: TOKEN_BYTES, redirects: "manual" });
    // A document of this size needs no compression, and without it there is nothing to blow up.
    this.#headers = { "user-agent": userAgent(options.userAgent), "accept-encoding": "identity" };
  }

  /** Reads a metadata document, or takes the one that is still fresh; passing failures are repeated, for 15 s in all. */
  async document(url: string, signal: AbortSignal | undefined): Promise<BufferedResponse> {
    const kept = this.#documents.get(url, this.#clock.epoch());
    if (kept) return kept;
    const headers = { ...this.#headers, accept: "application/json", "mcp-protocol-version": "2025-11-25" };
    const reply = uncompressed(await this.#metadata(new Request(url, { headers }), signal));
    this.#documents.put(url, reply, this.#clock.epoch());
    return reply;
  }

  /** Reads every document again from here on: what a server refused, or a login failed with, may have changed. */
  forgetDocuments(): void {
    this.#documents.clear();
  }

  /** Asks an address once and does not follow where it leads. */
  probe(url: string, signal: AbortSignal | undefined): Promise<BufferedResponse> {
    return this.#probe(new Request(url, { headers: { ...this.#headers, accept: "text/html" } }), signal);
  }

  /**
   * The `fetch` for oauth4webapi: one request, never repeated, its answer strictly read and brought to the form that the
   * specifications give it (see {@link normalizeResponse}).
   *
   * @param beforeSend called right before the request leaves; what it throws keeps it from leaving
   * @param prover proves that we have the key that the tokens are to be bound to (RFC 9449 section 5)
   * @param forgiving leaves out what is wrong beside the tokens (see {@link dropInvalidMembers})
   */
  fetcher({
    signal,
    beforeSend,
    prover,
    lenient: forgiving,
  }: FetcherOptions): (url: string, init: FetcherInit) => Promise<Response> {
    return async (url, init) => {
      const headers = new Headers(init.headers);
      for (const [name, value] of Object.entries(this.#headers)) headers.set(name, value);
      if (!headers.has("accept")) headers.set("accept", "application/json");
      const { method, body } = init;
      if (prover) headers.set("dpop", await prover.proof({ method, url }));
      const request = new Request(url, { method, headers, ...(body != null && { body: body as string }) });
      const sent = secretsIn(headers, body);
      beforeSend?.();
      try {
        const reply = await this.#once(request, signal).catch(rethrowTruncated);
        prover?.nonces.learn(url, reply.response.headers);
        const answer = normalizeResponse(uncompressed(reply), forgiving === true);
        secretsByResponse.set(answer, sent);
        return answer;
      } catch (error) {
        throw isAgentAuthError(error) ? maskError(error, (text) => sent.redact(text)) : error;
      }
    };
  }
}

/** Form members that nobody else may see (RFC 6749, 7009, 7521, 7636, 8628, 8693). */
const SECRET_MEMBERS = [
  "code",
  "code_verifier",
  "client_secret",
  "client_assertion",
  "assertion",
  "refresh_token",
  "device_code",
  "subject_token",
  "actor_token",
  "token",
];

/** What a request to an endpoint tells its server, and nobody who reads what the server makes of it. */
function secretsIn(headers: Headers, body: unknown): Redactor {
  const secrets = new Redactor();
  const form = new URLSearchParams(body == null ? "" : String(body));
  for (const name of SECRET_MEMBERS) for (const value of form.getAll(name)) secrets.add(value);
  const [scheme = "", credentials = ""] = headers.get("authorization")?.split(" ") ?? [];
  secrets.add(credentials);
  if (scheme.toLowerCase() === "basic") {
    const [, secret = ""] = atob(credentials).split(":");
    secrets.add(secret);
    secrets.add(decodeURIComponent(secret.replaceAll("+", " ")));
  }
  return secrets;
}

const secretsByResponse = new WeakMap<Response, Redactor>();

/** Masks what a server that was told secrets may have put into its answer. */
export function secretsSentBefore(answer: unknown): Redactor {
  return (answer instanceof Response ? secretsByResponse.get(answer) : undefined) ?? new Redactor();
}

/** The queries of this flow carry `id_token_hint` and `state`: nothing for a trace. */
function withoutQueries(onEvent: OAuthHttpOptions["onEvent"]): OAuthHttpOptions["onEvent"] {
  return onEvent && ((event: HttpEvent) => onEvent(event.type === "request" ? { ...event, query: "" } : event));
}

/** An answer that broke off says nothing, neither yes nor no. */
function rethrowTruncated(error: unknown): never {
  throw isAgentAuthError(error) && error.code === "bad_json" && error.retryable ? asUnavailable(error) : error;
}

function asUnavailable(error: AgentAuthError): AgentAuthError {
  const { code, message, status, url, hint } = error;
  return new AgentAuthError(code, message, { class: "unavailable", status, url, hint, cause: error });
}

interface FetcherOptions {
  signal: AbortSignal | undefined;
  beforeSend?: (() => void) | undefined;
  prover?: Prover | undefined;
  lenient?: boolean | undefined;
}

interface FetcherInit {
  method: string;
  headers: Record<string, string> | Headers;
  body?: unknown;
}

/**
 * Brings an answer of an endpoint to the form that the specifications give it, so that what real servers send can be
 * judged by the same rules: form-encoded bodies (before RFC 6749 was final they were usual), errors with status 200,
 * `expires_in` as a string of digits, a secret without its end.
 */
function normalizeResponse(reply: BufferedResponse, forgiving: boolean): Response {
  const { response, text } = reply;
  if (text === "") return withBody(response.status, response, null);
  const isForm = /^application\/x-www-form-urlencoded\b/i.test(response.headers.get("content-type") ?? "");
  const members = isForm ? formMembers(reply) : membersOf(reply);
  if (members === undefined) return withBody(response.status, response, text);
  for (const name of OPTIONAL_MEMBERS) if (members[name] === null) delete members[name];
  if (forgiving) dropInvalidMembers(members);
  const life = members["expires_in"];
  if (typeof life === "string" && /^\d{1,10}$/.test(life)) members["expires_in"] = Number(life);
  else if (life !== undefined && typeof life !== "number") {
    throw refused("bad_token_answer", {
      field: "expires_in",
      value: life,
      from: reply.url,
      rule: "must be a positive number of seconds",
    });
  }
  // Left out where it should say 0, "never", by many a server (RFC 7591 section 3.2.1).
  if (typeof members["client_secret"] === "string") members["client_secret_expires_at"] ??= 0;
  const saysError = typeof members["error"] === "string";
  const failedQuietly = response.ok && saysError && members["access_token"] === undefined;
  const said = withBody(failedQuietly ? 400 : response.status, response, JSON.stringify(members), "application/json");
  // The body says which error it is; a challenge beside it says only how to authenticate (RFC 6749 section 5.2).
  if (saysError) said.headers.delete("www-authenticate");
  return said;
}

// What may be left out is by many a server written out as null.
const OPTIONAL_MEMBERS = ["expires_in", "refresh_token", "id_token", "scope"];

/** Where the id token of a forgiven answer stands: nothing judges it, so that it decides nothing. */
export const UNVERIFIED_ID_TOKEN = "id_token (not judged)";

/**
 * Takes out of the answer to a refresh what is wrong beside the access token. The issuer has taken the old refresh
 * token by then, so that an answer which is refused would end the session.
 */
function dropInvalidMembers(members: Record<string, unknown>): void {
  const { expires_in: life, refresh_token: refreshToken, id_token: idToken, scope } = members;
  const seconds = typeof life === "string" && life.trim() !== "" ? Number(life) : life;
  if (typeof seconds === "number" && seconds > 0 && Number.isFinite(seconds)) members["expires_in"] = seconds;
  else delete members["expires_in"];
  if (!isToken(refreshToken)) delete members["refresh_token"];
  if (typeof scope !== "string") delete members["scope"];
  delete members["id_token"];
  if (isToken(idToken)) members[UNVERIFIED_ID_TOKEN] = idToken;
}

const TOKEN_SHAPE = /^[\x21-\x7e]+$/;
const MAX_TOKEN = 64 * 1024;

/** Whether a value has the shape of a token (RFC 6749 appendix A), and a length that can be kept. */
export function isToken(value: unknown): value is string {
  return typeof value === "string" && value.length <= MAX_TOKEN && TOKEN_SHAPE.test(value);
}

function formMembers({ text, url }: BufferedResponse): Record<string, unknown> {
  const members = Object.create(null) as Record<string, unknown>;
  for (const [name, value] of new URLSearchParams(text)) {
    if (name in members)
      throw refused("bad_token_answer", { field: name, value: "(several)", from: url, rule: "must come once" });
    members[name] = value;
  }
  return members;
}

/** A failure's body helps when it is JSON, and is nobody's business when it is not. */
function membersOf(reply: BufferedResponse): Record<string, unknown> | undefined {
  try {
    return strictObject(reply);
  } catch (error) {
    if (!reply.response.ok) return undefined;
    // A page in place of an answer comes from something that stands between: the server itself said nothing.
    throw isAgentAuthError(error) && error.code === "bad_content_type" ? asUnavailable(error) : error;
  }
}

function withBody(status: number, response: Response, body: string | null, type?: string): Response {
  const headers = new Headers(response.headers);
  headers.delete("content-length");
  if (type !== undefined) headers.set("content-type", type);
  return new Response(body, { status, headers });
}

/** Whether an error says that the peer could not be reached or did not answer, rather than that it said no. */
export function isUnavailable(error: unknown): error is AgentAuthError {
  return isAgentAuthError(error) && error.class === "unavailable";
}

/** The error for an answer that is a failure of the server's, not a verdict. */
export function serverFailure(url: string, status: number): AgentAuthError {
  return new AgentAuthError(status === 429 ? "rate_limited" : "server_error", `${url}: HTTP ${status}`, {
    class: "unavailable",
    status,
    url,
  });
}
