import { randomBytes } from "node:crypto";
import type { AgentAuthError } from "../../errors.js";
import type { GrantStore } from "../../oauth/grant/grant-store.js";
import { aesGcm, type Cipher, KEY_BYTES } from "../file/cipher.js";
import { storeError } from "../store-error.js";
import { type Keychain, keychainError } from "./keychain.js";

/** The cipher of the key that the keychain has, or why it cannot be had. */
export type KeyAnswer = { cipher: Cipher } | { failure: AgentAuthError };

/** The key that seals the files of one store. */
export interface StoreKey {
  /** The key; undefined when the keychain has none. */
  find(): Promise<KeyAnswer | undefined>;
  /** The key, made when the keychain has none. */
  make(): Promise<KeyAnswer>;
  /** The answer that is settled, without asking anybody. */
  readonly known: KeyAnswer | undefined;
}

/** To look, to write and to look again, and some time to spare. */
const CALLS = 4;

/**
 * Asks the keychain when the key is first needed, and never again once it has answered: neither a refresh nor a person
 * who said no meets another question. Only "there is none" is asked again, since another process may have made one.
 *
 * @param timeout milliseconds that one call to the keychain may take
 */
export function storeKey(keychain: Keychain, lease: GrantStore["lease"], timeout: number): StoreKey {
  let known: KeyAnswer | undefined;
  let finding: Promise<KeyAnswer | undefined> | undefined;
  let making: Promise<KeyAnswer> | undefined;

  const find = async () => {
    if (known) return known;
    finding ??= read(keychain).finally(() => {
      finding = undefined;
    });
    known ??= await finding;
    return known;
  };
  const makeOne = async () => {
    const found = await find();
    if (found) return found;
    const work = () => readOrWrite(keychain);
    known = await lease("the key of the store", work, { duration: CALLS * timeout, once: true });
    return known;
  };
  return {
    find,
    make() {
      making ??= makeOne().finally(() => {
        making = undefined;
      });
      return making;
    },
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
  // What it gives back is what other processes will have, whatever was written.
  const kept = await read(keychain);
  return kept ?? { failure: storeError("the keychain accepted a key and does not return it", undefined) };
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
