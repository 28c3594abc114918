import { AgentAuthError, isAgentAuthError, usageError } from "../../errors.js";
import { fromBase64url, toBase64url } from "../../http/base64url.js";
import { type Clock, systemClock } from "../../http/deadline.js";
import { Lru } from "../../http/lru.js";
import { checkOptionNames, type OptionNames } from "../../http/public-class.js";
import { parseJsonObject } from "../../http/strict-json.js";
import { escapeText } from "../../redact.js";
import { AesKey, KEY_BYTES, type KeyInput, keyBytes } from "./key-ring.js";
import type { RecordCipher, RecordLocation, Sealing } from "./sealing.js";
import { CipherError, KeyDeletedError, keyedNames, parseSealed } from "./sealing.js";

/** Options of {@link envelope}. */
export interface EnvelopeOptions {
  /** Encrypts a data key of 32 bytes with a key that never leaves the key management service. */
  wrap(key: Uint8Array): Promise<Uint8Array>;
  /** Decrypts what `wrap` returned. */
  unwrap(wrapped: Uint8Array): Promise<Uint8Array>;
  /** The key of the names that the engine sees. It is never exchanged: under another one no record would be found. */
  nameKey: KeyInput;
}

const OPTIONS: OptionNames<EnvelopeOptions> = { wrap: true, unwrap: true, nameKey: true };
const CACHED_MS = 5 * 60_000;
const MAX_TENANTS = 10_000;
const SCHEMA = 1;
const KIND = "wrapped-key";
/** One per tenant, whose partition says which. */
const KEY_NAME = "data key";

/**
 * Seals the records of each tenant with a data key of its own, AES-256-GCM (NIST SP 800-38D). A key management service
 * wraps the data key, which is stored once, as the record of the kind `key` in the tenant's partition, and unwrapped
 * every five minutes at most. Without that record nothing of the tenant can be opened: to delete it logs the tenant out
 * everywhere within five minutes, also in backups that do not contain it.
 *
 * Each operation of the store throws `store_unavailable` if `wrap` or `unwrap` fails.
 */
export function envelope(options: EnvelopeOptions): Sealing {
  checkOptionNames(options ?? {}, OPTIONS, "envelope");
  return openEnvelope(options, systemClock);
}

/** As {@link envelope}, with the clock of the caller. */
export function openEnvelope(options: EnvelopeOptions, clock: Pick<Clock, "now">): Sealing {
  for (const name of ["wrap", "unwrap"] as const)
    if (typeof options?.[name] !== "function") throw usageError(`the option ${name} must be a function`);
  const hashName = keyedNames(keyBytes(options.nameKey, "nameKey"));
  const keys = new Lru<DataKeys>(MAX_TENANTS);
  return {
    nameOf: hashName,
    cipherFor: (location) =>
      tenantCipher(() => {
        const known = keys.get(location.partition) ?? new DataKeys(options, location, hashName, clock);
        keys.set(location.partition, known);
        return known;
      }),
  };
}

function tenantCipher(keys: () => DataKeys): RecordCipher {
  return {
    seal: async (text, name) => (await keys().current()).seal(text, name),
    open: async (sealed, name) => {
      const parts = parseSealed(sealed);
      const key = await keys().named(parts.key);
      if (key) return key.open(parts, name);
      throw new KeyDeletedError("the key of its tenant was deleted");
    },
  };
}

class DataKeys {
  readonly #options: EnvelopeOptions;
  readonly #location: RecordLocation;
  readonly #nameOf: (text: string) => Promise<string>;
  readonly #clock: Pick<Clock, "now">;
  #cached: { key: Promise<AesKey | undefined>; at: number } | undefined;
  #making: Promise<AesKey | undefined> | undefined;

  constructor(
    options: EnvelopeOptions,
    location: RecordLocation,
    nameOf: (text: string) => Promise<string>,
    clock: Pick<Clock, "now">,
  ) {
    this.#options = options;
    this.#location = location;
    this.#nameOf = nameOf;
    this.#clock = clock;
  }

