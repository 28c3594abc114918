import type { Answer, RoundTrip } from "../http/round-trip.js";

/** Headers that belong to the connection, or that another side writes anew. */
const DROPPED = new Set(["connection", "keep-alive", "transfer-encoding", "content-length", "host", "expect"]);

/** A request as handlers of the web take it; its address is the sandbox's own, however it was reached. */
export function webRequest(origin: string, { method, path, request, body }: RoundTrip): Request {
  const headers = new Headers();
  for (const [name, values] of Object.entries(request.headersDistinct)) {
    if (!DROPPED.has(name)) for (const value of values ?? []) headers.append(name, value);
  }
  const hasBody = body !== undefined && body.length > 0 && method !== "GET" && method !== "HEAD";
  return new Request(origin + path, { method, headers, ...(hasBody && { body: new Uint8Array(body) }) });
}

/** The answer of such a handler, whole. */
export async function answerOf(response: Response): Promise<Answer> {
  const headers = [...response.headers].filter(([name]) => !DROPPED.has(name));
  const body = Buffer.from(await response.arrayBuffer());
  return { status: response.status, headers: Object.fromEntries(headers), body };
}
