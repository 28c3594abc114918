import type { LeaseClaim, RecordKey, StoreDriver, StoredRecord, Version } from "../../../src/store/driver/driver.js";
import { type Mutant, mutant, nameOf, putAnyway, type TestClock } from "./mutant.js";

/** Mistakes with records, scans and watches. */
export const recordMutants: readonly Mutant[] = [
  mutant("compares no versions", "a put with another version changes nothing", (driver) => ({
    put: (key, value, _expected, options) => putAnyway(driver, key, value, options),
  })),
  mutant("compares before it waits, and writes after it", "of 50 puts on one version one wins", (driver) => ({
    put: async (key, value, expected, options) => {
      const stored = await driver.get(key);
      if (stored?.version !== expected) return undefined;
      return putAnyway(driver, key, value, options);
    },
  })),
  mutant("deletes any version", "a delete with another version changes nothing", (driver) => ({
    delete: (key, _expected, options) => driver.delete(key, undefined, options),
  })),
  mutant("deletes before it knows that it does", "a delete is true once", (driver) => ({
    delete: async (key, expected, options) => {
      const stored = await driver.get(key);
      if (stored === undefined || (expected !== undefined && stored.version !== expected)) return false;
      await driver.delete(key, expected, options);
      return true;
    },
  })),
  mutant("uses versions again after a delete", "a version never returns, also after a delete", countsFromOne),
  mutant("stores the text before the tags", "a put is whole or nothing", (driver) => ({
    put: async (key, value, expected, options) => {
      const version = await driver.put(key, value, expected);
      await driver.get(key);
      return version && driver.put(key, value, version, options);
    },
  })),
  mutant("adds tags to those before", "a put replaces the tags", (driver) => {
    const tags = new Map<string, Readonly<Record<string, string>>>();
    return {
      put: (key, value, expected, options) => {
        tags.set(key.id, { ...tags.get(key.id), ...options?.tags });
        return driver.put(key, value, expected, { ...options, tags: tags.get(key.id) });
      },
    };
  }),
  mutant("forgets the due time", "a scan by the due time returns the first ones in their order", (driver) => ({
    put: (key, value, expected, options) => driver.put(key, value, expected, { dueAt: null, ...options }),
  })),
  mutant("ignores tags", "a scan selects by tags", (driver) => ({
    scan: ({ kind, partition }, page, options) => driver.scan({ kind, partition }, page, options),
  })),
  mutant("mixes partitions", "a scan never mixes partitions and kinds", (driver) => ({
    scan: ({ kind, tags }, page, options) => driver.scan({ kind, tags }, page, options),
  })),
  mutant("scans by offset", "a scan returns each record once while others write", (driver) => ({
    scan: async (filter, { limit, cursor }) => {
      const { items } = await driver.scan(filter, { limit: 10_000 });
      const end = Number(cursor ?? 0) + limit;
      return { items: items.slice(end - limit, end), cursor: end < items.length ? String(end) : undefined };
    },
  })),
  mutant("scans in the order of versions", "a scan returns each record once while others write", (driver) => ({
    scan: async (filter, { limit, cursor }) => {
      const all = (await driver.scan(filter, { limit: 10_000 })).items;
      const left = all
        .filter(({ version }) => Number(version) > Number(cursor ?? 0))
        .toSorted((a, b) => Number(a.version) - Number(b.version));
      const items = left.slice(0, limit);
      return { items, cursor: left.length > limit ? items.at(-1)?.version : undefined };
    },
  })),
  mutant("never removes what has expired", "a record expires after expiresInMs", (driver) => ({
    put: (key, value, expected, options) => driver.put(key, value, expected, { ...options, expiresInMs: undefined }),
  })),
  mutant("keeps the expiry of the version before", "a put without expiresInMs stays", (driver) => {
    const expiry = new Map<string, number | undefined>();
    return {
      put: (key, value, expected, options) => {
        const expiresInMs = options?.expiresInMs ?? (expected && expiry.get(nameOf(key)));
        expiry.set(nameOf(key), expiresInMs);
        return driver.put(key, value, expected, { ...options, expiresInMs });
      },
    };
  }),
  mutant(
    "expires a record with its lease",
    "no record expires with a lease, and no lease with a record",
    expiresWithLease,
  ),
  mutant("joins the parts of a name", "names never run together", (driver) => {
    const join = ({ kind, partition, id }: RecordKey): RecordKey => ({
      kind,
      partition: "all",
      id: `${partition}:${id}`,
    });
    return {
      get: (key) => driver.get(join(key)),
      put: (key, value, expected) => driver.put(join(key), value, expected),
      claim: (key, claim) => driver.claim(join(key), claim),
    };
  }),
  mutant("ends a name at a zero character", "names may have any character", (driver) => {
    const cut = (key: RecordKey): RecordKey => ({ ...key, id: key.id.split("\0")[0] ?? "" });
    return {
      get: (key) => driver.get(cut(key)),
      put: (key, value, expected) => driver.put(cut(key), value, expected),
    };
  }),
  mutant("cuts long texts", "a value may have 256 KiB, and a note 16 KiB", (driver) => ({
    put: (key, value, expected, options) => driver.put(key, value.slice(0, 65_535), expected, options),
  })),
  mutant("ignores signals", "a signal that has fired fails every operation with aborted", (driver) => ({
    scan: (filter, page) => driver.scan(filter, page),
  })),
  mutant(
    "answers from a cache of its own",
    "a record is read as it was put, by every driver of the engine",
    (driver) => {
      const cache = new Map<string, StoredRecord | undefined>();
      return {
        get: async (key, options) => {
          if (!cache.has(nameOf(key))) cache.set(nameOf(key), await driver.get(key, options));
          return cache.get(nameOf(key));
        },
      };
    },
  ),
  mutant("scans one partition alone", "a scan without a partition returns those of all", (driver) => ({
    scan: async (filter, page, options) =>
      filter.partition === undefined ? { items: [], cursor: undefined } : driver.scan(filter, page, options),
  })),
  mutant("never ends when its signal fires", "a signal that fires ends the wait and not the driver", (driver) => ({
    get: (key, options) => (options?.signal === undefined ? driver.get(key) : new Promise(() => {})),
  })),
  mutant("reports no health", "health reports the clock, the risks and the errors", (driver) => ({
    health: async () => ({ ...(await driver.health?.()), clockAheadMs: Number.NaN, risks: [], errors: [], facts: {} }),
  })),
  mutant("watches for ever", "a watch ends with its signal", (driver) => ({
    watch: async (onChange, onGap) => driver.watch?.(onChange, onGap, new AbortController().signal),
  })),
  mutant("shows credentials", "a driver names its engine and its place", () => ({
    location: "redis://user:password@localhost",
  })),
  mutant("ends a watch when it has begun", "a watch reports what other drivers write and remove", (driver) => ({
    watch: async (...args) => void driver.watch?.(...args),
  })),
];

