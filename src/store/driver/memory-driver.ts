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

/** Options of {@link memoryDriver}. */
export interface MemoryDriverOptions {
  /** The clock of leases and of records that expire. Default: Unix time that no change of the machine's clock moves. */
  readonly clock?: Pick<Clock, "epoch"> | undefined;
  /** Where the records are, as text for the user. Default: `memory`. */
  readonly location?: string | undefined;
}

/** The newest claim under a key, as it is stored. Times are Unix milliseconds. */
interface LeaseEntry extends Omit<LeaseTrace, "owner" | "now"> {
  /** Undefined for a claim that was released without a trace: only its number is left. */
  readonly owner: string | undefined;
  /** When the lease is free, unless it is extended. */
  readonly until: number;
}

interface MemoryRecord extends StoredRecord {
  /** Where the record is in a scan: records that were created later have a higher number. */
  readonly place: number;
  readonly tags: ReadonlyMap<string, string>;
  readonly expiresAt: number;
  readonly dueAt: number | undefined;
}

interface DueEntry {
  readonly dueAt: number;
  readonly id: string;
}

const REMEMBERED_MS = 30 * 86_400_000;

/** An engine in this process: its records live as long as the driver, and every driver has its own. */
export function memoryDriver(options: MemoryDriverOptions = {}): StoreDriver {
  checkOptionNames(options, { clock: true, location: true } satisfies OptionNames<MemoryDriverOptions>, "memoryDriver");
  // Date.now() would let a step of the machine's clock end a lease.
  const epoch = options.clock?.epoch ?? (() => Math.floor(performance.timeOrigin + performance.now()));
  return new MemoryDriver(epoch, options.location ?? "memory");
}

/** Each operation runs without a break between its first and its last look at the records: that makes it atomic. */
class MemoryDriver implements StoreDriver {
  readonly system = "memory";
  readonly location: string;
  readonly #epoch: () => number;
  readonly #records = new Map<string, MemoryRecord>();
  /** The records of a kind in a partition, and those of each tag among them, so that a scan visits no others. */
  readonly #indexes = new Map<string, Map<string, MemoryRecord>>();
  /** The due times of each kind in a partition in ascending order. */
  readonly #due = new Map<string, DueEntry[]>();
  /** The records that expire, so that their removal does not visit the others. */
  readonly #expiring = new Map<string, MemoryRecord>();
  /** In the order of their claims. */
  readonly #leases = new Map<string, LeaseEntry>();
  readonly #watchers = new Set<(key: RecordKey) => void>();
  /** The source of versions and places: one for all keys, so that a version does not return after a delete. */
  #last = 0;
  /** The number of the last claim: one for all keys, so that it rises under a key that was forgotten, too. */
  #attempts = 0;

  constructor(epoch: () => number, location: string) {
    this.#epoch = epoch;
    this.location = location;
  }

  async get(key: RecordKey, options?: DriverCallOptions): Promise<StoredRecord | undefined> {
    refuseAborted(options);
    const record = this.#find(key);
    return record && publicPart(record);
  }

