/** Node and the runtimes after its model have a class that is many times faster than the loops below. */
const { Buffer } = globalThis as { Buffer?: typeof globalThis.Buffer };

/** Bytes as base64url without padding (RFC 4648 section 5). */
export function toBase64url(bytes: Uint8Array): string {
  if (Buffer) return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("base64url");
  let binary = "";
  for (const byte of bytes) binary += String.fromCharCode(byte);
  return btoa(binary).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}

/** Bytes as hexadecimal digits. */
export function encodeHex(bytes: Uint8Array): string {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** The last group of a text: whole, or with zeros in the bits that belong to no byte. */
const LAST_GROUP = /^(?:[\w-]{4}|[\w-][AQgw]|[\w-]{2}[AEIMQUYcgkosw048])$/;

/** Whether {@link toBase64url} writes a text: decoders accept others for the same bytes. */
export function isBase64url(text: string): boolean {
  return /^[\w-]+$/.test(text) && LAST_GROUP.test(text.slice(-(text.length % 4 || 4)));
}

/** The bytes of a text as {@link toBase64url} writes it; undefined for any other text. */
export function fromBase64url(text: string): Uint8Array<ArrayBuffer> | undefined {
  if (!isBase64url(text)) return undefined;
  if (Buffer) return new Uint8Array(Buffer.from(text, "base64url"));
  const binary = atob(text.replaceAll("-", "+").replaceAll("_", "/"));
  const bytes = new Uint8Array(binary.length);
  for (let at = 0; at < binary.length; at++) bytes[at] = binary.charCodeAt(at);
  return bytes;
}
