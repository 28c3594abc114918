import type {
  LeaseClaim,
  RecordKey,
  RecordKind,
  ScanFilter,
  StoreDriver,
  Version,
} from "../../../src/store/driver/driver.js";
import { check, checkEqual, checkPresent } from "./check.js";

/** What a case of the contract may need beside a driver. */
export type Need = "openElsewhere" | "kill" | "restart" | "broken" | "watch" | "health";

/** Cases of the contract, each a test: by its name what it does. */
export type Cases = Readonly<Record<string, (storeUnderTest: StoreUnderTest) => Promise<void>>>;

/** What a case works with. */
export interface StoreUnderTest {
  /** A driver of the engine, which is closed after the case, as all that it opens. */
  readonly driver: StoreDriver;
  /** The key of a grant that no other case uses. */
  readonly key: RecordKey;
  /** A lease that no other case uses, under a key of no record. */
  readonly lease: LeaseUnderTest;
  /** Opens another driver of the engine. */
  open(): Promise<StoreDriver>;
  /** Lets at least this many milliseconds pass on the clock of the engine. */
  wait(ms: number): Promise<void>;
  openElsewhere(job: DriverJob): Promise<unknown>;
  kill(): Promise<void>;
  restart(): Promise<void>;
}

/** What one of several processes does at the same time as the others. */
export interface DriverJob {
  /** `increment`: adds 1 to a number. The others: does it once for each key, and reports where it succeeded. */
  readonly name: "increment" | "create" | "recreate" | "delete" | "claim";
  /** The partition of its records. */
  readonly partition: string;
  /** The number of this process. */
  readonly process: number;
}

/** Longer than any case takes, also on a busy machine. */
export const LONG_MS = 3_600_000;

/** The limit of a wait for something that happens soon; only a broken driver reaches it. */
export const SOON_MS = 30_000;

/** A name that no other case uses, in this run or another. */
export function freshName(): string {
  return `contract-${crypto.randomUUID()}`;
}

/** A key that no other case uses. */
export function freshKey(kind: RecordKind = "grant"): RecordKey {
  return { kind, partition: freshName(), id: "one" };
}

/** A claim of a lease that no case outlives. */
export function claimOf(owner: string, ttlMs = LONG_MS, note = `note of ${owner}`): LeaseClaim {
  return { owner, ttlMs, note };
}

/** Creates a record, and fails if there is one. */
export async function create(driver: StoreDriver, key: RecordKey, value = "text", options = {}): Promise<Version> {
  const version = await driver.put(key, value, undefined, options);
  return checkPresent("put without an expected version creates a record", version, "a version");
}

/** Replaces a record, and fails if it does not have the expected version. */
export async function replace(driver: StoreDriver, key: RecordKey, value: string, expected: Version, options = {}) {
  const version = await driver.put(key, value, expected, options);
  return checkPresent("put with the stored version replaces the record", version, "a version");
}

/** Fails unless this record is stored. */
export async function checkStored(rule: string, driver: StoreDriver, key: RecordKey, version: Version, value = "text") {
  checkEqual(rule, await driver.get(key), { key, version, value });
}

/** A lease that a case works with. */
export type LeaseUnderTest = ReturnType<typeof leaseOf>;

/** The lease under a key: by default one that no other case uses. */
export function leaseOf(driver: StoreDriver, key = freshKey("lease")) {
  const claim = (...args: Parameters<typeof claimOf>) => driver.claim(key, claimOf(...args));
  return {
    key,
    claim,
    /** Takes the lease, and fails if it is not free. */
    async take(...args: Parameters<typeof claimOf>) {
      const answer = await claim(...args);
      check("claim takes a lease that is free", answer.held, "held: true", answer);
      return answer;
    },
    /** Claims the lease that another owner holds, and fails if it is free. */
    async refuse() {
      const answer = await claim("other");
      check("claim does not take a lease that another owner holds", !answer.held, "held: false", answer);
      return answer;
    },
    extend: (...args: Parameters<typeof claimOf>) => driver.extend(key, claimOf(...args)),
    /** Without a note no trace is left. */
    release: (owner: string, note?: string) => driver.release(key, { owner, note }),
  };
}

/** The outcomes of 50 racers, who use two drivers in turn. */
export function race<T>(drivers: readonly [StoreDriver, StoreDriver], work: (driver: StoreDriver, nth: number) => T) {
  return Promise.all(Array.from({ length: 50 }, (_, nth) => work(drivers[nth % 2 === 0 ? 0 : 1], nth)));
}

/**
 * All records that a scan returns.
 *
 * @param between runs after each part
 */
export async function scanAll(driver: StoreDriver, filter: ScanFilter, limit = 100, between = async () => {}) {
  const found = [];
  let cursor: string | undefined;
  do {
    const page = await driver.scan(filter, { limit, cursor });
    const size = page.items.length;
    check("scan returns at most as many records as the limit", size <= limit, `at most ${limit}`, size);
    found.push(...page.items);
    check("scan comes to an end", page.cursor === undefined || page.cursor !== cursor, "another cursor", page.cursor);
    cursor = page.cursor;
    await between();
  } while (cursor !== undefined);
  return found;
}
