import { createHash, randomBytes } from "node:crypto";
import { realpathSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import type { AgentAuthError } from "../../errors.js";
import { checkOptionNames, type OptionNames, requireOptions } from "../../http/public-class.js";
import { SingleFlight } from "../../http/single-flight.js";
import type { GrantStore } from "../../oauth/model/grant-store.js";
import { quote } from "../../redact.js";
import { fileStore, sealedWith } from "../file/file.js";
import { AesKey, KEY_BYTES } from "../seal/key-ring.js";
import { CipherError, parseSealed, type RecordCipher } from "../seal/sealing.js";
import { storeError } from "../store-error.js";
import { KEYCHAIN_TIMEOUT, type Keychain, keychainError, limitKeychain, osKeychain } from "./keychain.js";

/** Options of {@link keyringStore}. */
export interface KeyringStoreOptions {
  /** Where the key is. Default: the keychain of the operating system. */
  keychain?: Keychain | undefined;
  /**
   * What happens where the keychain cannot be used. `none`: every call that needs it fails. `file`: files are written
   * unsealed, readable by their owner only; files that are sealed stay sealed, and cannot be read. Default: `none`.
   */
  fallback?: "none" | "file" | undefined;
  /** Milliseconds that one call to the keychain may take, including a prompt to the user. Default: 10,000. */
  timeoutMs?: number | undefined;
  /** The environment in which the keychain is looked up. Default: that of this process. */
  env?: Readonly<Record<string, string | undefined>> | undefined;
  /** Called once, before the first write, with the reason why files are not sealed. */
  onFallback?: ((reason: string) => void) | undefined;
  /** Called after a file that held nothing was renamed to `kept`: it counts as missing. Default: such a file is an error. */
  onEmptyFile?: ((path: string, kept: string) => void) | undefined;
}

const OPTIONS: OptionNames<KeyringStoreOptions> = {
  ...{ keychain: true, fallback: true, timeoutMs: true, env: true, onFallback: true, onEmptyFile: true },
};

/**
 * Grants and clients in files that are sealed (AES-256-GCM) with a key in the keychain of the operating system. The
 * keychain stores that one key and nothing else; it is read when the key is first needed, once for each store that is
 * opened, and written once in the lifetime of the folder. Unsealed files are sealed when the first of them is read; where
 * that fails for the one that is read, so does the read.
 *
 * @param folder is created by the first save
 * @throws from its methods, `AgentAuthError` `store_failed`: the keychain is missing or locked, denies access or does not
 *   respond. `login_required`: a file was sealed with another key, or changed since; it is not removed
 */
export function keyringStore(folder: string, options: KeyringStoreOptions = {}): GrantStore {
  requireOptions({ folder }, { folder: "string" }, "keyringStore");
  checkOptionNames(options, OPTIONS, "keyringStore");
  const { keychain, fallback = "none", timeoutMs: timeout = KEYCHAIN_TIMEOUT, env, onFallback } = options;
  let isReported = false;
  let opened: StoreKey | undefined;

  /** The cipher; undefined where files are written as they are instead. */
  const readCipher = (result: KeyResult): RecordCipher | undefined => {
    if ("cipher" in result) return result.cipher;
    if (fallback !== "file") throw result.failure;
    if (!isReported) onFallback?.(result.failure.message);
    isReported = true;
    return undefined;
  };
  const files = fileStore(folder, {
    onEmptyFile: options.onEmptyFile,
    cipher: {
      async seal(text, name) {
        const cipher = readCipher(await key().make());
        return cipher ? cipher.seal(text, name) : text;
      },
      async open(text, name) {
        const sealer = sealedWith(text);
        if (sealer === undefined) return text;
        const result = await key().find();
        if (!result)
          throw new CipherError(
            `it was sealed with the key "${sealer}", and the keychain has no key for this folder: the file comes from another ` +
              "machine, another user or another folder, or its key was lost",
          );
        const cipher = readCipher(result);
        if (!cipher) throw keyUnavailable(result);
        return cipher.open(text, name);
      },
    },
  });
  const key = (): StoreKey => {
    const choose = () =>
      keychain ? limitKeychain(keychain, timeout) : osKeychain(keychainAccount(folder), { timeoutMs: timeout, env });
    opened ??= storeKey(choose(), files.lease, timeout);
    return opened;
  };

  return {
    ...files,
    get location() {
      return describeLocation(folder, fallback, key().known);
    },
    async reserve(at) {
      // A keychain that denies access must be noticed before a refresh token is spent.
      readCipher(await key().make());
      return files.reserve(at);
    },
    async list(filter, onUnusable) {
      const grants = await files.list(filter, onUnusable);
      // A list without the grants that cannot be unsealed would look complete.
      const result = key().known;
      if (result && "failure" in result) readCipher(result);
      return grants;
    },
    async saveClient(client, form) {
      // A client that cannot be unsealed throws here, and is not overwritten.
      await files.readClient(client.issuer, form);
      await files.saveClient(client, form);
    },
  };
}

function keyUnavailable(result: KeyResult): Error {
  const { failure } = result as Extract<KeyResult, { failure: unknown }>;
  return storeError(`it is sealed, and its key is not available: ${failure.message}`, failure, failure.hint);
}

function describeLocation(folder: string, fallback: "none" | "file", result: KeyResult | undefined): string {
  if (result && "failure" in result && fallback === "file")
    return `files under ${folder}, not sealed, since the OS keychain cannot be used`;
  if (result && "failure" in result) return `files under ${folder}, which need the OS keychain: it cannot be used`;
  if (result) return `files under ${folder}, sealed with a key in the OS keychain`;
  const orNot = fallback === "file" ? ", or not sealed where it cannot be used" : "";
  return `files under ${folder}, to be sealed with a key in the OS keychain${orNot}`;
}

/** The keychain's account for a folder, the same for every path that leads to it. */
export function keychainAccount(folder: string): string {
  const hash = createHash("sha256").update(realPath(resolve(folder)));
  return `store-key ${hash.digest("hex").slice(0, 16)}`;
}

/** The path without links, also of a folder that does not exist yet: creating it must not change its account. */
function realPath(path: string): string {
  try {
    return realpathSync.native(path);
  } catch {
    const parent = dirname(path);
    return parent === path ? path : join(realPath(parent), basename(path));
  }
}

/** The cipher of the key in the keychain, or why there is none. */
type KeyResult = { cipher: RecordCipher } | { failure: AgentAuthError };

interface StoreKey {
  /** Reads the key; undefined when the keychain has none. */
  find(): Promise<KeyResult | undefined>;
  /** Reads the key, or creates one when the keychain has none. */
  make(): Promise<KeyResult>;
  /** The result so far, without a call to the keychain. */
  readonly known: KeyResult | undefined;
}

/** To read, to write, to read again, and one to spare. */
const CALLS = 4;

/**
 * Reads the keychain when the key is first needed, and never again after that, so that the user gets one prompt at most.
 * Only where there is no key it reads again, because another process may have created one.
 *
 * @param timeout milliseconds that one call to the keychain may take
 */
function storeKey(keychain: Keychain, lease: GrantStore["lease"], timeout: number): StoreKey {
  let known: KeyResult | undefined;
  const reads = new SingleFlight<KeyResult | undefined>();
  const writes = new SingleFlight<KeyResult>();

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

async function readOrWrite(keychain: Keychain): Promise<KeyResult> {
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

async function read(keychain: Keychain): Promise<KeyResult | undefined> {
  let value: string | undefined;
  try {
    value = await keychain.get();
  } catch (cause) {
    return { failure: keychainError(cause) };
  }
  if (value === undefined) return undefined;
  const key = Buffer.from(value, "base64url");
  if (key.length === KEY_BYTES && key.toString("base64url") === value)
    return { cipher: keychainCipher(new Uint8Array(key)) };
  const hint = 'remove the entry "store-key …" of agentauth from the keychain, if nothing else needs it';
  return { failure: storeError("the keychain's entry for agentauth's key is not a valid key", undefined, hint) };
}

/** Seals and opens files with the key in the keychain. @param bytes {@link KEY_BYTES} random bytes */
export function keychainCipher(bytes: Uint8Array<ArrayBuffer>): RecordCipher {
  const key = new AesKey(createHash("sha256").update(bytes).digest("hex").slice(0, 8), bytes, "file");
  return {
    seal: (text, name) => key.seal(text, name),
    open: async (sealed, name) => {
      const parts = parseSealed(sealed);
      if (parts.key === key.id) return key.open(parts, name);
      throw new CipherError(
        `it was sealed with the key ${quote(parts.key)}, and the keychain has the key "${key.id}": the file comes from ` +
          "another machine or another user, or its key was lost",
      );
    },
  };
}
