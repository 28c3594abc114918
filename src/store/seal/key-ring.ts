import { AgentAuthError } from "../../errors.js";
import { quote } from "../../redact.js";
import { AesKey, type KeyInput, keyBytes } from "./aes-key.js";
import { CipherError, keyedNames, parseSealed, type RecordCipher, type Sealing } from "./sealing.js";

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

/**
 * Seals records with AES-256-GCM (NIST SP 800-38D) under the current key, and opens them with any of the keys. To
 * exchange the key: add the new one to `keys` of every process, then make it `current`, then call `reseal`, and drop
 * the old one when `keysInUse` does not count it any more.
 *
 * @throws `AgentAuthError` `usage` for a key that is not 32 bytes, or a `current` that is not among `keys`
 */
export function keyRing({ current, keys, nameKey }: KeyRingOptions): KeyRing {
  const ring = new Map(
    Object.entries(keys ?? {}).map(([id, key]) => [id, new AesKey(id, keyBytes(key, `keys.${id}`))]),
  );
  const ids = [...ring.keys()];
  const sealer = ring.get(current);
  if (sealer === undefined) {
    const message = `current is ${quote(current)}, and keys has no key of this id: it has ${listed(ids)}`;
    throw new AgentAuthError("usage", message, { class: "usage", hint: "add the key to keys, or name another one" });
  }
  const nameOf = keyedNames(keyBytes(nameKey, "nameKey"));
  const cipher: RecordCipher = {
    seal: (text, name) => sealer.seal(text, name),
    open: async (sealed, name) => {
      const parts = parseSealed(sealed);
      const opener = ring.get(parts.key);
      if (opener) return opener.open(parts, name);
      throw new CipherError(
        `it was sealed with the key ${quote(parts.key)}, which is not in the key ring: that has ${listed(ids)}`,
      );
    },
  };
  return { current, ids, nameOf, cipherFor: () => cipher, ...cipher };
}

function listed(ids: readonly string[]): string {
  return ids.length === 0 ? "none" : ids.map((id) => quote(id)).join(", ");
}
