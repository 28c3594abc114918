import { AgentAuthError, isAgentAuthError, withHint } from "../../errors.js";
import { strictObject, uncompressed } from "../../http/body.js";
import type { BufferedResponse, HttpEvent } from "../../http/buffered-response.js";
import { type Clock, systemClock } from "../../http/deadline.js";
import { HttpHeaders } from "../../http/http-headers.js";
import { HttpRequest } from "../../http/http-request.js";
import { HttpResponse } from "../../http/http-response.js";
import { maskError } from "../../http/network-error.js";
import { isResponse } from "../../http/own-fetch.js";
import { refused } from "../../http/refuse.js";
import { createTransport, type Transport, type TransportOptions } from "../../http/transport.js";
import { userAgent } from "../../http/user-agent.js";
import { Redactor } from "../../redact.js";
import { DocumentCache } from "./document-cache.js";
import type { Prover } from "./nonces.js";

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

/** The HTTP requests of the flow, with size limits, deadlines and strict parsing. */
export class OAuthHttp {
  readonly #metadata: Transport;
  readonly #once: Transport;
  readonly #probe: Transport;
  readonly #headers: Record<string, string>;

  readonly #documents = new DocumentCache();
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
    const cached = this.#documents.get(url, this.#clock.epoch());
    if (cached) return cached;
    const headers = { ...this.#headers, accept: "application/json" };
    const read = (more: Record<string, string>) =>
      this.#metadata(new HttpRequest(url, { headers: { ...headers, ...more } }), signal);
    const first = await read({ "mcp-protocol-version": "2025-11-25" }).catch(rethrowRedirect);
    // A server that refuses the revision serves the same document without one.
    const reply = uncompressed(first.response.status === 400 ? await read({}).catch(rethrowRedirect) : first);
    this.#documents.put(url, reply, this.#clock.epoch());
    return reply;
  }

  /** Clears the document cache: after a rejected token or a failed login the metadata may have changed. */
  forgetDocuments(): void {
    this.#documents.clear();
  }

  /** Sends one GET request and does not follow redirects. */
  probe(url: string, signal: AbortSignal | undefined): Promise<BufferedResponse> {
    return this.#probe(new HttpRequest(url, { headers: { ...this.#headers, accept: "text/html" } }), signal);
  }

  /**
   * The `fetch` for oauth4webapi: one request, never repeated, with its response strictly parsed and normalized (see
   * {@link normalizeResponse}).
   *
   * @param beforeSend called right before the request is sent; if it throws, nothing is sent
   * @param prover signs the DPoP proof, if the tokens are to be bound to a key (RFC 9449 section 5)
   * @param lenient drops invalid members other than the access token (see {@link dropInvalidMembers})
   */
  fetcher({ signal, beforeSend, prover, lenient }: FetcherOptions) {
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
        const reply = await this.#once(request, signal, { mask }).catch(rethrowTruncated);
        prover?.nonces.learn(url, reply.response.headers);
        const answer = normalizeResponse(uncompressed(reply), lenient === true, sent);
        secretsByResponse.set(answer, sent);
        return answer;
      } catch (error) {
        throw isAgentAuthError(error) ? maskError(error, mask) : error;
      }
    };
  }
}

/** A part of a JWT that is long enough to be told from a word. */
const MIN_PART = 16;

/** Form members with secrets (RFC 6749, 7009, 7521, 7636, 8628, 8693). */
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

/** The secrets of a request, which its server may repeat in the response. */
function secretsIn(headers: Headers, body: unknown): Redactor {
  const secrets = new Redactor();
  const form = new URLSearchParams(body == null ? "" : String(body));
  for (const name of SECRET_MEMBERS) for (const value of form.getAll(name)) addForms(secrets, value);
  const [scheme = "", credentials = ""] = headers.get("authorization")?.split(" ") ?? [];
  addForms(secrets, credentials);
  addForms(secrets, headers.get("dpop") ?? "");
  if (scheme.toLowerCase() === "basic") {
    const [, secret = ""] = atob(credentials).split(":");
    secrets.add(secret);
    addForms(secrets, decodeURIComponent(secret.replaceAll("+", " ")));
  }
  return secrets;
}

/** Adds a secret in each form in which a server may repeat it: as it is, encoded for an address or a form, in base64. */
function addForms(secrets: Redactor, value: string): void {
  const base64 = btoa(
    Array.from(new TextEncoder().encode(value), (byte) => String.fromCharCode(byte)).join(""),
  ).replace(/=+$/, "");
  secrets.add(value);
  secrets.add(encodeURIComponent(value));
  secrets.add(new URLSearchParams([["", value]]).toString().slice(1));
  secrets.add(base64);
  secrets.add(base64.replaceAll("+", "-").replaceAll("/", "_"));
  // The parts of a JWT.
  for (const part of value.split(".")) if (part.length >= MIN_PART) secrets.add(part);
}

const secretsByResponse = new WeakMap<Response, Redactor>();