  async put(key: RecordKey, value: string, expected: Version | undefined, options?: PutOptions) {
    refuseAborted(options);
    this.#removeExpired();
    const stored = this.#find(key);
    if (stored?.version !== expected) return undefined;
    const version = this.#next();
    const { expiresInMs = Number.POSITIVE_INFINITY, tags = {}, dueAt = stored?.dueAt } = options ?? {};
    this.#store({
      key: { kind: key.kind, partition: key.partition, id: key.id },
      version: String(version) as Version,
      value,
      place: stored?.place ?? version,
      tags: new Map(Object.entries(tags)),
      expiresAt: this.#epoch() + expiresInMs,
      dueAt: dueAt ?? undefined,
    });
    this.#report(key);
    return String(version) as Version;
  }

  async delete(key: RecordKey, expected?: Version, options?: DriverCallOptions) {
    refuseAborted(options);
    const stored = this.#find(key);
    if (stored === undefined || (expected !== undefined && stored.version !== expected)) return false;
    this.#remove(key);
    this.#report(key);
    return true;
  }

  async scan(
    filter: ScanFilter,
    page: { readonly limit: number; readonly cursor?: string | undefined },
    options?: DriverCallOptions,
  ) {
    refuseAborted(options);
    if (filter.dueUntil !== undefined) return this.#scanDue(filter, filter.dueUntil, page.limit);
    const after = Number(page.cursor ?? 0);
    const items: StoredRecord[] = [];
    let cursor: string | undefined;
    for (const record of this.#recordsOf(filter)) {
      if (record.place <= after || !this.#isLive(record) || !isSelected(record, filter)) continue;
      if (items.length === page.limit) return { items, cursor };
      items.push(publicPart(record));
      cursor = String(record.place);
    }
    return { items, cursor: undefined };
  }

  #scanDue({ kind, partition = "" }: ScanFilter, until: number, limit: number) {
    const due = this.#due.get(JSON.stringify([kind, partition])) ?? [];
    const total = placeIn(due, { dueAt: until + 1, id: "" });
    const records = due.slice(0, Math.min(total, limit)).map(({ id }) => this.#find({ kind, partition, id }));
    const items = records
      .filter((record) => record !== undefined)
      .map((record) => ({ ...publicPart(record), dueAt: record.dueAt }));
    return { items, cursor: undefined, total };
  }

  async claim(key: RecordKey, claim: LeaseClaim, options?: DriverCallOptions) {
    refuseAborted(options);
    const [name, now] = [recordName(key), this.#epoch()];
    const { entry, answer } = claimOver(this.#leases.get(name), claim, { attempt: this.#attempts + 1, now });
    if (entry) {
      this.#attempts += 1;
      this.#leases.delete(name);
      this.#leases.set(name, entry);
      this.#forgetLeases(now);
    }
    return answer;
  }

  async extend(key: RecordKey, claim: LeaseClaim, options?: DriverCallOptions) {
    refuseAborted(options);
    return this.#setLease(key, extended(this.#leases.get(recordName(key)), claim, this.#epoch()));
  }

  async release(key: RecordKey, claim: Parameters<StoreDriver["release"]>[1], options?: DriverCallOptions) {
    refuseAborted(options);
    if (this.#setLease(key, releaseEntry(this.#leases.get(recordName(key)), claim, this.#epoch()))) this.#report(key);
  }

  watch(onChange: (key: RecordKey) => void, _onGap: () => void, signal: AbortSignal): Promise<void> {
    if (signal.aborted) return Promise.resolve();
    // The same function may watch twice.
    const watcher = (key: RecordKey) => onChange(key);
    this.#watchers.add(watcher);
    return new Promise((resolve) => {
      const end = () => {
        this.#watchers.delete(watcher);
        resolve();
      };
      signal.addEventListener("abort", end, { once: true });
    });
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

  /** @returns whether there was something to set */
  #setLease(key: RecordKey, entry: LeaseEntry | undefined): boolean {
    if (entry === undefined) return false;
    if (entry.owner === undefined) this.#leases.delete(recordName(key));
    else this.#leases.set(recordName(key), entry);
    return true;
  }

  /** Stops at the first claim that is not old: a look at all of them for each claim would be slow. */
  #forgetLeases(now: number): void {
    for (const [name, { releasedAt, until }] of this.#leases) {
      if ((releasedAt ?? until) + REMEMBERED_MS > now) return;
      this.#leases.delete(name);
    }
  }

  #next(): number {
    this.#last += 1;
    return this.#last;
  }

  #find(key: RecordKey): MemoryRecord | undefined {
    const record = this.#records.get(recordName(key));
    return record && this.#isLive(record) ? record : undefined;
  }

  #isLive(record: MemoryRecord): boolean {
    return this.#epoch() < record.expiresAt;
  }

  /** Records among which are all that a filter selects, in the order of their places. */
  #recordsOf({ kind, partition, tags = {} }: ScanFilter): Iterable<MemoryRecord> {
    if (partition === undefined) return this.#records.values();
    const [all, ...tagged] = indexNames({ kind, partition }, Object.entries(tags)).map((name) =>
      this.#indexes.get(name),
    );
    if (tagged.length === 0) return all?.values() ?? [];
    const [smallest] = tagged.map((index) => index ?? new Map<string, MemoryRecord>()).sort((a, b) => a.size - b.size);
    // A record that got the tag later than others is the last of the index.
    return [...(smallest?.values() ?? [])].sort((a, b) => a.place - b.place);
  }

  #store(record: MemoryRecord): void {
    const { key } = record;
    const names = indexNames(key, record.tags);
    const before = this.#records.get(recordName(key));
    this.#index(key, before?.dueAt, record.dueAt);
    if (before)
      this.#removeFrom(
        indexNames(key, before.tags).filter((name) => !names.includes(name)),
        key,
      );
    for (const name of names) {
      const index = this.#indexes.get(name) ?? new Map<string, MemoryRecord>();
      this.#indexes.set(name, index.set(key.id, record));
    }
    this.#records.set(recordName(key), record);
    if (record.expiresAt === Number.POSITIVE_INFINITY) this.#expiring.delete(recordName(key));
    else this.#expiring.set(recordName(key), record);
  }

  /** Moves a record in the order of the due times. */
  #index({ kind, partition, id }: RecordKey, from: number | undefined, to?: number | undefined): void {
    if (from === to) return;
    const name = JSON.stringify([kind, partition]);
    const due = this.#due.get(name) ?? [];
    if (from !== undefined) due.splice(placeIn(due, { dueAt: from, id }), 1);
    if (to !== undefined) due.splice(placeIn(due, { dueAt: to, id }), 0, { dueAt: to, id });
    if (due.length === 0) this.#due.delete(name);
    else this.#due.set(name, due);
  }

  #remove(key: RecordKey): void {
    this.#index(key, this.#records.get(recordName(key))?.dueAt);
    this.#removeFrom(indexNames(key, this.#records.get(recordName(key))?.tags ?? []), key);
    this.#records.delete(recordName(key));
    this.#expiring.delete(recordName(key));
  }

  #removeFrom(names: readonly string[], { id }: RecordKey): void {
    for (const name of names) {
      const index = this.#indexes.get(name);
      index?.delete(id);
      if (index?.size === 0) this.#indexes.delete(name);
    }
  }

  #removeExpired(): void {
    for (const record of this.#expiring.values()) if (!this.#isLive(record)) this.#remove(record.key);
  }

  #report(key: RecordKey): void {
    for (const watcher of this.#watchers) {
      // Later, as with any engine: an error of a watcher is not one of the operation that it hears of.
      queueMicrotask(() => {
        if (this.#watchers.has(watcher)) watcher(key);
      });
    }
  }
}

