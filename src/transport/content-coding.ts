import { pipeline, type Readable, Transform, type TransformCallback } from "node:stream";
import type { Inflate, InflateRaw, ZlibOptions } from "node:zlib";

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
