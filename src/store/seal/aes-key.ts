import { formatSealed, NONCE_BYTES, type SealedParts } from "./sealed-record.js";
import { CipherError } from "./sealing.js";

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
