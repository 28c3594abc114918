import { AgentAuthError } from "../errors.js";
import type { BufferedResponse, Call, Send } from "../http/buffered-response.js";
import { untilAborted } from "../http/deadline.js";
import { type Redactor, Secret } from "../redact.js";

/** Where the API token comes from. A function is asked for each request, and again when the service refuses a token. */
export type TokenSource = string | Secret | (() => string | Secret | Promise<string | Secret>);

/** Puts a token on a request. The default is `Authorization: Bearer <token>`, since the service does not say. */
export type PlaceToken = (headers: Headers, token: string) => void;

const bearer: PlaceToken = (headers, token) => headers.set("authorization", `Bearer ${token}`);
// What an HTTP header can carry without being read as something else (RFC 9110 section 5.5).
const HEADER_SAFE = /^[\x21-\x7e]+$/;

/**
 * A transport layer that authenticates requests to one origin and to no other. A 401 asks the source once more; only a
 * token that differs is tried.
 */
export function bearerAuth(
  source: TokenSource | undefined,
  place: PlaceToken | undefined,
  origin: string,
  redactor: Redactor,
): (send: Send) => Send {
  return (send) => async (request, call) => {
    if (source === undefined || !request.url.startsWith(`${origin}/`)) return send(request, call);
    const token = await readToken(source, call, redactor);
    const copy = request.body === null ? request : request.clone();
    const reply = await send(request, withToken(request, call, token, place));
    if (!isRefused(reply) || typeof source !== "function") return reply;
    const renewed = await readToken(source, call, redactor);
    return renewed === token ? reply : send(copy, withToken(copy, call, renewed, place));
  };
}

function withToken(request: Request, call: Call, token: string, place: PlaceToken | undefined): Call {
  const headers = new Headers(request.headers);
  (place ?? bearer)(headers, token);
  return { ...call, headers };
}

async function readToken(source: TokenSource, call: Call, redactor: Redactor): Promise<string> {
  const given = typeof source === "function" ? await untilAborted(Promise.resolve(source()), call.signal) : source;
  const token = given instanceof Secret ? given.reveal() : given;
  if (typeof token !== "string" || !HEADER_SAFE.test(token)) {
    throw new AgentAuthError(
      "usage",
      "the API token is empty or has characters that no HTTP header can carry (blanks, line breaks, non-ASCII)",
      { class: "usage", hint: "check for a line break at its end" },
    );
  }
  redactor.add(token);
  return token;
}

function isRefused(reply: BufferedResponse): boolean {
  if (reply.status === 401) return true;
  return (reply.json as { code?: unknown } | undefined)?.code === "bad_authtoken";
}
