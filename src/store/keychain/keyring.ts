import { createHash } from "node:crypto";
import { realpathSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import type { GrantStore } from "../../oauth/model/grant-store.js";
import { type Cipher, sealedWith } from "../file/cipher.js";
import { fileStore } from "../file/file.js";
import { CipherError } from "../seal/sealing.js";
import { storeError } from "../store-error.js";
import { KEYCHAIN_TIMEOUT, type Keychain, limitKeychain, osKeychain } from "./keychain.js";
import { type KeyAnswer, type StoreKey, storeKey } from "./store-key.js";

/** Options of {@link keyringStore}. */
export interface KeyringStoreOptions {
  /** Where the key is. Default: the keychain of the operating system. */
  keychain?: Keychain | undefined;
  /**
   * What happens where the keychain cannot be used. `none`: every call that needs it fails. `file`: files are written
   * unsealed, readable by their owner only; files that are sealed stay sealed, and cannot be read.
   * Default: `none`.
   */
  fallback?: "none" | "file" | undefined;
  /** Milliseconds that one call to the keychain may take, including a prompt to the user. Default: 10,000. */
  timeoutMs?: number | undefined;
  /** The environment in which the keychain is looked up. Default: that of this process. */
  env?: Readonly<Record<string, string | undefined>> | undefined;
  /** Called once, before the first write, with the reason why files are not sealed. */
  onFallback?: ((reason: string) => void) | undefined;
}

/**
 * Grants and clients in files that are sealed (AES-256-GCM) with a key in the keychain of the operating system. The
 * keychain stores that one key and nothing else; it is read when the key is first needed, once for each store that is
 * opened, and written once in the lifetime of the folder. Unsealed files are read too, and sealed when they are next
 * saved.
 *
 * @param folder is created by the first save
 * @throws from its methods, `AgentAuthError` `store_failed`: the keychain is missing or locked, denies access or does not
 *   respond. `login_required`: a file was sealed with another key, or changed since; it is not removed
 */
export function keyringStore(folder: string, options: KeyringStoreOptions = {}): GrantStore {
  const { keychain, fallback = "none", timeoutMs: timeout = KEYCHAIN_TIMEOUT, env, onFallback } = options;
  let isReported = false;
  let opened: StoreKey | undefined;

  /** The cipher; undefined where files are written as they are instead. */
  const cipherOf = (answer: KeyAnswer): Cipher | undefined => {
    if ("cipher" in answer) return answer.cipher;
    if (fallback !== "file") throw answer.failure;
    if (!isReported) onFallback?.(answer.failure.message);
    isReported = true;
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
        if (!cipher) throw keyUnavailable(answer);
        return cipher.open(text, name);
      },
    },
  });
  const key = (): StoreKey => {
    const choose = () =>
      keychain ? limitKeychain(keychain, timeout) : osKeychain(accountOf(folder), { timeoutMs: timeout, env });
    opened ??= storeKey(choose(), files.lease, timeout);
    return opened;
  };

  return {
    ...files,
    get location() {
      return locationOf(folder, fallback, key().known);
    },
    async reserve(at) {
      // A keychain that denies access must be noticed before a refresh token is spent.
      cipherOf(await key().make());
      return files.reserve(at);
    },
    async list(filter, onUnusable) {
      const grants = await files.list(filter, onUnusable);
      // A list without the grants that cannot be unsealed would look complete.
      const answer = key().known;
      if (answer && "failure" in answer) cipherOf(answer);
      return grants;
    },
    async saveClient(client, form) {
      // A client that cannot be unsealed throws here, and is not overwritten.
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

function keyUnavailable(answer: KeyAnswer): Error {
  const { failure } = answer as Extract<KeyAnswer, { failure: unknown }>;
  return storeError(`it is sealed, and its key is not available: ${failure.message}`, failure, failure.hint);
}

function locationOf(folder: string, fallback: "none" | "file", answer: KeyAnswer | undefined): string {
  if (answer && "failure" in answer && fallback === "file") {
    return `files under ${folder}, not sealed, since the OS keychain cannot be used`;
  }
  const orNot = fallback === "file" && !answer ? ", or not sealed where it cannot be used" : "";
  return `files under ${folder}, sealed with a key in the OS keychain${orNot}`;
}

/** The keychain's account for a folder, the same for every path that leads to it. */
export function accountOf(folder: string): string {
  return `store-key ${createHash("sha256")
    .update(realPath(resolve(folder)))
    .digest("hex")
    .slice(0, 16)}`;
}

/** The path without links, also of a folder that does not exist yet: creating it must not change its account. */
function realPath(path: string): string {
  try {
    return realpathSync.native(path);
  } catch (error) {
    const parent = dirname(path);
    if ((error as NodeJS.ErrnoException).code !== "ENOENT" || parent === path) return path;
    return join(realPath(parent), basename(path));
  }
}