/** The redactor for the secrets that were sent in the request of a response. */
export function secretsSentBefore(answer: unknown): Redactor {
  return (isResponse(answer) ? secretsByResponse.get(answer) : undefined) ?? new Redactor();
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

/** A truncated response is neither a success nor a rejection. */
function rethrowTruncated(error: unknown): never {
  throw isAgentAuthError(error) && error.code === "bad_json" && error.retryable ? asUnavailable(error) : error;
}

function asUnavailable(error: AgentAuthError): AgentAuthError {
  const { code, message, status, url, hint, remedy } = error;
  return new AgentAuthError(code, message, { class: "unavailable", status, url, hint, remedy, cause: error });
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
 * Normalizes the response of an endpoint to the form of the specifications, so that the same checks apply to what real
 * servers send: form-encoded bodies (usual before RFC 6749 was final), errors with status 200, tokens with 201,
 * `expires_in` as a string of digits, a secret without its expiry.
 */
function normalizeResponse(reply: BufferedResponse, lenient: boolean, secrets: Redactor): Response {
  const { response, text } = reply;
  if (text === "") return withBody(response.status, response, null);
  const isForm = /^application\/x-www-form-urlencoded\b/i.test(response.headers.get("content-type") ?? "");
  const members = isForm ? readFormMembers(reply) : readJsonMembers(reply);
  if (members === undefined) return withBody(response.status, response, text);
  for (const name of OPTIONAL_MEMBERS) if (members[name] === null) delete members[name];
  if (members["access_token"] !== undefined) setIdTokenAside(members);
  maskTokenType(members, secrets);
  if (lenient) dropInvalidMembers(members);
  const life = members["expires_in"];
  if (typeof life === "string" && /^\d{1,10}$/.test(life)) members["expires_in"] = Number(life);
  else if (life !== undefined && typeof life !== "number") {
    const rule = "must be a number of seconds, 0 or more";
    throw refused("bad_token_answer", { field: "expires_in", value: life, from: reply.url, rule });
  }
  // Many servers omit it where it should be 0, "never" (RFC 7591 section 3.2.1).
  if (typeof members["client_secret"] === "string") members["client_secret_expires_at"] ??= 0;
  const hasError = typeof members["error"] === "string";
  const isHiddenError = response.ok && hasError && members["access_token"] === undefined;
  const isCreated = response.status === 201 && members["access_token"] !== undefined;
  const normalized = withBody(
    isHiddenError ? 400 : isCreated ? 200 : response.status,
    response,
    JSON.stringify(members),
    "application/json",
  );
  // The body has the error; a challenge beside it only says how to authenticate (RFC 6749 section 5.2).
  if (hasError) normalized.headers.delete("www-authenticate");
  return normalized;
}

// Many servers send null for an optional member that they do not set.
const OPTIONAL_MEMBERS = ["expires_in", "refresh_token", "id_token", "scope"];

/** The secrets of a response. */
const ANSWERED = ["access_token", "refresh_token", "client_secret", "registration_access_token"];

/** Masks a secret that a server repeats as the token type, which errors show in lower case. */
function maskTokenType(members: Record<string, unknown>, secrets: Redactor): void {
  const { token_type: type } = members;
  for (const name of ANSWERED) {
    const secret = members[name];
    if (typeof secret === "string") secrets.add(secret);
  }
  if (typeof type === "string") members["token_type"] = secrets.redactKnown(type);
}

/** The member for the id token of a response: oauth4webapi would reject the whole response because of it. */
export const UNVERIFIED_ID_TOKEN = "id_token (not verified)";

function setIdTokenAside(members: Record<string, unknown>): void {
  const idToken = members["id_token"];
  delete members["id_token"];
  if (idToken !== undefined) members[UNVERIFIED_ID_TOKEN] = idToken;
}

/**
 * Drops invalid members other than the access token from the response to a refresh. The issuer has consumed the old
 * refresh token by then, so rejecting the response would end the session.
 */
function dropInvalidMembers(members: Record<string, unknown>): void {
  const { expires_in: life, refresh_token: refreshToken, scope } = members;
  const seconds = typeof life === "string" && life.trim() !== "" ? Number(life) : life;
  if (typeof seconds === "number" && seconds >= 0 && Number.isFinite(seconds)) members["expires_in"] = seconds;
  else delete members["expires_in"];
  if (!isToken(refreshToken)) delete members["refresh_token"];
  if (typeof scope !== "string") delete members["scope"];
}

const TOKEN_SHAPE = /^[\x21-\x7e]+$/;
const MAX_TOKEN = 64 * 1024;

/** Whether a value has the form of a token (RFC 6749 appendix A) and a storable length. */
export function isToken(value: unknown): value is string {
  return typeof value === "string" && value.length <= MAX_TOKEN && TOKEN_SHAPE.test(value);
}

function readFormMembers({ text, url }: BufferedResponse): Record<string, unknown> {
  const members = Object.create(null) as Record<string, unknown>;
  for (const [name, value] of new URLSearchParams(text)) {
    if (name in members)
      throw refused("bad_token_answer", { field: name, value: "(several)", from: url, rule: "must come once" });
    members[name] = value;
  }
  return members;
}

/** The JSON members of a body; undefined for a failure whose body is not JSON. */
function readJsonMembers(reply: BufferedResponse): Record<string, unknown> | undefined {
  try {
    return strictObject(reply);
  } catch (error) {
    if (!reply.response.ok) return undefined;
    // A page in place of a token response comes from a proxy: the server itself did not answer.
    throw isAgentAuthError(error) && error.code === "bad_content_type" ? asUnavailable(error) : error;
  }
}

function withBody(status: number, response: Response, body: string | null, type?: string): Response {
  const headers = new HttpHeaders(response.headers);
  headers.delete("content-length");
  if (type !== undefined) headers.set("content-type", type);
  return new HttpResponse(body, { status, headers });
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