/** Where an entry is in a sorted list, or would be. */
function placeIn(sorted: readonly DueEntry[], { dueAt, id }: DueEntry): number {
  let [from, to] = [0, sorted.length];
  while (from < to) {
    const middle = (from + to) >> 1;
    const one = sorted[middle];
    if (one !== undefined && (one.dueAt < dueAt || (one.dueAt === dueAt && one.id < id))) from = middle + 1;
    else to = middle;
  }
  return from;
}

function refuseAborted(options: DriverCallOptions | undefined): void {
  if (options?.signal?.aborted) throw abortedError(options.signal);
}

function publicPart({ key, version, value }: MemoryRecord): StoredRecord {
  return { key, version, value };
}

function isSelected({ key, tags }: MemoryRecord, filter: ScanFilter): boolean {
  if (key.kind !== filter.kind) return false;
  return Object.entries(filter.tags ?? {}).every(([name, value]) => tags.get(name) === value);
}

/** JSON, because a name may contain any character. */
function recordName({ kind, partition, id }: RecordKey): string {
  return JSON.stringify([kind, partition, id]);
}

/** The name of the index of a partition, and those of the indexes of its tags. */
function indexNames({ kind, partition }: Omit<RecordKey, "id">, tags: Iterable<[string, string]>): string[] {
  return [[], ...tags].map((tag) => JSON.stringify([kind, partition, ...tag]));
}

/** The response to a claim, and what is stored from then on if it takes the lease. */
function claimOver(
  newest: LeaseEntry | undefined,
  { owner, ttlMs, note }: LeaseClaim,
  { attempt, now }: { attempt: number; now: number },
): { answer: LeaseHeld | LeaseBusy; entry?: LeaseEntry } {
  const previous = toTrace(newest, now);
  if (newest && previous && isHeld(newest, now))
    return { answer: { held: false, by: previous, leftMs: newest.until - now } };
  const entry = { attempt, owner, at: now, until: now + ttlMs, releasedAt: undefined, note };
  return { answer: { held: true, attempt, previous }, entry };
}

/** What is stored after an extension; undefined if this owner does not hold the lease. */
function extended(
  entry: LeaseEntry | undefined,
  { owner, ttlMs, note }: LeaseClaim,
  now: number,
): LeaseEntry | undefined {
  return isHeldBy(owner, entry, now) ? { ...entry, until: now + ttlMs, note } : undefined;
}

/** What is stored after a release; undefined if this owner does not hold the lease. */
function releaseEntry(
  entry: LeaseEntry | undefined,
  { owner, note }: { readonly owner: string; readonly note: string | undefined },
  now: number,
): LeaseEntry | undefined {
  if (!isHeldBy(owner, entry, now)) return undefined;
  return note === undefined ? { ...entry, owner: undefined, note: "" } : { ...entry, releasedAt: now, note };
}

function isHeldBy(owner: string, entry: LeaseEntry | undefined, now: number): entry is LeaseEntry {
  return entry?.owner === owner && isHeld(entry, now);
}

function isHeld({ owner, releasedAt, until }: LeaseEntry, now: number): boolean {
  return owner !== undefined && releasedAt === undefined && now < until;
}

function toTrace(entry: LeaseEntry | undefined, now: number): LeaseTrace | undefined {
  if (entry?.owner === undefined) return undefined;
  const { attempt, owner, at, releasedAt, note } = entry;
  return { attempt, owner, at, now, releasedAt, note };
}
