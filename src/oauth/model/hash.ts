import { encodeHex } from "../../http/base64url.js";

/** The SHA-256 hash of values of JSON, in their order, as hexadecimal digits. */
export async function hashValues(...values: readonly unknown[]): Promise<string> {
  const hash = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(JSON.stringify(values)));
  return encodeHex(new Uint8Array(hash));
}
