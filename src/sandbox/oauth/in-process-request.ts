import type { IncomingMessage, ServerResponse } from "node:http";
import { Socket } from "node:net";
import type { SandboxResponse } from "../http/sandbox-response.js";

/** A request that is answered inside the process. */
export interface ForwardedRequest {
  method: string;
  /** Path and query below where the handler is mounted. */
  url: string;
  /** Path and query as the client sent them. */
  originalUrl: string;
  headers: Readonly<Record<string, string>>;
  body: Buffer;
}

function createRequest({ method, url, originalUrl, headers, body }: ForwardedRequest): IncomingMessage {
  const { IncomingMessage } = process.getBuiltinModule("node:http");
  const length = body.length > 0 ? { "content-length": String(body.length) } : {};
  const request = new IncomingMessage(new Socket());
  Object.assign(request, { method, url, originalUrl, headers: { ...headers, ...length }, httpVersion: "1.1" });
  if (body.length > 0) request.push(body);
  request.push(null);
  return request;
}

/** A response that is buffered instead of sent. */
function createResponse(request: IncomingMessage, done: (answer: SandboxResponse) => void): ServerResponse {
  const { ServerResponse } = process.getBuiltinModule("node:http");
  const response = new ServerResponse(request);
  const chunks: Buffer[] = [];
  const write = (chunk: unknown) => {
    chunks.push(typeof chunk === "string" ? Buffer.from(chunk) : Buffer.from(chunk as Uint8Array));
    return true;
  };
  const end = (chunk?: unknown) => {
    if (typeof chunk === "string" || chunk instanceof Uint8Array) write(chunk);
    // Koa checks this flag before it responds.
    response.finished = true;
    response.emit("finish");
    const headers = Object.entries(response.getHeaders()).map(([name, value]) => [
      name.toLowerCase(),
      Array.isArray(value) ? value : String(value),
    ]);
    const { "content-length": _, ...rest } = Object.fromEntries(headers) as Record<string, string | string[]>;
    done({ status: response.statusCode, headers: rest, body: Buffer.concat(chunks) });
    return response;
  };
  return Object.assign(response, { write, end });
}

/** Calls a Node.js handler without a connection. */
export function inProcessRequest(
  handler: (request: IncomingMessage, response: ServerResponse) => unknown,
  forwarded: ForwardedRequest,
): Promise<SandboxResponse> {
  return new Promise((resolve, reject) => {
    const request = createRequest(forwarded);
    const answered = handler(request, createResponse(request, resolve));
    Promise.resolve(answered).catch(reject);
  });
}
