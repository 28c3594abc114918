import { AgentAuthError, isAgentAuthError } from "../errors.js";
import { refusal, saysJson } from "../http/body.js";
import type { Reply } from "../http/reply.js";
import { parseStrictJson } from "../http/strict-json.js";
import { createTransport, type Transport, type TransportOptions } from "../http/transport.js";
import { userAgent } from "../http/user-agent.js";

/** A step of the flow, as `discover` tells it. */
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

/** One request of the flow: what was asked, what came, and whether it was used. */
export interface TraceEntry {
  step: Step;
  method: string;
  url: string;
  /** The HTTP status; undefined when there was no answer. */
  status?: number | undefined;
  /** Whether the answer was used. */
  used: boolean;
  /** Why, or why not. */
  why: string;
}

/** How requests of the flow leave. */
export interface OAuthHttpOptions extends Pick<TransportOptions, "fetch" | "clock" | "random" | "onEvent"> {
  /** Milliseconds for each request. Default 15,000. */
  timeout?: number | undefined;
  /** Attempts for what may be repeated: reading metadata. Default 3. */
  maxAttempts?: number | undefined;
  /** The name of the program, for `User-Agent`. */
  userAgent?: string | undefined;
}

const METADATA_BYTES = 256 * 1024;
const TOKEN_BYTES = 1024 * 1024;

/** The requests of the flow, with caps, deadlines and strict reading. */
export class OAuthHttp {
  readonly #metadata: Transport;
  readonly #once: Transport;
  readonly #probe: Transport;
  readonly #headers: Record<string, string>;

  constructor(options: OAuthHttpOptions) {
    const { timeout = 15_000, maxAttempts } = options;
    this.#metadata = createTransport({ ...options, timeout, maxAttempts, maxBodyBytes: METADATA_BYTES });
    this.#once = createTransport({ ...options, timeout, maxAttempts: 1, maxBodyBytes: TOKEN_BYTES });
    this.#probe = createTransport({ ...options, timeout, maxAttempts: 1, maxBodyBytes: TOKEN_BYTES, redirects: "manual" });
    // A document of this size needs no compression, and without it there is nothing to blow up.
    this.#headers = { "user-agent": userAgent(options.userAgent), "accept-encoding": "identity" };
  }

  /** Reads a metadata document; passing failures are repeated. */
  async document(url: string, signal: AbortSignal | undefined): Promise<Reply> {
    const headers = { ...this.#headers, accept: "application/json", "mcp-protocol-version": "2025-11-25" };
    return plain(await this.#metadata(new Request(url, { headers }), signal));
  }

  /** Asks an address once and does not follow where it leads. */
  probe(url: string, signal: AbortSignal | undefined): Promise<Reply> {
    return this.#probe(new Request(url, { headers: { ...this.#headers, accept: "text/html" } }), signal);
  }

  /**
   * The `fetch` for oauth4webapi: one request, never repeated, its answer strictly read and brought to the form that the
   * specifications give it (see {@link readAnswer}).
   */
  fetcher(signal: AbortSignal | undefined): (url: string, init: FetcherInit) => Promise<Response> {
    return async (url, init) => {
      const headers = new Headers(init.headers);
      for (const [name, value] of Object.entries(this.#headers)) headers.set(name, value);
      if (!headers.has("accept")) headers.set("accept", "application/json");
      const { method, body } = init;
      const request = new Request(url, { method, headers, ...(body != null && { body: body as string }) });
      return readAnswer(plain(await this.#once(request, signal)));
    };
  }
}

interface FetcherInit {
  method: string;
  headers: Record<string, string> | Headers;
  body?: unknown;
}

/** Compression was not asked for; an answer that has it anyway is not what was asked for. */
function plain(reply: Reply): Reply {
  const coding = reply.response.headers.get("content-encoding");
  if (coding === null || coding === "identity") return reply;
  throw refusal("bad_content_type", "the answer is compressed although that was not asked for", reply);
}

/**
 * Reads JSON as the OAuth documents must be: of a JSON media type, each name once, not too deep.
 *
 * @throws `AgentAuthError` `bad_content_type`, `bad_json`, `bad_envelope`
 */
export function strictObject(reply: Reply): Record<string, unknown> {
  if (!saysJson(reply.response.headers)) {
    const type = reply.response.headers.get("content-type") ?? "nothing";
    throw refusal("bad_content_type", `the answer says it is ${type.slice(0, 80)}, not application/json`, {
      ...reply,
      hint: "a proxy or a login page may have answered instead",
    });
  }
  let value: unknown;
  try {
    value = parseStrictJson(reply.text);
  } catch (cause) {
    throw refusal("bad_json", `not acceptable JSON: ${cause instanceof Error ? cause.message : ""}`, { ...reply, cause });
  }
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    throw refusal("bad_envelope", "the body is not a JSON object", reply);
  }
  return value as Record<string, unknown>;
}

/**
 * Brings an answer of an endpoint to the form that the specifications give it, so that what real servers send can be
 * judged by the same rules: form-encoded bodies (before RFC 6749 was final they were usual), errors with status 200,
 * `expires_in` as a string of digits, a secret without its end.
 */
function readAnswer(reply: Reply): Response {
  const { response, text } = reply;
  if (text === "") return rebuilt(response.status, response, null);
  const members = /^application\/x-www-form-urlencoded\b/i.test(response.headers.get("content-type") ?? "")
    ? (Object.fromEntries(new URLSearchParams(text)) as Record<string, unknown>)
    : readOrPass(reply);
  if (members === undefined) return rebuilt(response.status, response, text);
  if (typeof members["expires_in"] === "string" && /^\d{1,10}$/.test(members["expires_in"])) {
    members["expires_in"] = Number(members["expires_in"]);
  }
  // Left out where it should say 0, "never", by many a server (RFC 7591 section 3.2.1).
  if (typeof members["client_secret"] === "string") members["client_secret_expires_at"] ??= 0;
  const failedQuietly = response.ok && typeof members["error"] === "string" && members["access_token"] === undefined;
  return rebuilt(failedQuietly ? 400 : response.status, response, JSON.stringify(members), "application/json");
}

/** A failure's body helps when it is JSON, and is nobody's business when it is not. */
function readOrPass(reply: Reply): Record<string, unknown> | undefined {
  try {
    return strictObject(reply);
  } catch (error) {
    if (reply.response.ok) throw error;
    return undefined;
  }
}

function rebuilt(status: number, response: Response, body: string | null, type?: string): Response {
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
