import type { ServerResponse } from "node:http";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import type { ReadableStream } from "node:stream/web";
import type { RoundTrip } from "../faults/round-trip.js";
import type { SandboxResponse } from "../http/sandbox-response.js";

/** Headers of the connection, and those that the next sender sets itself. */
const DROPPED = new Set(["connection", "keep-alive", "transfer-encoding", "content-length", "host", "expect"]);

/** A web-standard `Request`; its URL has the sandbox's origin, whatever Host the client sent. */
export function webRequest(origin: string, { method, path, request, response, body }: RoundTrip): Request {
  const headers = new Headers();
  for (const [name, values] of Object.entries(request.headersDistinct)) {
    if (!DROPPED.has(name)) for (const value of values ?? []) headers.append(name, value);
  }
  const hasBody = body !== undefined && body.length > 0 && method !== "GET" && method !== "HEAD";
  const leaving = new AbortController();
  response.once("close", () => leaving.abort());
  const { signal } = leaving;
  return new Request(origin + path, { method, headers, signal, ...(hasBody && { body: new Uint8Array(body) }) });
}

/** Whether a response is a stream of events, which may never end. */
export function isEventStreamResponse({ headers, body }: Response): boolean {
  return body !== null && headers.get("content-type")?.startsWith("text/event-stream") === true;
}

/** Sends a response as it arrives. */
export function sendStream(response: Response, to: ServerResponse): void {
  to.writeHead(response.status, headersOf(response));
  to.flushHeaders();
  // A client that disconnects in the middle is not an error of the sandbox.
  pipeline(Readable.fromWeb(response.body as ReadableStream), to).catch(() => {});
}

/** Buffers a web-standard `Response`. */
export async function bufferResponse(response: Response): Promise<SandboxResponse> {
  const body = Buffer.from(await response.arrayBuffer());
  return { status: response.status, headers: headersOf(response), body };
}

function headersOf({ headers }: Response): Record<string, string> {
  return Object.fromEntries([...headers].filter(([name]) => !DROPPED.has(name)));
}
