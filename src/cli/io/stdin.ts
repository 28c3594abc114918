/** Standard input as the CLI sees it. */

import type { Readable } from "node:stream";
import { usageError } from "../../errors.js";
import { withoutByteOrderMark } from "../../platform/files.js";

/** Standard input. */
export interface InStream {
  /** Whether stdin is a terminal. */
  readonly isTTY: boolean;
  /** The stream itself, for prompts and bridges. */
  readonly stream: Readable;
  /**
   * Everything up to the end of input, as UTF-8 without a byte order mark.
   *
   * @throws {@link AgentAuthError} `usage` beyond `maxBytes` (default 1 MiB), or for UTF-16; the signal's reason when it fires
   */
  text(options?: { maxBytes?: number; signal?: AbortSignal }): Promise<string>;
}

/** Wraps a Node stream. */
export function inStream(stream: Readable & { readonly isTTY?: boolean }): InStream {
  return {
    isTTY: stream.isTTY === true,
    stream,
    async text({ maxBytes = 1024 * 1024, signal } = {}) {
      const tooLong = () => usageError(`standard input is longer than ${maxBytes} bytes`);
      const bytes = await readStream(stream, { maxBytes, tooLong, signal });
      return withoutByteOrderMark(bytes.toString("utf8"), "the text on stdin");
    },
  };
}

/**
 * Reads a whole stream.
 *
 * @throws what `tooLong` makes beyond `maxBytes`; the signal's reason when it fires; what the stream fails with
 */
export async function readStream(
  stream: Readable,
  { maxBytes, tooLong, signal }: { maxBytes: number; tooLong(): Error; signal: AbortSignal | undefined },
): Promise<Buffer<ArrayBuffer>> {
  const chunks: Buffer[] = [];
  let size = 0;
  const abort = () => stream.destroy(signal?.reason);
  if (signal?.aborted) throw signal.reason;
  signal?.addEventListener("abort", abort, { once: true });
  try {
    for await (const chunk of stream) {
      const bytes = typeof chunk === "string" ? Buffer.from(chunk) : (chunk as Buffer);
      size += bytes.length;
      if (size > maxBytes) throw tooLong();
      chunks.push(bytes);
    }
  } catch (error) {
    throw signal?.aborted ? signal.reason : error;
  } finally {
    signal?.removeEventListener("abort", abort);
  }
  return Buffer.concat(chunks);
}