  /** The key that seals, which is made if there is none. */
  async current(): Promise<AesKey> {
    const stored = await this.#load();
    if (stored) return stored;
    this.#making ??= this.#cache(this.#make()).finally(() => {
      this.#making = undefined;
    });
    const made = await this.#making;
    if (made === undefined) throw new CipherError("the key of its tenant was deleted as soon as it was stored");
    return made;
  }

  /** The key of an id, if it is the tenant's. */
  async named(id: string): Promise<AesKey | undefined> {
    const known = await this.#load();
    if (known === undefined || known.id === id) return known;
    // Another process may have made it since.
    const stored = await this.#read(known);
    if (stored !== known) void this.#cache(Promise.resolve(stored));
    return stored?.id === id ? stored : undefined;
  }

  #load(): Promise<AesKey | undefined> {
    const cached = this.#cached;
    const isCurrent = cached !== undefined && this.#clock.now() - cached.at < CACHED_MS;
    return isCurrent ? cached.key : this.#cache(this.#read());
  }

  #cache(key: Promise<AesKey | undefined>): Promise<AesKey | undefined> {
    const drop = () => {
      this.#cached = undefined;
    };
    // A failure, and a key that is missing, are looked for again.
    key.then((found) => found ?? drop(), drop);
    this.#cached = { key, at: this.#clock.now() };
    return key;
  }

  /** The stored key; `known` without asking the key management service, if it is that. */
  async #read(known?: AesKey): Promise<AesKey | undefined> {
    const stored = await this.#location.readKey(await this.#nameOf(KEY_NAME));
    if (stored === undefined) return undefined;
    const { id, wrapped } = parseWrapped(stored);
    return known?.id === id ? known : this.#unwrap(id, wrapped);
  }

  /** Of two processes that make one, the first wins, and both use its key. */
  async #make(): Promise<AesKey | undefined> {
    const bytes = crypto.getRandomValues(new Uint8Array(KEY_BYTES));
    const id = toBase64url(crypto.getRandomValues(new Uint8Array(9)));
    const wrapped = toBase64url(await this.#callKms("wrap", bytes));
    const text = JSON.stringify({ schema: SCHEMA, kind: KIND, key: id, wrapped });
    const isStored = await this.#location.createKey(await this.#nameOf(KEY_NAME), text);
    return isStored ? new AesKey(id, bytes) : this.#read();
  }

  async #unwrap(id: string, wrapped: Uint8Array): Promise<AesKey> {
    const bytes = await this.#callKms("unwrap", wrapped);
    if (bytes.length === KEY_BYTES) return new AesKey(id, bytes);
    throw new CipherError(`unwrap returned ${bytes.length} bytes, not ${KEY_BYTES}`);
  }

  /** Calls the key management service. */
  async #callKms(what: "wrap" | "unwrap", bytes: Uint8Array): Promise<Uint8Array<ArrayBuffer>> {
    try {
      return new Uint8Array(await this.#options[what](bytes));
    } catch (cause) {
      if (isAgentAuthError(cause)) throw cause;
      const reason = cause instanceof Error ? `: ${escapeText(cause.message.slice(0, 200))}` : "";
      const message = `the key management service could not ${what} the key of a tenant${reason}`;
      throw new AgentAuthError("store_unavailable", message, { class: "unavailable", cause });
    }
  }
}

function parseWrapped(text: string): { id: string; wrapped: Uint8Array<ArrayBuffer> } {
  const { schema, kind, key, wrapped } = parseJsonObject(text) ?? {};
  const bytes = typeof wrapped === "string" ? fromBase64url(wrapped) : undefined;
  if (schema === SCHEMA && kind === KIND && typeof key === "string" && bytes) return { id: key, wrapped: bytes };
  throw new CipherError("the key of its tenant is stored in a form that this version does not read");
}
