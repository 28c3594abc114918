import { createHash } from "node:crypto";
import { realpathSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import type { GrantStore } from "../../oauth/grant/grant-store.js";
import { type Cipher, CipherError, sealedWith } from "../file/cipher.js";
import { fileStore } from "../file/file.js";
import { storeError } from "../store-error.js";
import { KEYCHAIN_TIMEOUT, type Keychain, limitKeychain, osKeychain } from "./keychain.js";
import { type KeyAnswer, storeKey } from "./store-key.js";

/** How a {@link keyringStore} is kept. */
export interface KeyringStoreOptions {
  /** Where the key is. Default: the keychain of the operating system. */
  keychain?: Keychain | undefined;
  /**
   * What happens where the keychain cannot be used. `none`: every call that needs it fails. `file`: what is saved is
   * written as it is, to files that only their owner can read; what was sealed before stays, and cannot be read.
   * Default: `none`.
   */
  fallback?: "none" | "file" | undefined;
  /** Milliseconds that one call to the keychain may take, a question to the person included. Default: 10,000. */
  timeoutMs?: number | undefined;
  /** The environment in which the keychain is looked for. Default: that of this process. */
  env?: Readonly<Record<string, string | undefined>> | undefined;
  /** Hears once, before anything is written, why files are not sealed. */
  onFallback?: ((reason: string) => void) | undefined;
}

/**
 * Grants and clients in files that a key in the keychain of the operating system seals (AES-256-GCM). The keychain
 * holds that one key and nothing else; it is asked when the key is first needed, once for each store that is opened,
 * and written to once in the life of the folder. Files that were not sealed are read too, and sealed when they are next
 * saved.
 *
 * @param folder is made when something is first saved
 * @throws from its methods, `AgentAuthError` `store_failed`: the keychain is not there, is locked, says no or says
 *   nothing. `login_required`: a file was sealed with another key, or changed since; it is kept
 */
export function keyringStore(folder: string, options: KeyringStoreOptions = {}): GrantStore {
  const { keychain, fallback = "none", timeoutMs: timeout = KEYCHAIN_TIMEOUT, env, onFallback } = options;
  let toldOf = false;

  /** The cipher; undefined where files are written as they are instead. */
  const cipherOf = (answer: KeyAnswer): Cipher | undefined => {
    if ("cipher" in answer) return answer.cipher;
    if (fallback !== "file") throw answer.failure;
    if (!toldOf) onFallback?.(answer.failure.message);
    toldOf = true;
    return undefined;
  };
  const files = fileStore(folder, {
    cipher: {
      async seal(text, name) {
        const cipher = cipherOf(await key().make());
        return cipher ? cipher.seal(text, name) : text;
      },
      async open(text, name) {
        const sealer = sealedWith(text);
        if (sealer === undefined) return text;
        const answer = await key().find();
        if (!answer) throw noKey(sealer);
        const cipher = cipherOf(answer);
        if (!cipher) throw outOfReach(answer);
        return cipher.open(text, name);
      },
    },
  });
  const key = once(() => {
    const chosen = keychain
      ? limitKeychain(keychain, timeout)
      : osKeychain(accountOf(folder), { timeoutMs: timeout, env });
    return storeKey(chosen, files.lease, timeout);
  });

  return {
    ...files,
    get location() {
      return locationOf(folder, fallback, key().known);
    },
    async reserve(at) {
      // A keychain that says no is no place for what a token is about to be spent on.
      cipherOf(await key().make());
      return files.reserve(at);
    },
    async list(onUnusable) {
      const grants = await files.list(onUnusable);
      // A list without those that the keychain keeps shut would look like a list of all.
      const answer = key().known;
      if (answer && "failure" in answer) cipherOf(answer);
      return grants;
    },
    async saveClient(client, form) {
      // One that cannot be opened throws here, and is not written over.
      await files.readClient(client.issuer, form);
      await files.saveClient(client, form);
    },
  };
}

function noKey(sealer: string): CipherError {
  return new CipherError(
    `it was sealed with the key "${sealer}", and the keychain has no key for this folder: the file comes from another ` +
      "machine, another user or another folder, or its key was lost",
  );
}

function outOfReach(answer: KeyAnswer): Error {
  const { failure } = answer as Extract<KeyAnswer, { failure: unknown }>;
  return storeError(`it is sealed, and its key is out of reach: ${failure.message}`, failure, failure.hint);
}

function locationOf(folder: string, fallback: "none" | "file", answer: KeyAnswer | undefined): string {
  if (answer && "failure" in answer && fallback === "file") {
    return `files under ${folder}, not sealed, since the OS keychain cannot be used`;
  }
  const orNot = fallback === "file" && !answer ? ", or not sealed where it cannot be used" : "";
  return `files under ${folder}, sealed with a key in the OS keychain${orNot}`;
}

/** The keychain's account for a folder, by whatever path it is reached. */
export function accountOf(folder: string): string {
  return `store-key ${createHash("sha256")
    .update(realPath(resolve(folder)))
    .digest("hex")
    .slice(0, 16)}`;
}

/** The path without links, also of a folder that is not there yet: making it must not change its account. */
function realPath(path: string): string {
  try {
    return realpathSync.native(path);
  } catch (error) {
    const parent = dirname(path);
    if ((error as NodeJS.ErrnoException).code !== "ENOENT" || parent === path) return path;
    return join(realPath(parent), basename(path));
  }
}

function once<T>(make: () => T): () => T {
  let made: { value: T } | undefined;
  return () => {
    made ??= { value: make() };
    return made.value;
  };
}
