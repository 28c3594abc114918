import { pipeline, type Readable, type Transform } from "node:stream";

const MAX_CODINGS = 5;

/**
 * The body without its content codings (RFC 9110 section 8.4), or as it came where one is unknown.
 *
 * @throws `Error` for more codings than a server can have a reason for
 */
export function decoded(body: Readable, contentEncoding: string): Readable {
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
    // Servers send both forms, with and without the header of zlib.
    if (coding === "deflate") return () => zlib.createUnzip(lenient);
    return coding === "br" ? () => zlib.createBrotliDecompress(flushing) : undefined;
  });
  const known = decoders.flatMap((create) => create ?? []);
  if (known.length < decoders.length) return body;
  const stages = known.map((create) => create());
  // Errors reach the reader through the last stage.
  pipeline([body, ...stages], () => undefined);
  return stages.at(-1) ?? body;
}