function expiresWithLease(driver: StoreDriver, clock: TestClock): Partial<StoreDriver> {
  const until = new Map<string, number>();
  return {
    claim: async (key, claim: LeaseClaim, options) => {
      const answer = await driver.claim(key, claim, options);
      if (answer.held) until.set(nameOf(key), clock.epoch() + claim.ttlMs);
      return answer;
    },
    get: async (key, options) => {
      if ((until.get(nameOf(key)) ?? Number.POSITIVE_INFINITY) <= clock.epoch()) await driver.delete(key);
      return driver.get(key, options);
    },
  };
}

/** Versions are numbers that begin at 1 with each record. */
function countsFromOne(driver: StoreDriver): Partial<StoreDriver> {
  const counts = new Map<string, { stored: Version; count: number }>();
  const shown = (key: RecordKey) => String(counts.get(nameOf(key))?.count) as Version;
  /** The stored version, if the caller knows it. */
  const known = (key: RecordKey, expected: Version | undefined) => {
    const entry = counts.get(nameOf(key));
    return entry && expected === shown(key) ? entry.stored : expected && ("none" as Version);
  };
  return {
    get: async (key) => {
      const stored = await driver.get(key);
      return stored && { ...stored, version: shown(key) };
    },
    put: async (key, value, expected, options) => {
      const stored = await driver.put(key, value, known(key, expected), options);
      if (stored === undefined) return undefined;
      counts.set(nameOf(key), { stored, count: expected === undefined ? 1 : Number(expected) + 1 });
      return shown(key);
    },
    delete: async (key, expected) => driver.delete(key, known(key, expected)),
  };
}
