import { MASK } from "../../../redact.js";

/** Masks secrets in a stream of chunks, also across chunk boundaries. */
export interface Masker {
  /** The masked bytes so far; bytes that may be the start of a secret are held back. */
  push(chunk: Uint8Array): Buffer;
  /** The bytes that were held back, at the end of the stream. */
  end(): Buffer;
}

/**
 * Replaces every secret by a mask: the leftmost first, and of several at one position the longest. At most the length of
 * the longest secret minus one byte is held back.
 *
 * @param secrets returns the current secrets, none of them empty; called for each chunk
 */
export function createMasker(secrets: () => readonly Buffer[]): Masker {
  let held: Buffer = Buffer.alloc(0);
  return {
    push(chunk) {
      const { done, rest } = mask(Buffer.concat([held, chunk]), secrets(), false);
      // A copy, so that the whole chunk does not stay in memory.
      held = Buffer.from(rest);
      return done;
    },
    end() {
      const { done } = mask(held, secrets(), true);
      held = Buffer.alloc(0);
      return done;
    },
  };
}

const MASK_BYTES = Buffer.from(MASK);

function mask(bytes: Buffer, secrets: readonly Buffer[], isEnd: boolean): { done: Buffer; rest: Buffer } {
  const byFirstByte = Array.from({ length: 256 }, (): Buffer[] => []);
  const longestFirst = [...secrets].sort((a, b) => b.length - a.length);
  for (const secret of longestFirst) byFirstByte[secret[0] ?? 0]?.push(secret);
  const parts: Buffer[] = [];
  let from = 0;
  let at = 0;
  while (at < bytes.length) {
    const candidates = byFirstByte[bytes[at] ?? 0] ?? [];
    const found =
      candidates.length === 0 ? undefined : candidates.find((secret) => matchesAt(bytes, at, secret, isEnd));
    if (found === undefined) {
      at++;
      continue;
    }
    // The next chunk decides whether it is the secret.
    if (at + found.length > bytes.length) break;
    parts.push(bytes.subarray(from, at), MASK_BYTES);
    at += found.length;
    from = at;
  }
  return { done: Buffer.concat([...parts, bytes.subarray(from, at)]), rest: bytes.subarray(at) };
}

/** Whether a secret with the byte at a position is there; also its start, if the bytes end in it and are not the last. */
function matchesAt(bytes: Buffer, at: number, secret: Buffer, isEnd: boolean): boolean {
  const end = Math.min(at + secret.length, bytes.length);
  if (isEnd && end - at < secret.length) return false;
  // The second byte rules out most, and costs less than a comparison of buffers.
  if (end - at > 1 && bytes[at + 1] !== secret[1]) return false;
  return bytes.compare(secret, 0, end - at, at, end) === 0;
}
