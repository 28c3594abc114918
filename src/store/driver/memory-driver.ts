import { abortedError } from "../../errors.js";
import type { Clock } from "../../http/deadline.js";
import { checkOptionNames, type OptionNames } from "../../http/public-class.js";
import type {
  DriverCallOptions,
  LeaseBusy,
  LeaseClaim,
  LeaseHeld,
  LeaseTrace,
  PutOptions,
  RecordKey,
  ScanFilter,
  StoreDriver,
  StoredRecord,
  Version,
} from "./driver.js";
import { untilFired } from "./engine.js";

/** Options of {@link memoryDriver}. */
export interface MemoryDriverOptions {
  /** The clock of leases and of records that expire. Default: Unix time that no change of the machine's clock moves. */
  readonly clock?: Pick<Clock, "epoch"> | undefined;
}

/** The newest claim under a key, as it is stored. Times are Unix milliseconds. */
interface LeaseEntry extends Omit<LeaseTrace, "now"> {
  /** When the lease is free, unless it is extended. */
  readonly until: number;
}

interface MemoryRecord extends StoredRecord {
  /** Where the record is in a scan: records that were created later have a higher number. */
  readonly place: number;
  readonly tags: ReadonlyMap<string, string>;
  readonly expiresAt: number;
}

const REMEMBERED_MS = 30 * 86_400_000;

/** An engine in this process: its records live as long as the driver, and every driver has its own. */
export function memoryDriver(options: MemoryDriverOptions = {}): StoreDriver {
  checkOptionNames(options, { clock: true } satisfies OptionNames<MemoryDriverOptions>, "memoryDriver");
  // Date.now() would let a step of the machine's clock end a lease.
  const epoch = options.clock?.epoch ?? (() => Math.floor(performance.timeOrigin + performance.now()));
  return new MemoryDriver(epoch);
}

/** Each operation runs without a break between its first and its last look at the records: that makes it atomic. */
class MemoryDriver implements StoreDriver {
  readonly system = "memory";
  readonly location = "memory";
  readonly #epoch: () => number;
  /** In the order of their places. A scan looks at each: 10,000 take about a millisecond. */
  readonly #records = new Map<string, MemoryRecord>();
  /** In the order of their claims. */
  readonly #leases = new Map<string, LeaseEntry>();
  readonly #watchers = new Set<(key: RecordKey) => void>();
  /** The source of versions and places: one for all keys, so that a version does not return after a delete. */
  #last = 0;
  /** The number of the last claim: one for all keys, so that it rises under a key that was forgotten, too. */
  #attempts = 0;

  constructor(epoch: () => number) {
    this.#epoch = epoch;
  }

  async get(key: RecordKey, options?: DriverCallOptions): Promise<StoredRecord | undefined> {
    refuseAborted(options);
    const record = this.#find(key);
    return record && publicPart(record);
  }

