import { randomBytes } from "node:crypto";
import type { AgentAuthError } from "../../errors.js";
import { SingleFlight } from "../../http/single-flight.js";
import type { GrantStore } from "../../oauth/model/grant-store.js";
import { aesGcm, type Cipher } from "../file/cipher.js";
import { KEY_BYTES } from "../seal/aes-key.js";
import { storeError } from "../store-error.js";
import { type Keychain, keychainError } from "./keychain.js";

/** The cipher of the key in the keychain, or why there is none. */
export type KeyAnswer = { cipher: Cipher } | { failure: AgentAuthError };

/** The key that seals the files of one store. */
export interface StoreKey {
  /** Reads the key; undefined when the keychain has none. */
  find(): Promise<KeyAnswer | undefined>;
  /** Reads the key, or creates one when the keychain has none. */
  make(): Promise<KeyAnswer>;
  /** The result so far, without a call to the keychain. */
  readonly known: KeyAnswer | undefined;
}

/** To read, to write, to read again, and one to spare. */
const CALLS = 4;

/**
 * Reads the keychain when the key is first needed, and never again after that, so that the user gets one prompt at most.
 * Only where there is no key it reads again, because another process may have created one.
 *
 * @param timeout milliseconds that one call to the keychain may take
 */
export function storeKey(keychain: Keychain, lease: GrantStore["lease"], timeout: number): StoreKey {
  let known: KeyAnswer | undefined;
  const reads = new SingleFlight<KeyAnswer | undefined>();
  const writes = new SingleFlight<KeyAnswer>();

  const find = async () => {
    known ??= await reads.run("", () => read(keychain), undefined);
    return known;
  };
  const create = async () => {
    const work = () => readOrWrite(keychain);
    known = (await find()) ?? (await lease("the key of the store", work, { durationMs: CALLS * timeout, once: true }));
    return known;
  };
  return {
    find,
    make: () => writes.run("", create, undefined),
    get known() {
      return known;
    },
  };
}

async function readOrWrite(keychain: Keychain): Promise<KeyAnswer> {
  const there = await read(keychain);
  if (there) return there;
  try {
    await keychain.set(randomBytes(KEY_BYTES).toString("base64url"));
  } catch (cause) {
    return { failure: keychainError(cause) };
  }
  // Other processes use the key that the keychain returns, whatever was written.
  const stored = await read(keychain);
  return stored ?? { failure: storeError("the keychain accepted a key and does not return it", undefined) };
}

async function read(keychain: Keychain): Promise<KeyAnswer | undefined> {
  let value: string | undefined;
  try {
    value = await keychain.get();
  } catch (cause) {
    return { failure: keychainError(cause) };
  }
  if (value === undefined) return undefined;
  const key = Buffer.from(value, "base64url");
  if (key.length === KEY_BYTES && key.toString("base64url") === value) return { cipher: aesGcm(key) };
  const hint = 'remove the entry "store-key …" of agentauth from the keychain, if nothing else needs it';
  return { failure: storeError("the keychain's entry for agentauth's key is not a valid key", undefined, hint) };
}
