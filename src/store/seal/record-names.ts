import { toBase64url } from "../../http/base64url.js";
import { Lru } from "../lru.js";

const ENCODER = new TextEncoder();
const MAX_NAMES = 10_000;

/** Names by HMAC-SHA-256 (RFC 2104), so that an engine shows neither an address nor an account. */
export function keyedNames(bytes: Uint8Array<ArrayBuffer>): (text: string) => Promise<string> {
  const key = crypto.subtle.importKey("raw", bytes, { name: "HMAC", hash: "SHA-256" }, false, ["sign"]);
  key.catch(() => {});
  return cached(async (text) => crypto.subtle.sign("HMAC", await key, ENCODER.encode(text)));
}

/** A driver takes names of up to 1,024 bytes; a code unit has at most three. */
const MAX_PLAIN = 341;

/**
 * Names for records that are not sealed either: the text, or the SHA-256 of a long one. No text is like a hash: each is a
 * JSON array.
 */
export function plainNames(): (text: string) => Promise<string> {
  const hashed = cached((text) => crypto.subtle.digest("SHA-256", ENCODER.encode(text)));
  return async (text) => (text.length <= MAX_PLAIN ? text : hashed(text));
}

function cached(digest: (text: string) => Promise<ArrayBuffer>): (text: string) => Promise<string> {
  const names = new Lru<Promise<string>>(MAX_NAMES);
  return (text) => {
    const known = names.get(text);
    if (known !== undefined) return known;
    const name = digest(text).then((bytes) => toBase64url(new Uint8Array(bytes)));
    names.set(text, name);
    name.catch(() => names.delete(text));
    return name;
  };
}
