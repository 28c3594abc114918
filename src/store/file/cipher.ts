import { createCipheriv, createDecipheriv, createHash, createSecretKey, randomBytes } from "node:crypto";
import { isJsonObject, parseStrictJson } from "../../http/strict-json.js";
import { quote } from "../../redact.js";
import { KEY_BYTES } from "../seal/key-ring.js";
import { CipherError, formatSealed, KIND, NONCE_BYTES, parseSealed, TAG_BYTES } from "../seal/sealing.js";

/** Turns the text of a stored file into what is written to the disk, and back. */
export interface Cipher {
  /** @param name the file's own identity (for example "grant:<digest>"), bound into the result so that files cannot be swapped */
  seal(text: string, name: string): string | Promise<string>;
  /** Whether a text is a sealed one. @throws CipherError as {@link sealedWith} */
  isSealed(text: string): boolean;
  /** @throws CipherError where the text cannot be opened */
  open(sealed: string, name: string): string | Promise<string>;
}

/**
 * AES-256-GCM (NIST SP 800-38D) with a random nonce for each text and the name as additional data.
 *
 * @param key {@link KEY_BYTES} random bytes
 */
export function aesGcm(key: Uint8Array): Cipher {
  if (key.length !== KEY_BYTES) throw new TypeError(`a key has ${KEY_BYTES} bytes, not ${key.length}`);
  // Unlike the bytes themselves, a key object shows nothing when it is printed.
  const secret = createSecretKey(key);
  const id = keyId(key);
  return {
    isSealed: (text) => sealedWith(text) !== undefined,
    seal(text, name) {
      const nonce = randomBytes(NONCE_BYTES);
      const cipher = createCipheriv("aes-256-gcm", secret, nonce, { authTagLength: TAG_BYTES });
      cipher.setAAD(Buffer.from(name));
      const data = Buffer.concat([cipher.update(text, "utf8"), cipher.final(), cipher.getAuthTag()]);
      return formatSealed({ key: id, nonce, data });
    },
    open(sealed, name) {
      const { key: sealedWith, nonce, data } = parseSealed(sealed);
      if (sealedWith !== id) {
        throw new CipherError(
          `it was sealed with the key ${quote(sealedWith)}, and the keychain has the key "${id}": the file comes from ` +
            "another machine or another user, or its key was lost",
        );
      }
      const decipher = createDecipheriv("aes-256-gcm", secret, nonce, { authTagLength: TAG_BYTES });
      decipher.setAAD(Buffer.from(name));
      decipher.setAuthTag(data.subarray(-TAG_BYTES));
      try {
        return Buffer.concat([decipher.update(data.subarray(0, -TAG_BYTES)), decipher.final()]).toString("utf8");
      } catch (cause) {
        throw new CipherError("it was changed after it was sealed, or another file was put in its place", { cause });
      }
    },
  };
}

/** The id of a key, which reveals nothing about it. */
function keyId(key: Uint8Array): string {
  return createHash("sha256").update(key).digest("hex").slice(0, 8);
}

/**
 * The id of the key that a text was sealed with; undefined for a text that is not sealed.
 *
 * @throws CipherError where the text is sealed, but not as this version seals
 */
export function sealedWith(text: string): string | undefined {
  return isSealed(text) ? parseSealed(text).key : undefined;
}

function isSealed(text: string): boolean {
  try {
    const value = parseStrictJson(text);
    return isJsonObject(value) && value["kind"] === KIND;
  } catch {
    // Not JSON, so not sealed: the decoder of plain text reports what is wrong with it.
    return false;
  }
}
