import { AgentAuthError } from "../../errors.js";
import { fromBase64url } from "../../http/base64url.js";
import { CipherError, formatSealed, NONCE_BYTES, type SealedParts } from "./sealing.js";

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

type ImportedKey = Awaited<ReturnType<typeof crypto.subtle.importKey>>;

/** The length of a key in bytes. */
export const KEY_BYTES = 32;

const ENCODER = new TextEncoder();
const DECODER = new TextDecoder();

/** AES-256-GCM (NIST SP 800-38D) with a random nonce for each text and its name as additional data. */
export class AesKey {
  /** The id that the sealed texts name. */
  readonly id: string;
  readonly #key: Promise<ImportedKey>;

  /** @param bytes {@link KEY_BYTES} random bytes */
  constructor(id: string, bytes: Uint8Array<ArrayBuffer>) {
    this.id = id;
    // Unlike the bytes themselves, an imported key shows nothing when it is printed.
    this.#key = crypto.subtle.importKey("raw", bytes, "AES-GCM", false, ["encrypt", "decrypt"]);
    this.#key.catch(() => {});
  }

  async seal(text: string, name: string): Promise<string> {
    const nonce = crypto.getRandomValues(new Uint8Array(NONCE_BYTES));
    const data = await crypto.subtle.encrypt(parameters(nonce, name), await this.#key, ENCODER.encode(text));
    return formatSealed({ key: this.id, nonce, data: new Uint8Array(data) });
  }

  /** @throws CipherError */
  async open({ nonce, data }: SealedParts, name: string): Promise<string> {
    try {
      return DECODER.decode(await crypto.subtle.decrypt(parameters(nonce, name), await this.#key, data));
    } catch (cause) {
      throw new CipherError("it was changed after it was sealed, or another record was put in its place", { cause });
    }
  }
}

function parameters(iv: Uint8Array<ArrayBuffer>, name: string) {
  return { name: "AES-GCM", iv, additionalData: ENCODER.encode(name) };
}
