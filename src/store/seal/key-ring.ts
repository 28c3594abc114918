import { usageError } from "../../errors.js";
import { fromBase64url } from "../../http/base64url.js";
import { checkOptionNames, type OptionNames } from "../../http/public-class.js";
import { quote } from "../../redact.js";
import type { RecordCipher, SealedParts, Sealing } from "./sealing.js";
import { CipherError, formatSealed, keyedNames, NONCE_BYTES, parseSealed } from "./sealing.js";

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
  throw usageError(`${option} must have ${form}; ${describe(key, bytes)}`, "make one with: openssl rand -hex 32");
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
  readonly #unit: string;

  /**
   * @param bytes {@link KEY_BYTES} random bytes
   * @param unit what each text is, for messages
   */
  constructor(id: string, bytes: Uint8Array<ArrayBuffer>, unit: "record" | "file" = "record") {
    this.id = id;
    this.#unit = unit;
    // Unlike the bytes themselves, an imported key shows nothing when it is printed.
    this.#key = crypto.subtle.importKey("raw", bytes, "AES-GCM", false, ["encrypt", "decrypt"]);
    this.#key.catch(() => {});
  }

  async seal(text: string, name: string): Promise<string> {
    const nonce = crypto.getRandomValues(new Uint8Array(NONCE_BYTES));
    const data = await crypto.subtle.encrypt(gcmParameters(nonce, name), await this.#key, ENCODER.encode(text));
    return formatSealed({ key: this.id, nonce, data: new Uint8Array(data) });
  }

  /** @throws CipherError */
  async open({ nonce, data }: SealedParts, name: string): Promise<string> {
    try {
      return DECODER.decode(await crypto.subtle.decrypt(gcmParameters(nonce, name), await this.#key, data));
    } catch (cause) {
      const message = `it was changed after it was sealed, or another ${this.#unit} was put in its place`;
      throw new CipherError(message, { cause });
    }
  }
}

function gcmParameters(iv: Uint8Array<ArrayBuffer>, name: string) {
  return { name: "AES-GCM", iv, additionalData: ENCODER.encode(name) };
}

/** Options of {@link keyRing}. */
export interface KeyRingOptions {
  /** The id of the key that seals. */
  current: string;
  /** Every key that records were sealed with, by its id, which is stored with each record. */
  keys: Readonly<Record<string, KeyInput>>;
  /** The key of the names that the engine sees. It is never exchanged: under another one no record would be found. */
  nameKey: KeyInput;
}

/** Seals with one key and opens with several, so that keys can be exchanged. */
export interface KeyRing extends Sealing, RecordCipher {
  /** The id of the key that seals. */
  readonly current: string;
  /** The ids of all keys. */
  readonly ids: readonly string[];
}

const OPTIONS: OptionNames<KeyRingOptions> = { current: true, keys: true, nameKey: true };

/**
 * Seals records with AES-256-GCM (NIST SP 800-38D) under the current key, and opens them with any of the keys. To
 * exchange the key: add the new one to `keys` of every process, then make it `current`, then call `reseal`, and drop
 * the old one when `keysInUse` does not count it any more.
 *
 * @throws `AgentAuthError` `usage` for a key that is not 32 bytes, or a `current` that is not among `keys`
 */
export function keyRing(options: KeyRingOptions): KeyRing {
  checkOptionNames(options, OPTIONS, "keyRing");
  const { current, keys, nameKey } = options;
  const imported = Object.entries(keys ?? {}).map(([id, key]) => new AesKey(id, keyBytes(key, `keys.${id}`)));
  const ring = new Map(imported.map((key) => [key.id, key]));
  const ids = [...ring.keys()];
  const sealer = ring.get(current);
  if (sealer === undefined) {
    const message = `current is ${quote(current)}, and keys has no key of this id: it has ${listIds(ids)}`;
    throw usageError(message, "add the key to keys, or name another one");
  }
  const hashName = keyedNames(keyBytes(nameKey, "nameKey"));
  const cipher: RecordCipher = {
    seal: (text, name) => sealer.seal(text, name),
    open: async (sealed, name) => {
      const parts = parseSealed(sealed);
      const opener = ring.get(parts.key);
      if (opener) return opener.open(parts, name);
      throw new CipherError(
        `it was sealed with the key ${quote(parts.key)}, which is not in the key ring: that has ${listIds(ids)}`,
      );
    },
  };
  return { current, ids, nameOf: hashName, cipherFor: () => cipher, ...cipher };
}

function listIds(ids: readonly string[]): string {
  return ids.length === 0 ? "none" : ids.map((id) => quote(id)).join(", ");
}
