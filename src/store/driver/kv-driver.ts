import { isAgentAuthError, usageError } from "../../errors.js";
import { toBase64url } from "../../http/base64url.js";
import type { Clock } from "../../http/deadline.js";
import { boundedDriver, unavailableError } from "./bounded-driver.js";
import type {
  LeaseBusy,
  LeaseClaim,
  LeaseHeld,
  PutOptions,
  RecordKey,
  ScanFilter,
  StoreDriver,
  StoredRecord,
  Version,
} from "./driver.js";
import { claimOver, extended, type LeaseEntry, releaseEntry } from "./lease-entry.js";

/** How an entry is set. */
export interface KvSetOptions {
  /** Milliseconds after which the cache may drop the entry; the driver does not use it any more then. Default: it stays. */
  readonly expiresInMs?: number | undefined;
}

/** Three functions of a cache. The keys are texts of 43 letters, digits, `-` and `_` after the prefix. */
export interface KvFunctions {
  /** The text under a key, as the last acknowledged change left it; undefined if there is none. */
  get(key: string): Promise<string | undefined>;
  /**
   * Sets a text, in one step, if exactly `expected` is stored (undefined: if nothing is).
   *
   * @returns whether it was set
   */
  compareAndSet(key: string, expected: string | undefined, text: string, options: KvSetOptions): Promise<boolean>;
  /**
   * Removes a text, in one step, if exactly `expected` is stored.
   *
   * @returns whether it was removed
   */
  delete(key: string, expected: string): Promise<boolean>;
}

/** Options of {@link kvDriver}. */
export interface KvDriverOptions {
  /** What all keys begin with. Default: `agentauth:`. */
  readonly prefix?: string | undefined;
  /** Where the cache is, as text for the user. Default: `a cache`. */
  readonly location?: string | undefined;
  /** Milliseconds for each operation, which makes several calls. Default: 2,000. */
  readonly timeoutMs?: number | undefined;
  /** The clock of leases and of records that expire. Default: that of this machine when the process began, counted on. */
  readonly clock?: Pick<Clock, "epoch"> | undefined;
}

/** What is stored of a record. */
interface Entry {
  readonly version: string;
  readonly value: string;
  readonly tags: Readonly<Record<string, string>>;
  readonly expiresAt?: number | undefined;
}

const TRIES = 50;
const LEASE_MS = 30 * 24 * 3_600_000;

/**
 * A driver over a cache that can compare and set. It cannot promise what the cache has not: leases and expiry count by the
 * clocks of the machines, which must agree within a second; there is no watch; a partition has an index of its ids in one
 * entry, so it suits thousands of logins and not a hundred thousand.
 *
 * @example
 * const store = grantStore(kvDriver({ get, compareAndSet, delete: remove }), { seal });
 */
export function kvDriver(functions: KvFunctions, options: KvDriverOptions = {}): StoreDriver {
  const { timeoutMs = 2000, location = "a cache", prefix = "agentauth:" } = options;
  const epoch = options.clock?.epoch ?? (() => Math.floor(performance.timeOrigin + performance.now()));
  return boundedDriver(new KvDriver(functions, { location, prefix, epoch }), timeoutMs);
}

/** Each change is one that the cache compares; what comes in between is tried again. */
class KvDriver implements StoreDriver {
  readonly system = "cache";
  readonly location: string;
  readonly #functions: KvFunctions;
  readonly #prefix: string;
  readonly #epoch: () => number;

  constructor(
    functions: KvFunctions,
    { location, prefix, epoch }: { location: string; prefix: string; epoch: () => number },
  ) {
    this.#functions = functions;
    this.location = location;
    this.#prefix = prefix;
    this.#epoch = epoch;
  }

  async get(key: RecordKey): Promise<StoredRecord | undefined> {
    const { entry } = await this.#read(key);
    return entry && recordOf(key, entry);
  }

  async put(key: RecordKey, value: string, expected: Version | undefined, options: PutOptions = {}) {
    const { text, entry } = await this.#read(key);
    if (entry?.version !== expected) return undefined;
    // In the index first: a record that is not in it is found by no scan.
    await this.#list(["partitions", key.kind], key.partition);
    await this.#list(["ids", key.kind, key.partition], key.id);
    const { expiresInMs, tags = {} } = options;
    const expiresAt = expiresInMs === undefined ? undefined : this.#epoch() + expiresInMs;
    const next: Entry = { version: crypto.randomUUID(), value, tags, expiresAt };
    const isStored = await this.#set(nameOf(key), text, JSON.stringify(next), { expiresInMs });
    return isStored ? (next.version as Version) : undefined;
  }

  async delete(key: RecordKey, expected?: Version): Promise<boolean> {
    return this.#again(async () => {
      const { text, entry } = await this.#read(key);
      if (text === undefined || entry === undefined) return false;
      if (expected !== undefined && entry.version !== expected) return false;
      const name = await this.#keyOf(nameOf(key));
      if (!(await this.#reportErrors(() => this.#functions.delete(name, text)))) return undefined;
      await this.#unlist(key);
      return true;
    });
  }

