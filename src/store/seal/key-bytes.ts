import { AgentAuthError } from "../../errors.js";
import { fromBase64url } from "../../http/base64url.js";
import { KEY_BYTES } from "./aes-key.js";

/** A key: 32 random bytes, or their text in hexadecimal digits or base64url. */
export type KeyInput = Uint8Array | string;

/**
 * The bytes of a key.
 *
 * @param option the option's name, for the error, which does not show the key
 * @throws `AgentAuthError` `usage`
 */
export function keyBytes(key: KeyInput | undefined, option: string): Uint8Array<ArrayBuffer> {
  const bytes = typeof key === "string" ? parseKey(key) : key instanceof Uint8Array ? new Uint8Array(key) : undefined;
  if (bytes?.length === KEY_BYTES) return bytes;
  const form = `${KEY_BYTES} bytes, as bytes, 64 hexadecimal digits or 43 characters of base64url`;
  throw new AgentAuthError("usage", `${option} must have ${form}; ${describe(key, bytes)}`, {
    class: "usage",
    hint: "make one with: openssl rand -hex 32",
  });
}

function parseKey(text: string): Uint8Array<ArrayBuffer> | undefined {
  if (/^[0-9a-f]{64}$/i.test(text))
    return Uint8Array.from(text.match(/../g) ?? [], (pair) => Number.parseInt(pair, 16));
  return fromBase64url(text.replace(/=$/, ""));
}

function describe(key: KeyInput | undefined, bytes: Uint8Array | undefined): string {
  if (key === undefined) return "it is missing";
  if (bytes !== undefined) return `it has ${bytes.length} bytes`;
  return typeof key === "string" ? `it has ${key.length} characters and is neither` : `it is of the type ${typeof key}`;
}
