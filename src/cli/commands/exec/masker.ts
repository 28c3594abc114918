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
      const { done, rest } = mask(held.length === 0 ? asBuffer(chunk) : Buffer.concat([held, chunk]), secrets(), false);
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
  const undecidedAfter = isEnd ? () => bytes.length : undecidedIn(bytes, secrets);
  const find = finder(bytes, secrets);
  const parts: Buffer[] = [];
  let from = 0;
  let undecided = undecidedAfter(0);
  for (let hit = find(0); hit !== undefined && hit.at < undecided; hit = find(from)) {
    parts.push(bytes.subarray(from, hit.at), MASK_BYTES);
    from = hit.at + hit.length;
    if (from > undecided) undecided = undecidedAfter(from);
  }
  const last = bytes.subarray(from, undecided);
  return { done: parts.length === 0 ? last : Buffer.concat([...parts, last]), rest: bytes.subarray(undecided) };
}

/** Returns a function that finds the first whole secret from a position on; positions must not decrease. */
function finder(bytes: Buffer, secrets: readonly Buffer[]) {
  const next = secrets.map((secret) => ({ at: bytes.indexOf(secret), secret }));
  return (from: number): { at: number; length: number } | undefined => {
    let best: { at: number; length: number } | undefined;
    for (const one of next) {
      if (one.at >= 0 && one.at < from) one.at = bytes.indexOf(one.secret, from);
      const { at, secret } = one;
      if (at < 0) continue;
      if (!best || at < best.at || (at === best.at && secret.length > best.length))
        best = { at, length: secret.length };
    }
    return best;
  };
}

/** Returns a function that finds the first position where the bytes end in the start of a secret; else their end. */
function undecidedIn(bytes: Buffer, secrets: readonly Buffer[]) {
  const longest = Math.max(0, ...secrets.map((secret) => secret.length));
  const firsts = new Set(secrets.map((secret) => secret[0]));
  return (from: number): number => {
    for (let at = Math.max(from, bytes.length - longest + 1); at < bytes.length; at++) {
      if (firsts.has(bytes[at]) && secrets.some((secret) => begins(secret, bytes.subarray(at)))) return at;
    }
    return bytes.length;
  };
}

function begins(secret: Buffer, rest: Buffer): boolean {
  return secret.length > rest.length && secret.compare(rest, 0, rest.length, 0, rest.length) === 0;
}

function asBuffer(chunk: Uint8Array): Buffer {
  return Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength);
}
