import { IncomingMessage, ServerResponse } from "node:http";
import { Socket } from "node:net";
import type { Fault } from "../faults/faults.js";
import type { Answer } from "../http/answer.js";

/** A request that is answered inside the process. */
export interface ForwardedRequest {
  method: string;
  /** Path and query below where the handler is mounted. */
  url: string;
  /** Path and query as the client sent them. */
  originalUrl: string;
  headers: Readonly<Record<string, string>>;
  body: Buffer;
  /** The faults that strike it; hooks of the handler read them with {@link faultsOf}. */
  faults: readonly Fault[];
}

class ForwardedMessage extends IncomingMessage {
  readonly faults: readonly Fault[];
  readonly originalUrl: string;

  constructor({ method, url, originalUrl, headers, body, faults }: ForwardedRequest) {
    super(new Socket());
    const length = body.length > 0 ? { "content-length": String(body.length) } : {};
    Object.assign(this, { method, url, headers: { ...headers, ...length }, httpVersion: "1.1" });
    this.originalUrl = originalUrl;
    this.faults = faults;
    if (body.length > 0) this.push(body);
    this.push(null);
  }
}

/** Buffers the response instead of sending it. */
class CapturedResponse extends ServerResponse {
  readonly #chunks: Buffer[] = [];
  readonly #done: (answer: Answer) => void;

  constructor(request: IncomingMessage, done: (answer: Answer) => void) {
    super(request);
    this.#done = done;
  }

  override write(chunk: unknown): boolean {
    this.#chunks.push(typeof chunk === "string" ? Buffer.from(chunk) : Buffer.from(chunk as Uint8Array));
    return true;
  }

  override end(chunk?: unknown): this {
    if (typeof chunk === "string" || chunk instanceof Uint8Array) this.write(chunk);
    // Koa checks this flag before it responds.
    this.finished = true;
    this.emit("finish");
    const headers = Object.entries(this.getHeaders()).map(([name, value]) => [
      name.toLowerCase(),
      Array.isArray(value) ? value : String(value),
    ]);
    const { "content-length": _, ...rest } = Object.fromEntries(headers) as Record<string, string | string[]>;
    this.#done({ status: this.statusCode, headers: rest, body: Buffer.concat(this.#chunks) });
    return this;
  }
}

/** Calls a Node.js handler without a connection. */
export function inProcessRequest(
  handler: (request: IncomingMessage, response: ServerResponse) => unknown,
  forwarded: ForwardedRequest,
): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const request = new ForwardedMessage(forwarded);
    const answered = handler(request, new CapturedResponse(request, resolve));
    Promise.resolve(answered).catch(reject);
  });
}

/** The faults that strike a request which {@link inProcessRequest} made. */
export function faultsOf(request: IncomingMessage): readonly Fault[] {
  return request instanceof ForwardedMessage ? request.faults : [];
}
