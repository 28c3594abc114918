import { AgentAuthError, isAgentAuthError } from "../../errors.js";
import { toBase64url } from "../../http/base64url.js";
import type { Clock } from "../../http/deadline.js";
import { boundedDriver } from "./bounded-driver.js";
import type {
  LeaseClaim,
  LeaseTrace,
  PutOptions,
  RecordKey,
  ScanFilter,
  StoreDriver,
  StoredRecord,
  Version,
} from "./driver.js";

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

/** What is stored of the newest claim under a key; without an owner, it was released without a trace. */
interface LeaseEntry extends Omit<LeaseTrace, "owner" | "now"> {
  readonly owner: string | undefined;
  readonly until: number;
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
    for (const each of partitions.filter((one) => partition !== undefined || one >= from)) {
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

  async claim(key: RecordKey, { owner, ttlMs, note }: LeaseClaim) {
    return this.#again(async () => {
      const { text, lease } = await this.#lease(key);
      const now = this.#epoch();
      const by = lease?.owner === undefined ? undefined : { ...traceOf(lease, lease.owner), now };
      if (lease && by && isHeld(lease, now)) return { held: false as const, by, leftMs: lease.until - now };
      const attempt = (lease?.attempt ?? 0) + 1;
      const next: LeaseEntry = { attempt, owner, at: now, until: now + ttlMs, releasedAt: undefined, note };
      return (await this.#setLease(key, text, next)) ? { held: true as const, attempt, before: by } : undefined;
    });
  }

  async extend(key: RecordKey, { owner, ttlMs, note }: LeaseClaim): Promise<boolean> {
    return this.#change(key, owner, (lease, now) => ({ ...lease, until: now + ttlMs, note }));
  }

  async release(key: RecordKey, { owner, note }: { owner: string; note: string | undefined }): Promise<void> {
    await this.#change(key, owner, (lease, now) =>
      note === undefined ? { ...lease, owner: undefined, note: "" } : { ...lease, releasedAt: now, note },
    );
  }

  /** Changes a lease that an owner holds. */
  #change(key: RecordKey, owner: string, change: (lease: LeaseEntry, now: number) => LeaseEntry): Promise<boolean> {
    return this.#again(async () => {
      const { text, lease } = await this.#lease(key);
      const now = this.#epoch();
      if (lease === undefined || lease.owner !== owner || !isHeld(lease, now)) return false;
      return (await this.#setLease(key, text, change(lease, now))) || undefined;
    });
  }

  async #lease(key: RecordKey): Promise<{ text: string | undefined; lease: LeaseEntry | undefined }> {
    const text = await this.#text(["lease", ...nameOf(key)]);
    return { text, lease: text === undefined ? undefined : JSON.parse(text) };
  }

  #setLease(key: RecordKey, before: string | undefined, lease: LeaseEntry): Promise<boolean> {
    return this.#set(["lease", ...nameOf(key)], before, JSON.stringify(lease), { expiresInMs: LEASE_MS });
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

  /** Adds an id to a list. */
  #list(list: string[], id: string): Promise<boolean> {
    return this.#again(async () => {
      const text = await this.#text(list);
      const ids: string[] = JSON.parse(text ?? "[]");
      if (ids.includes(id)) return true;
      return (await this.#set(list, text, JSON.stringify([...ids, id].sort()), {})) || undefined;
    });
  }

  /** Takes the id of a removed record from its list, and puts it back if the record was stored again in between. */
  async #unlist(key: RecordKey): Promise<void> {
    const list = ["ids", key.kind, key.partition];
    await this.#again(async () => {
      const text = await this.#text(list);
      const ids: string[] = JSON.parse(text ?? "[]");
      const others = ids.filter((id) => id !== key.id);
      if (others.length === ids.length) return true;
      return (await this.#set(list, text, JSON.stringify(others), {})) || undefined;
    });
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
      throw new AgentAuthError("store_unavailable", `${this.location} failed`, { class: "unavailable", cause });
    }
  }

  /** Tries again while others change the same entry in between. */
  async #again<T>(attempt: () => Promise<T | undefined>): Promise<T> {
    for (let tries = 1; tries <= TRIES; tries++) {
      const result = await attempt();
      if (result !== undefined) return result;
      await new Promise((resolve) => setTimeout(resolve, Math.random() * Math.min(tries, 10)));
    }
    const message = `other processes change the same entry of ${this.location} faster than this one`;
    throw new AgentAuthError("store_unavailable", message, { class: "unavailable" });
  }
}

function nameOf({ kind, partition, id }: RecordKey): [string, string, string] {
  return [kind, partition, id];
}

function recordOf(key: RecordKey, { version, value }: Entry): StoredRecord {
  return { key, version: version as Version, value };
}

function isHeld({ owner, releasedAt, until }: LeaseEntry, now: number): boolean {
  return owner !== undefined && releasedAt === undefined && now < until;
}

function traceOf({ attempt, at, releasedAt, note }: LeaseEntry, owner: string): Omit<LeaseTrace, "now"> {
  return { attempt, owner, at, releasedAt, note };
}

/** The partition and the id after which a part begins. */
function placeOf(cursor: string | undefined): [string?, string?] {
  try {
    const place: unknown = JSON.parse(cursor ?? "[]");
    if (Array.isArray(place) && place.every((part) => typeof part === "string")) return place as [string?, string?];
  } catch {}
  throw new AgentAuthError("usage", "the cursor is not one of this store", { class: "usage" });
}