  async put(key: RecordKey, value: string, expected: Version | undefined, options: PutOptions = {}) {
    refuseAborted(options);
    const stored = this.#find(key);
    if (stored?.version !== expected) return undefined;
    const { expiresInMs = Number.POSITIVE_INFINITY, tags = {}, dueAt = stored?.dueAt } = options;
    if (Number.isFinite(expiresInMs)) this.#removeExpired();
    this.#last += 1;
    const version = String(this.#last) as Version;
    this.#records.set(recordName(key), {
      key: { kind: key.kind, partition: key.partition, id: key.id },
      version,
      value,
      place: stored?.place ?? this.#last,
      tags: new Map(Object.entries(tags)),
      expiresAt: this.#epoch() + expiresInMs,
      dueAt: dueAt ?? undefined,
    });
    this.#report(key);
    return version;
  }

  async delete(key: RecordKey, expected?: Version, options?: DriverCallOptions) {
    refuseAborted(options);
    const stored = this.#find(key);
    if (stored === undefined || (expected !== undefined && stored.version !== expected)) return false;
    this.#records.delete(recordName(key));
    this.#report(key);
    return true;
  }

  async scan(
    filter: ScanFilter,
    page: { readonly limit: number; readonly cursor?: string | undefined },
    options?: DriverCallOptions,
  ) {
    refuseAborted(options);
    const { dueUntil } = filter;
    const selected = this.#select(filter);
    if (dueUntil !== undefined) {
      const due = selected.flatMap((record) =>
        record.dueAt === undefined || record.dueAt > dueUntil ? [] : [{ ...publicPart(record), dueAt: record.dueAt }],
      );
      const items = due.sort((one, other) => one.dueAt - other.dueAt).slice(0, page.limit);
      return { items, cursor: undefined, total: due.length };
    }
    const rest = selected.filter(({ place }) => place > Number(page.cursor ?? 0));
    const found = rest.slice(0, page.limit);
    const cursor = found.length < rest.length ? String(found.at(-1)?.place) : undefined;
    return { items: found.map(publicPart), cursor };
  }

  async claim(
    key: RecordKey,
    { owner, ttlMs, note }: LeaseClaim,
    options?: DriverCallOptions,
  ): Promise<LeaseHeld | LeaseBusy> {
    refuseAborted(options);
    const [name, now] = [recordName(key), this.#epoch()];
    const newest = this.#leases.get(name);
    const previous = newest && toTrace(newest, now);
    if (newest && previous && isHeld(newest, now)) return { held: false, by: previous, leftMs: newest.until - now };
    this.#attempts += 1;
    const attempt = this.#attempts;
    this.#leases.delete(name);
    this.#leases.set(name, { attempt, owner, at: now, until: now + ttlMs, releasedAt: undefined, note });
    this.#forgetLeases(now);
    return { held: true, attempt, previous };
  }

  async extend(key: RecordKey, { owner, ttlMs, note }: LeaseClaim, options?: DriverCallOptions) {
    refuseAborted(options);
    const [lease, now] = [this.#leaseOf(key, owner), this.#epoch()];
    if (lease === undefined) return false;
    this.#leases.set(recordName(key), { ...lease, until: now + ttlMs, note });
    return true;
  }

  async release(key: RecordKey, { owner, note }: Parameters<StoreDriver["release"]>[1], options?: DriverCallOptions) {
    refuseAborted(options);
    const [lease, releasedAt] = [this.#leaseOf(key, owner), this.#epoch()];
    if (lease === undefined) return;
    if (note === undefined) this.#leases.delete(recordName(key));
    else this.#leases.set(recordName(key), { ...lease, releasedAt, note });
  }

  async watch(onChange: (key: RecordKey) => void, _onGap: () => void, signal: AbortSignal): Promise<void> {
    if (signal.aborted) return;
    // The same function may watch twice.
    const watcher = (key: RecordKey) => {
      if (!signal.aborted) onChange(key);
    };
    this.#watchers.add(watcher);
    await untilFired(signal);
    this.#watchers.delete(watcher);
  }

  async health(options?: DriverCallOptions) {
    refuseAborted(options);
    return {
      clockAheadMs: Date.now() - this.#epoch(),
      risks: ["the records are in the memory of one process and are lost when it ends"],
      errors: [],
      facts: { records: String(this.#records.size) },
    };
  }

  /** The lease under a key, if this owner holds it. */
  #leaseOf(key: RecordKey, owner: string): LeaseEntry | undefined {
    const lease = this.#leases.get(recordName(key));
    return lease?.owner === owner && isHeld(lease, this.#epoch()) ? lease : undefined;
  }

  /** Stops at the first claim that is not old: a look at all of them for each claim would be slow. */
  #forgetLeases(now: number): void {
    for (const [name, { releasedAt, until }] of this.#leases) {
      if ((releasedAt ?? until) + REMEMBERED_MS > now) return;
      this.#leases.delete(name);
    }
  }

  /** The record under a key. One that has expired is removed, so that its place is not that of the next one. */
  #find(key: RecordKey): MemoryRecord | undefined {
    const record = this.#records.get(recordName(key));
    if (record === undefined || this.#isLive(record)) return record;
    this.#records.delete(recordName(key));
    return undefined;
  }

  #select({ kind, partition, tags = {} }: ScanFilter): MemoryRecord[] {
    const wanted = Object.entries(tags);
    return [...this.#records.values()].filter(
      (record) =>
        record.key.kind === kind &&
        (partition === undefined || record.key.partition === partition) &&
        wanted.every(([name, value]) => record.tags.get(name) === value) &&
        this.#isLive(record),
    );
  }

  #isLive(record: MemoryRecord): boolean {
    return this.#epoch() < record.expiresAt;
  }

  #removeExpired(): void {
    for (const [name, record] of this.#records) if (!this.#isLive(record)) this.#records.delete(name);
  }

  #report(key: RecordKey): void {
    for (const watcher of this.#watchers) {
      // Later, as with any engine: an error of a watcher is not one of the operation that it hears of.
      queueMicrotask(() => watcher(key));
    }
  }
}

function refuseAborted(options: DriverCallOptions | undefined): void {
  if (options?.signal?.aborted) throw abortedError(options.signal);
}

function publicPart({ key, version, value }: MemoryRecord): StoredRecord {
  return { key, version, value };
}

/** JSON, because a name may contain any character. */
function recordName({ kind, partition, id }: RecordKey): string {
  return JSON.stringify([kind, partition, id]);
}

function isHeld({ releasedAt, until }: LeaseEntry, now: number): boolean {
  return releasedAt === undefined && now < until;
}

function toTrace({ attempt, owner, at, releasedAt, note }: LeaseEntry, now: number): LeaseTrace {
  return { attempt, owner, at, now, releasedAt, note };
}
