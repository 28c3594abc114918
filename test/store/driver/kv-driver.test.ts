import { createHash } from "node:crypto";
import { describe, expect, it, test } from "vitest";
import { AgentAuthError } from "../../../src/errors.js";
import type { LeaseClaim, RecordKey } from "../../../src/store/driver/driver.js";
import { grantStore } from "../../../src/store/driver/grant-store.js";
import { type KvFunctions, kvDriver } from "../../../src/store/driver/kv-driver.js";
import { driverContract } from "../../../src/testing/driver-contract.js";
import { madeGrant, plainGrant } from "../../helpers/grant.js";
import { heldError } from "../../helpers/told.js";
import { testRing } from "../seal/support.js";

const KEY: RecordKey = { kind: "grant", partition: "p", id: "one" };
const CLAIM: LeaseClaim = { owner: "a", ttlMs: 1000, note: "" };

/** A cache that compares texts, as a table or a map does. */
function mapCache(entries = new Map<string, string>()): KvFunctions {
  return {
    get: async (key) => entries.get(key),
    compareAndSet: async (key, expected, text) => {
      if (entries.get(key) !== expected) return false;
      entries.set(key, text);
      return true;
    },
    delete: async (key, expected) => entries.get(key) === expected && entries.delete(key),
  };
}

/**
 * A client of memcached, as far as it matters: `gets` returns a token that changes with each write, `cas` takes it, `add`
 * stores where there is nothing, and entries are dropped when they have expired.
 */
class Memcached {
  readonly #entries = new Map<string, { text: string; cas: number; until: number }>();
  #writes = 0;

  async gets(key: string): Promise<{ text: string; cas: number } | undefined> {
    const entry = this.#entries.get(key);
    await turn();
    return entry && performance.now() < entry.until ? entry : undefined;
  }

  async add(key: string, text: string, seconds: number): Promise<boolean> {
    await turn();
    const entry = this.#entries.get(key);
    return (!entry || performance.now() >= entry.until) && this.#write(key, text, seconds);
  }

  async cas(key: string, text: string, seconds: number, cas: number): Promise<boolean> {
    await turn();
    return this.#entries.get(key)?.cas === cas && this.#write(key, text, seconds);
  }

  #write(key: string, text: string, seconds: number): boolean {
    this.#writes += 1;
    const until = seconds === 0 ? Number.POSITIVE_INFINITY : performance.now() + seconds * 1000;
    this.#entries.set(key, { text, cas: this.#writes, until });
    return true;
  }
}

const turn = () => new Promise((resolve) => setImmediate(resolve));

/** It cannot compare and delete: the empty text, which the cache drops soon, is none. */
function memcachedCache(client = new Memcached()): KvFunctions {
  const find = async (key: string) => {
    const found = await client.gets(key);
    return { found, text: found?.text || undefined };
  };
  const replace = async (key: string, expected: string | undefined, text: string, seconds: number) => {
    const { found, text: stored } = await find(key);
    if (stored !== expected) return false;
    return found ? client.cas(key, text, seconds, found.cas) : client.add(key, text, seconds);
  };
  return {
    get: async (key) => (await find(key)).text,
    compareAndSet: (key, expected, text, { expiresInMs = 0 }) =>
      replace(key, expected, text, Math.ceil(expiresInMs / 1000)),
    delete: (key, expected) => replace(key, expected, "", 1),
  };
}

describe.each([
  ["a map", mapCache],
  ["memcached", memcachedCache],
] as const)("a driver over %s", (_name, cacheOf) => {
  const cache = cacheOf();
  driverContract({
    test,
    open: () => kvDriver(cache, { timeoutMs: 5000 }),
    without: ["watch", "health"],
    broken: {
      "never answers": () => kvDriver({ ...cache, get: () => new Promise(() => undefined) }, { timeoutMs: 5000 }),
      fails: () => kvDriver({ ...cache, get: () => Promise.reject(new Error("ECONNREFUSED")) }),
    },
  });

  it("holds the logins of a store", async () => {
    const store = grantStore(kvDriver(cacheOf()), { seal: testRing() });
    for (const profile of ["ann", "bob"]) await store.save(madeGrant({ profile }), undefined);
    const stored = await store.read(madeGrant({ profile: "ann" }));
    expect(stored && plainGrant(stored)).toEqual(plainGrant(madeGrant({ profile: "ann" })));
    const seen: string[] = [];
    for await (const { items } of store.connections({ limit: 1 })) seen.push(...items.map(({ profile }) => profile));
    expect(seen.sort()).toEqual(["ann", "bob"]);
    await store.remove(madeGrant({ profile: "ann" }));
    expect(await store.list()).toHaveLength(1);
  });
});

