import type { IncomingMessage } from "node:http";
import { pipeline, type Readable, Transform, type TransformCallback } from "node:stream";
import type { Inflate, InflateRaw, ZlibOptions } from "node:zlib";
import type { ArrivingBody } from "../http/body-content.js";

/** The head of a response, and its body as it arrives. */
export interface PlainResponse {
  readonly status: number;
  readonly statusText: string;
  /** In the order and number in which they came. */
  readonly headers: readonly (readonly [name: string, value: string])[];
  /** Null where HTTP allows none. */
  readonly body: ArrivingBody | null;
}

const WITHOUT_BODY = new Set([204, 205, 304]);

/** The response that a message of Node is. @param method of its request */
export function responseOf(message: IncomingMessage, method: string): PlainResponse {
  const { statusCode: status = 0, statusMessage: statusText = "", rawHeaders } = message;
  const headers: [string, string][] = [];
  for (let at = 0; at + 1 < rawHeaders.length; at += 2) {
    headers.push([String(rawHeaders[at]).toLowerCase(), String(rawHeaders[at + 1])]);
  }
  const head = { status, statusText, headers };
  if (method === "HEAD" || WITHOUT_BODY.has(status)) {
    message.resume();
    return { ...head, body: null };
  }
  const codings = headers.flatMap(([name, value]) => (name === "content-encoding" ? [value] : []));
  const body = decodeContent(message, codings.join(","));
  return { ...head, body: Object.assign(body, { readTo: readerOf(body) }) };
}

function readerOf(body: Readable): NonNullable<ArrivingBody["readTo"]> {
  return (take) =>
    new Promise((resolve, reject) => {
      const onClose = () => {
        if (!body.readableEnded) resolve(body.errored ?? Object.assign(new Error("aborted"), { code: "ECONNRESET" }));
      };
      // It broke before anyone listened.
      if (body.destroyed) onClose();
      body.on("data", (part: Uint8Array) => {
        try {
          take(part);
        } catch (error) {
          reject(error);
          body.destroy();
        }
      });
      body.once("end", () => resolve(undefined));
      body.on("error", resolve);
      body.once("close", onClose);
    });
}

const MAX_CODINGS = 5;

/**
 * The body without its content codings (RFC 9110 section 8.4), or as it came where one is unknown.
 *
 * @throws `Error` for more codings than a server can have a reason for
 */
export function decodeContent(body: Readable, contentEncoding: string): Readable {
  const codings = contentEncoding
    .toLowerCase()
    .split(",")
    .map((coding) => coding.trim())
    .filter((coding) => coding !== "" && coding !== "identity");
  if (codings.length === 0) return body;
  if (codings.length > MAX_CODINGS) throw new Error(`more than ${MAX_CODINGS} content codings`);
  const zlib = process.getBuiltinModule("node:zlib");
  const { BROTLI_OPERATION_FLUSH, Z_SYNC_FLUSH } = zlib.constants;
  // A response that lacks the end of its compressed data is read as far as it goes, as by browsers.
  const lenient = { flush: Z_SYNC_FLUSH, finishFlush: Z_SYNC_FLUSH };
  const flushing = { flush: BROTLI_OPERATION_FLUSH, finishFlush: BROTLI_OPERATION_FLUSH };
  const decoders = codings.reverse().map((coding): (() => Transform) | undefined => {
    if (coding === "gzip" || coding === "x-gzip") return () => zlib.createGunzip(lenient);
    if (coding === "deflate") return () => new AnyInflate(lenient);
    return coding === "br" ? () => zlib.createBrotliDecompress(flushing) : undefined;
  });
  const known = decoders.flatMap((create) => create ?? []);
  if (known.length < decoders.length) return body;
  const stages = known.map((create) => create());
  // Errors reach the reader through the last stage.
  pipeline([body, ...stages], () => undefined);
  return stages.at(-1) ?? body;
}

/** Servers send `deflate` with and without the header of zlib; the first byte shows which. */
class AnyInflate extends Transform {
  readonly #options: ZlibOptions;
  #inner: Inflate | InflateRaw | undefined;

  constructor(options: ZlibOptions) {
    super();
    this.#options = options;
  }

  override _transform(part: Buffer, encoding: BufferEncoding, done: TransformCallback): void {
    this.#inner ??= this.#open(((part[0] ?? 0) & 0x0f) === 8);
    this.#inner.write(part, encoding, done);
  }

  override _read(size: number): void {
    this.#inner?.resume();
    super._read(size);
  }

  override _final(done: () => void): void {
    if (this.#inner === undefined) done();
    else this.#inner.once("end", done).end();
  }

  #open(hasHeader: boolean): Inflate | InflateRaw {
    const { createInflate, createInflateRaw } = process.getBuiltinModule("node:zlib");
    const inner = (hasHeader ? createInflate : createInflateRaw)(this.#options);
    inner.on("data", (piece) => {
      if (!this.push(piece)) inner.pause();
    });
    return inner.on("error", (error) => this.destroy(error));
  }
}
