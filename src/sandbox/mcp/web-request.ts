import type { Answer, RoundTrip } from "../http/round-trip.js";

/** Headers of the connection, and those that the next sender sets itself. */
const DROPPED = new Set(["connection", "keep-alive", "transfer-encoding", "content-length", "host", "expect"]);

/** A web-standard `Request`; its URL has the sandbox's origin, whatever Host the client sent. */
export function webRequest(origin: string, { method, path, request, body }: RoundTrip): Request {
  const headers = new Headers();
  for (const [name, values] of Object.entries(request.headersDistinct)) {
    if (!DROPPED.has(name)) for (const value of values ?? []) headers.append(name, value);
  }
  const hasBody = body !== undefined && body.length > 0 && method !== "GET" && method !== "HEAD";
  return new Request(origin + path, { method, headers, ...(hasBody && { body: new Uint8Array(body) }) });
}

/** Buffers a web-standard `Response`. */
export async function answerOf(response: Response): Promise<Answer> {
  const headers = [...response.headers].filter(([name]) => !DROPPED.has(name));
  const body = Buffer.from(await response.arrayBuffer());
  return { status: response.status, headers: Object.fromEntries(headers), body };
}