  async scan(filter: ScanFilter, { limit, cursor }: { limit: number; cursor?: string | undefined }) {
    const { kind, partition, tags = {} } = filter;
    const [from = "", after] = placeOf(cursor);
    const partitions = partition === undefined ? await this.#idsOf(["partitions", kind]) : [partition];
    for (const each of partitions.filter((one) => one >= from)) {
      const ids = await this.#idsOf(["ids", kind, each]);
      const left = ids.filter((id) => after === undefined || each !== from || id > after);
      if (left.length === 0) continue;
      const part = left.slice(0, limit);
      const found = await Promise.all(part.map((id) => this.#read({ kind, partition: each, id })));
      const items = found.flatMap(({ entry }, nth) => {
        const isSelected = entry && Object.entries(tags).every(([name, value]) => entry.tags[name] === value);
        return isSelected ? [recordOf({ kind, partition: each, id: part[nth] ?? "" }, entry)] : [];
      });
      const isLast = part.length === left.length && each === partitions.at(-1);
      return { items, cursor: isLast ? undefined : JSON.stringify([each, part.at(-1)]) };
    }
    return { items: [], cursor: undefined };
  }

  async claim(key: RecordKey, claim: LeaseClaim): Promise<LeaseHeld | LeaseBusy> {
    return this.#changeLease(key, (lease, now) => claimOver(lease, claim, { attempt: (lease?.attempt ?? 0) + 1, now }));
  }

  async extend(key: RecordKey, claim: LeaseClaim): Promise<boolean> {
    return this.#changeLease(key, (lease, now) => afterChange(extended(lease, claim, now)));
  }

  async release(key: RecordKey, claim: Parameters<StoreDriver["release"]>[1]): Promise<void> {
    await this.#changeLease(key, (lease, now) => afterChange(releaseEntry(lease, claim, now)));
  }

  /** Answers about a lease, and stores what it is from then on, if anything. */
  #changeLease<T>(
    key: RecordKey,
    change: (lease: LeaseEntry | undefined, now: number) => { entry?: LeaseEntry | undefined; answer: T },
  ): Promise<T> {
    const name = ["lease", ...nameOf(key)];
    return this.#again(async () => {
      const text = await this.#text(name);
      const { entry, answer } = change(text === undefined ? undefined : JSON.parse(text), this.#epoch());
      const isDone = !entry || (await this.#set(name, text, JSON.stringify(entry), { expiresInMs: LEASE_MS }));
      return isDone ? answer : undefined;
    });
  }

  /** The stored text, and what it says; a record that has expired is none. */
  async #read(key: RecordKey): Promise<{ text: string | undefined; entry: Entry | undefined }> {
    const text = await this.#text(nameOf(key));
    const entry: Entry | undefined = text === undefined ? undefined : JSON.parse(text);
    const isLive = entry?.expiresAt === undefined || this.#epoch() < entry.expiresAt;
    return { text, entry: isLive ? entry : undefined };
  }

  async #idsOf(list: string[]): Promise<string[]> {
    return JSON.parse((await this.#text(list)) ?? "[]");
  }

  /** Makes a list have an id, or not. */
  #list(list: string[], id: string, isIn = true): Promise<boolean> {
    return this.#again(async () => {
      const text = await this.#text(list);
      const ids: string[] = JSON.parse(text ?? "[]");
      if (ids.includes(id) === isIn) return true;
      const others = ids.filter((one) => one !== id);
      const next = isIn ? [...others, id].sort() : others;
      return (await this.#set(list, text, JSON.stringify(next), {})) || undefined;
    });
  }

  /** Takes the id of a removed record from its list, and puts it back if the record was stored again in between. */
  async #unlist(key: RecordKey): Promise<void> {
    const list = ["ids", key.kind, key.partition];
    await this.#list(list, key.id, false);
    if ((await this.#read(key)).entry) await this.#list(list, key.id);
  }

  async #text(parts: readonly string[]): Promise<string | undefined> {
    const key = await this.#keyOf(parts);
    return (await this.#reportErrors(() => this.#functions.get(key))) ?? undefined;
  }

  async #set(parts: readonly string[], before: string | undefined, text: string, options: KvSetOptions) {
    const key = await this.#keyOf(parts);
    return this.#reportErrors(() => this.#functions.compareAndSet(key, before, text, options));
  }

  /** A key that any cache takes, and another one for each name. */
  async #keyOf(parts: readonly string[]): Promise<string> {
    const bytes = new TextEncoder().encode(JSON.stringify(parts));
    return `${this.#prefix}${toBase64url(new Uint8Array(await crypto.subtle.digest("SHA-256", bytes)))}`;
  }

  async #reportErrors<T>(work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (cause) {
      if (isAgentAuthError(cause)) throw cause;
      throw unavailableError(`${this.location} failed`, cause);
    }
  }

  /** Tries again while others change the same entry in between. */
  async #again<T>(attempt: () => Promise<T | undefined>): Promise<T> {
    for (let tries = 1; tries <= TRIES; tries++) {
      const result = await attempt();
      if (result !== undefined) return result;
      await new Promise((resolve) => setTimeout(resolve, Math.random() * Math.min(tries, 10)));
    }
    throw unavailableError(`other processes change the same entry of ${this.location} faster than this one`);
  }
}

function nameOf({ kind, partition, id }: RecordKey): [string, string, string] {
  return [kind, partition, id];
}

function recordOf(key: RecordKey, { version, value }: Entry): StoredRecord {
  return { key, version: version as Version, value };
}

/** What is stored of a lease that its owner changed, and whether it was the owner. */
function afterChange(entry: LeaseEntry | undefined): { entry: LeaseEntry | undefined; answer: boolean } {
  return { entry, answer: entry !== undefined };
}

/** The partition and the id after which a part begins. */
function placeOf(cursor: string | undefined): [string?, string?] {
  try {
    const place: unknown = JSON.parse(cursor ?? "[]");
    if (Array.isArray(place) && place.every((part) => typeof part === "string")) return place as [string?, string?];
  } catch {}
  throw usageError("the cursor is not one of this store");
}
