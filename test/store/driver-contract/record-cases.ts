import type { StoredRecord, Version } from "../../../src/store/driver/driver.js";
import { check, checkEqual, checkOne, checkPresent, checkUnique } from "./check.js";
import {
  type Cases,
  checkStored,
  create,
  freshKey,
  freshName,
  LONG_MS,
  leaseOf,
  race,
  replace,
  scanAll,
} from "./store-under-test.js";

const SHORT_MS = 200;

/** Cases about single records, and about those that expire. */
export const recordCases: Cases = {
  async "a record is read as it was put, by every driver of the engine"({ driver, key, open }) {
    const other = await open();
    checkEqual("get finds no record before the first put", await driver.get(key), undefined);
    const version = await create(driver, key, "first");
    await checkStored("get returns what put stored", other, key, version, "first");
    const next = await replace(other, key, "second", version);
    checkUnique([version, next]);
    await checkStored("get sees every acknowledged put", driver, key, next, "second");
    checkEqual("delete removes a record", await driver.delete(key), true);
    checkEqual("get sees every acknowledged delete", await other.get(key), undefined);
  },

  async "a put with another version changes nothing"({ driver, key }) {
    const old = await create(driver, key, "old");
    const version = await replace(driver, key, "stored", old);
    const rule = "put stores nothing if another version is stored";
    for (const expected of [undefined, old]) {
      checkEqual(rule, await driver.put(key, "refused", expected), undefined);
      await checkStored(rule, driver, key, version, "stored");
    }
    await driver.delete(key);
    const absent = "put with an expected version stores nothing if there is no record";
    checkEqual(absent, await driver.put(key, "refused", version), undefined);
    checkEqual(absent, await driver.get(key), undefined);
  },

  /** A value, its version and its tags are written together, so that no reader sees a part of a put. */
  async "a put is whole or nothing"({ driver: writer, key, open }) {
    const reader = await open();
    const filter = { kind: key.kind, partition: key.partition, tags: { letter: "b" } };
    const letters = new Map<string, string>();
    const read: StoredRecord[] = [];
    const tagged = new Set<string>();
    let isDone = false;
    const write = async () => {
      let version: Version | undefined;
      for (let turn = 0; turn < 40; turn += 1) {
        const letter = turn % 2 === 0 ? "a" : "b";
        const next = await writer.put(key, letter.repeat(65_536), version, { tags: { letter } });
        version = checkPresent("put with the stored version replaces the record", next, "a version");
        letters.set(version, letter);
      }
    };
    const readOn = async () => {
      while (!isDone) {
        for (const { version } of (await reader.scan(filter, { limit: 9 })).items) tagged.add(version);
        const record = await reader.get(key);
        if (record) read.push(record);
      }
    };
    const readers = [readOn(), readOn()];
    await write().finally(() => {
      isDone = true;
    });
    await Promise.all(readers);
    const rule = "a reader sees a put as a whole: its text, its version and its tags";
    for (const { version, value } of read) {
      const letter = letters.get(version);
      check(rule, value === letter?.repeat(65_536), `65,536 times ${letter}`, value);
    }
    for (const version of tagged) checkEqual(rule, letters.get(version), "b");
  },

  async "a touch reads a record and leaves it as it is"({ driver, key }) {
    if (driver.touch === undefined) return;
    checkEqual("touch finds no record before the first put", await driver.touch(key), undefined);
    checkEqual("touch stores no record", await driver.get(key), undefined);
    const tags = { tag: freshName() };
    const version = await create(driver, key, "text", { tags });
    const rule = "touch returns the record and leaves its version, its text and its tags";
    const stored = { key, version, value: "text" };
    checkEqual(rule, await driver.touch(key), stored);
    checkEqual(rule, await driver.get(key), stored);
    checkEqual(rule, await scanAll(driver, { kind: key.kind, partition: key.partition, tags }), [stored]);
  },

  async "of 50 puts on one version one wins"({ driver, key, open }) {
    const drivers = [driver, await open()] as const;
    let version: Version | undefined;
    for (let round = 0; round < 100; round += 1) {
      const expected = version;
      const puts = race(drivers, async (racing, racer) => {
        const value = `${round}/${racer}`;
        return { value, version: await racing.put(key, value, expected) };
      });
      const stored = (await puts).filter((put) => put.version !== undefined);
      const winner = checkOne("of several puts on one version exactly one is stored", stored);
      checkEqual("the put that was acknowledged is stored", await driver.get(key), { key, ...winner });
      version = winner.version;
    }
  },

  async "a version never returns, also after a delete"({ driver, key }) {
    const versions: Version[] = [];
    for (let round = 0; round < 10; round += 1) {
      const old = versions.at(-1);
      const created = await create(driver, key, "created");
      versions.push(created);
      if (old !== undefined) {
        const rule = "a version of a deleted record is not that of a later record";
        checkEqual(rule, await driver.put(key, "refused", old), undefined);
        checkEqual(rule, await driver.delete(key, old), false);
      }
      versions.push(await replace(driver, key, "replaced", created));
      await driver.delete(key, round % 2 === 0 ? undefined : versions.at(-1));
    }
    checkUnique(versions);
  },

  async "a delete is true once"({ driver, key, open }) {
    const drivers = [driver, await open()] as const;
    for (let round = 0; round < 20; round += 1) {
      const version = await create(driver, key);
      const expected = round % 2 === 0 ? undefined : version;
      const outcomes = await race(drivers, (racing) => racing.delete(key, expected));
      checkOne(
        "of several deletes of one record exactly one is true",
        outcomes.filter((isRemoved) => isRemoved === true),
      );
    }
    checkEqual("delete is false if there is no record", await driver.delete(freshKey()), false);
  },

  async "a delete with another version changes nothing"({ driver, key }) {
    const old = await create(driver, key);
    const version = await replace(driver, key, "newer", old);
    const rule = "delete removes nothing if another version is stored";
    checkEqual(rule, await driver.delete(key, old), false);
    await checkStored(rule, driver, key, version, "newer");
    for (const change of [{ kind: "client" as const }, { partition: freshName() }, { id: "two" }])
      checkEqual("delete removes no other record", await driver.delete({ ...key, ...change }), false);
    checkEqual("delete removes the stored version", await driver.delete(key, version), true);
    const left = await scanAll(driver, { kind: key.kind, partition: key.partition });
    checkEqual("a deleted record is in no scan", left, []);
  },

  async "a record expires after expiresInMs"({ driver, wait }) {
    const key = freshKey("login");
    const version = await create(driver, key, "text", { expiresInMs: SHORT_MS });
    // A touch leaves the expiry as it is too.
    await driver.touch?.(key);
    await wait(2 * SHORT_MS);
    const rule = "a record is not there after expiresInMs milliseconds";
    checkEqual(rule, await driver.get(key), undefined);
    checkEqual(rule, await scanAll(driver, { kind: "login", partition: key.partition }), []);
    checkEqual(rule, await driver.delete(key), false);
    checkEqual(rule, await driver.put(key, "refused", version), undefined);
    const next = await create(driver, key, "next", { expiresInMs: LONG_MS });
    checkUnique([version, next]);
    await wait(2 * SHORT_MS);
    await checkStored("a record is there until expiresInMs milliseconds are over", driver, key, next, "next");
  },

  async "a put without expiresInMs stays"({ driver, wait }) {
    const key = freshKey("login");
    // On a busy machine the record may expire before the second put.
    for (let ttl = 1000; ; ttl *= 2) {
      const first = await driver.put(key, "first", undefined, { expiresInMs: ttl });
      const second = first && (await driver.put(key, "second", first));
      await wait(ttl);
      if (second === undefined && ttl < 60_000) continue;
      const rule = "a put without expiresInMs takes away the expiry of the version before";
      return checkEqual(rule, await driver.get(key), { key, version: second, value: "second" });
    }
  },

  async "no record expires with a lease, and no lease with a record"({ driver, wait, key: kept }) {
    const version = await create(driver, kept);
    await leaseOf(driver, kept).take("a", SHORT_MS);
    const expiring = freshKey("login");
    await create(driver, expiring, "text", { expiresInMs: SHORT_MS });
    const lease = leaseOf(driver, expiring);
    await lease.take("a");
    await wait(2 * SHORT_MS);
    const rule = "a record does not expire with the lease under its key";
    await checkStored(rule, driver, kept, version);
    checkEqual(rule, (await scanAll(driver, { kind: kept.kind, partition: kept.partition })).length, 1);
    checkEqual("a record expires under a lease", await driver.get(expiring), undefined);
    const { by } = await lease.refuse();
    checkEqual("a lease does not expire with the record under its key", by.owner, "a");
  },
};
