import { MASK } from "../../../redact.js";

/** Masks secrets in bytes that come piece by piece, whatever they mean and wherever the pieces part. */
export interface Masker {
  /** What can be said of the bytes so far; what may be the beginning of a secret is held back. */
  push(chunk: Uint8Array): Buffer;
  /** What was held back, when nothing more comes. */
  end(): Buffer;
}

/**
 * Replaces every secret by a mask: the leftmost first, of several at one place the longest. Never more is held back than
 * the longest secret less one byte.
 *
 * @param secrets the secrets of now, none of them empty; asked with each piece
 */
export function createMasker(secrets: () => readonly Buffer[]): Masker {
  let held: Buffer = Buffer.alloc(0);
  return {
    push(chunk) {
      const { done, rest } = mask(held.length === 0 ? asBuffer(chunk) : Buffer.concat([held, chunk]), secrets(), false);
      // A copy, which does not keep the whole piece in memory.
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

/** Gives the first whole secret from a place on; the places that it is asked for must not go back. */
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

/** Gives the first place, from another on, where the bytes end in the beginning of a secret; their end if there is none. */
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
