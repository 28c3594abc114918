import { fromBase64url, toBase64url } from "../../http/base64url.js";

const ENCODER = new TextEncoder();
const NONCE_BYTES = 12;

/** Far more than any text that is sealed, in bytes. */
const MAX_TEXT = 64 * 1024;

/** Compresses a text and encrypts it with AES-256-GCM, under a key that is derived from a secret. */
export async function sealText(text: string, secret: string): Promise<string> {
  const iv = crypto.getRandomValues(new Uint8Array(NONCE_BYTES));
  const sealed = await crypto.subtle.encrypt({ name: "AES-GCM", iv }, await keyOf(secret), await deflate(text));
  return toBase64url(new Uint8Array([...iv, ...new Uint8Array(sealed)]));
}

/** The text that {@link sealText} encrypted with one of the secrets; undefined for any other. */
export async function openText(sealed: string, secrets: readonly string[]): Promise<string | undefined> {
  const bytes = fromBase64url(sealed);
  if (bytes === undefined) return undefined;
  const [iv, data] = [bytes.slice(0, NONCE_BYTES), bytes.slice(NONCE_BYTES)];
  for (const secret of secrets) {
    try {
      return await inflate(await crypto.subtle.decrypt({ name: "AES-GCM", iv }, await keyOf(secret), data));
    } catch {
      // Sealed with another secret, changed, or too long.
    }
  }
  return undefined;
}

/** Whether two texts are equal, in a time that depends on their lengths only. */
export function isSameText(one: string, other: string): boolean {
  let difference = one.length ^ other.length;
  for (let at = 0; at < one.length; at++) difference |= one.charCodeAt(at) ^ other.charCodeAt(at);
  return difference === 0;
}

/** The SHA-256 hash of texts, as hexadecimal digits. */
export async function hashOfTexts(...texts: readonly (string | undefined)[]): Promise<string> {
  const hash = await crypto.subtle.digest("SHA-256", ENCODER.encode(JSON.stringify(texts)));
  return Array.from(new Uint8Array(hash), (byte) => byte.toString(16).padStart(2, "0")).join("");
}

async function deflate(text: string): Promise<ArrayBuffer> {
  const stream = new Blob([text]).stream().pipeThrough(new CompressionStream("deflate-raw"));
  return new Response(stream).arrayBuffer();
}

/** @throws `RangeError` for more than {@link MAX_TEXT}: a short text can inflate to a thousand times its length */
async function inflate(bytes: ArrayBuffer): Promise<string> {
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
  const decoder = new TextDecoder();
  let [text, length] = ["", 0];
  // A reader: not every browser iterates over a stream.
  const reader = stream.getReader();
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return text + decoder.decode();
    length += value.length;
    if (length > MAX_TEXT) {
      await reader.cancel();
      throw new RangeError("the sealed text is too long");
    }
    text += decoder.decode(value, { stream: true });
  }
}

async function keyOf(secret: string) {
  const material = await crypto.subtle.importKey("raw", ENCODER.encode(secret), "HKDF", false, ["deriveKey"]);
  const derivation = {
    name: "HKDF",
    hash: "SHA-256",
    salt: new Uint8Array(),
    info: ENCODER.encode("a login that waits for its callback"),
  };
  return crypto.subtle.deriveKey(derivation, material, { name: "AES-GCM", length: 256 }, false, ["encrypt", "decrypt"]);
}
