import { usageError } from "../errors.js";
import type { BufferedResponse, Call, Send } from "../http/buffered-response.js";
import { untilAborted } from "../http/deadline.js";
import { HttpHeaders } from "../http/http-message.js";
import { type Redactor, Secret } from "../redact.js";

/** The API token. A function is called for each request, and again when the service refuses a token. */
export type TokenSource = string | Secret | (() => string | Secret | Promise<string | Secret>);

/** Puts a token on a request. The default is `Authorization: Bearer <token>`, because the service does not document it. */
export type PlaceToken = (headers: Headers, token: string) => void;

const placeBearer: PlaceToken = (headers, token) => headers.set("authorization", `Bearer ${token}`);
// The characters that are safe in an HTTP header (RFC 9110 section 5.5).
const HEADER_SAFE = /^[\x21-\x7e]+$/;

/**
 * A transport layer that authenticates requests to one origin only. After a 401 it calls the source once more; only a
 * different token is tried.
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
    if (!isRejected(reply)) return reply;
    const newToken = await readToken(source, call, redactor);
    return newToken === token ? reply : send(copy, withToken(copy, call, newToken, place));
  };
}

function withToken(request: Request, call: Call, token: string, place: PlaceToken | undefined): Call {
  // Of the request's own class, so that what sends them converts nothing.
  const headers = new (request.headers instanceof HttpHeaders ? HttpHeaders : Headers)(request.headers);
  (place ?? placeBearer)(headers, token);
  return { ...call, headers };
}

async function readToken(source: TokenSource, call: Call, redactor: Redactor): Promise<string> {
  const value = typeof source === "function" ? await untilAborted(Promise.resolve(source()), call.limit) : source;
  const token = value instanceof Secret ? value.reveal() : value;
  if (typeof token !== "string" || !HEADER_SAFE.test(token)) {
    const message =
      "the API token is empty or has characters that no HTTP header can carry (blanks, line breaks, non-ASCII)";
    throw usageError(message, "check for a line break at its end");
  }
  redactor.add(token);
  return token;
}

function isRejected(reply: BufferedResponse): boolean {
  if (reply.status === 401) return true;
  return (reply.json as { code?: unknown } | undefined)?.code === "bad_authtoken";
}
