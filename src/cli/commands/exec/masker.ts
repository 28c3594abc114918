import { MASK } from "../../../redact.js";

/**
 * Replaces every secret in a stream of chunks by a mask, also across chunk boundaries: the leftmost first, and of several
 * at one position the longest.
 *
 * @param secrets none of them empty
 */
export function createMasker(secrets: readonly Buffer[]) {
  const byFirstByte = Array.from({ length: 256 }, (): Buffer[] => []);
  const longestFirst = [...secrets].sort((a, b) => b.length - a.length);
  for (const secret of longestFirst) byFirstByte[secret[0] ?? 0]?.push(secret);
  let held: Buffer = Buffer.alloc(0);
  return {
    /** The masked bytes so far; what may be the start of a secret is held back, less bytes than the longest one has. */
    push(chunk: Uint8Array): Buffer {
      const { done, rest } = mask(Buffer.concat([held, chunk]), byFirstByte, false);
      // A copy, so that the whole chunk does not stay in memory.
      held = Buffer.from(rest);
      return done;
    },
    /** The bytes that were held back, at the end of the stream. */
    end(): Buffer {
      const { done } = mask(held, byFirstByte, true);
      held = Buffer.alloc(0);
      return done;
    },
  };
}

const MASK_BYTES = Buffer.from(MASK);

function mask(bytes: Buffer, byFirstByte: readonly Buffer[][], isEnd: boolean): { done: Buffer; rest: Buffer } {
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

/** A shorter form would match unrelated text. */
const SHORTEST = 6;

/**
 * The forms in which a program may print a token: as it is, URL-encoded, JSON-escaped, and in base64 at any position of the encoded text; empty for a token of
 * fewer than six characters.
 */
export function encodingsOf(token: string): string[] {
  if (token.length < SHORTEST) return [];
  const json = JSON.stringify(token).slice(1, -1);
  const forms = [token, json, json.replaceAll("/", "\\/"), ...urlForms(token), ...base64Forms(token)];
  return [...new Set(forms)].filter((form) => form.length >= SHORTEST);
}

function urlForms(token: string): string[] {
  const component = encodeURIComponent(token);
  const form = new URLSearchParams([["", token]]).toString().slice(1);
  // Some programs do not encode the slash.
  const forms = [component, component.replaceAll("%2F", "/"), form];
  return [...forms, ...forms.map((text) => text.replace(/%[0-9A-F]{2}/g, (code) => code.toLowerCase()))];
}

/**
 * Base64 encodes three bytes at a time, so a text inside another has three forms. Characters that share bits with the
 * neighbouring text are left out; at the end of the text, the last characters are the token's own.
 */
function base64Forms(token: string): string[] {
  const bytes = Buffer.from(token);
  const forms = [0, 1, 2].flatMap((before) => {
    const padded = Buffer.concat([Buffer.alloc(before), bytes])
      .toString("base64")
      .slice(Math.ceil((before * 8) / 6));
    const whole = Math.floor(((before + bytes.length) * 8) / 6) - Math.ceil((before * 8) / 6);
    return [padded, padded.replace(/=+$/, ""), padded.slice(0, whole)];
  });
  return [...forms, ...forms.map((text) => text.replaceAll("+", "-").replaceAll("/", "_"))];
}