describe("a driver over a cache", () => {
  it("shows the cache no name, and asks it for short keys", async () => {
    const entries = new Map<string, string>();
    await kvDriver(mapCache(entries), { prefix: "t:" }).put({ ...KEY, id: "x".repeat(1024) }, "value", undefined);
    expect([...entries.keys()].filter((key) => !/^t:[\w-]{43}$/.test(key))).toEqual([]);
  });

  it("has one entry for each record, lease and list, of which other processes know the keys", async () => {
    const entries = new Map<string, string>();
    const driver = kvDriver(mapCache(entries), { prefix: "", clock: { epoch: () => 1_000_000 } });
    for (const id of ["two", "one", "gone"]) {
      await driver.put({ ...KEY, id }, `value of ${id}`, undefined, { tags: { a: "b" }, expiresInMs: 5 });
    }
    await driver.delete({ ...KEY, id: "gone" });
    await driver.claim(KEY, CLAIM);
    const entryOf = (...parts: string[]) => {
      const text = entries.get(createHash("sha256").update(JSON.stringify(parts)).digest("base64url"));
      return text && JSON.parse(text);
    };
    expect(entries.size).toBe(5);
    expect(entryOf("partitions", "grant")).toEqual(["p"]);
    expect(entryOf("ids", "grant", "p")).toEqual(["one", "two"]);
    const record = { version: expect.any(String), value: "value of one", tags: { a: "b" }, expiresAt: 1_000_005 };
    expect(entryOf("grant", "p", "one")).toEqual(record);
    expect(entryOf("grant", "p", "two")).toMatchObject({ value: "value of two" });
    expect(entryOf("lease", "grant", "p", "one")).toMatchObject({ attempt: 1, owner: "a", until: 1_001_000 });
  });

  it("finds what is in a partition of any name, and no record from the moment at which it expires", async () => {
    let now = 1_000_000;
    const driver = kvDriver(mapCache(), { clock: { epoch: () => now } });
    const key = { ...KEY, partition: "!" };
    await driver.put(key, "v", undefined, { expiresInMs: 5 });
    now += 4;
    expect((await driver.scan({ kind: "grant" }, { limit: 10 })).items).toMatchObject([{ key }]);
    now += 1;
    expect(await driver.get(key)).toBeUndefined();
  });

  it("passes on an error of ours, and wraps any other one", async () => {
    const own = new AgentAuthError("tls_failed", "no", { class: "remote" });
    const other = new Error("ECONNREFUSED");
    const failing = (error: Error) =>
      kvDriver({ ...mapCache(), get: () => Promise.reject(error) }, { location: "the cache of a test" }).get(KEY);
    await expect(failing(own)).rejects.toBe(own);
    await expect(failing(other)).rejects.toMatchObject({
      code: "store_unavailable",
      message: "the cache of a test failed",
      cause: other,
    });
  });

  it("lists a record again that was stored while its removal cleaned up", async () => {
    const cache = mapCache();
    const plain = kvDriver(cache);
    const driver = kvDriver({
      ...cache,
      delete: async (key, expected) => {
        const isRemoved = await cache.delete(key, expected);
        await plain.put(KEY, "again", undefined);
        return isRemoved;
      },
    });
    await driver.put(KEY, "first", undefined);
    expect(await driver.delete(KEY)).toBe(true);
    const { items } = await driver.scan({ kind: "grant", partition: "p" }, { limit: 10 });
    expect(items.map(({ value }) => value)).toEqual(["again"]);
  });

  it("counts leases by the clock that it is given", async () => {
    let now = 1_000_000;
    const driver = kvDriver(mapCache(), { clock: { epoch: () => now } });
    expect(await driver.claim(KEY, CLAIM)).toMatchObject({ held: true, attempt: 1 });
    now += 999;
    expect(await driver.claim(KEY, { ...CLAIM, owner: "b" })).toMatchObject({ held: false, leftMs: 1 });
    now += 1;
    expect(await driver.claim(KEY, { ...CLAIM, owner: "b" })).toMatchObject({ held: true, attempt: 2 });
  });

  it("gives up where others change an entry each time", async () => {
    const driver = kvDriver({ ...mapCache(), compareAndSet: async () => false }, { location: "the test's cache" });
    expect(await heldError(driver.claim(KEY, CLAIM))).toMatchObject({ code: "store_unavailable", retryable: true });
  });

  it.each(["{", "[1]", "7"])("refuses the cursor %s", async (cursor) => {
    const scan = kvDriver(mapCache()).scan({ kind: "grant", partition: "p" }, { limit: 1, cursor });
    expect(await heldError(scan)).toMatchObject({ code: "usage" });
  });
});
