import type { StoreDriver, Version } from "../../store/driver/driver.js";
import { type Bench, claimOf, create, freshKey, LONG_MS, type Row, refused, scanAll, take } from "../bench.js";
import { check, checkEqual } from "../check.js";

const SHORT_MS = 200;

/** Rows about records that expire. */
export const expiryRows: readonly Row[] = [
  { name: "a record expires after expiresInMs", run: expires },
  { name: "a put without expiresInMs stays", run: stays },
  { name: "no record expires with a lease, and no lease with a record", run: outlives },
];

async function expires({ open, wait }: Bench): Promise<void> {
  const driver = await open();
  const key = freshKey("login");
  const version = await driver.put(key, "text", undefined, { expiresInMs: SHORT_MS });
  check("put with expiresInMs creates a record", version !== undefined, "a version", version);
  // A touch leaves the expiry as it is too.
  await driver.touch?.(key);
  await wait(2 * SHORT_MS);
  const rule = "a record is not there after expiresInMs milliseconds";
  checkEqual(rule, await driver.get(key), undefined);
  checkEqual(rule, await scanAll(driver, { kind: "login", partition: key.partition }), []);
  checkEqual(rule, await driver.delete(key), false);
  checkEqual(rule, await driver.put(key, "refused", version), undefined);
  const next = await driver.put(key, "next", undefined, { expiresInMs: LONG_MS });
  check("put creates a record in place of an expired one", next !== undefined, "a version", next);
  check("a version is never used twice for one key", next !== version, "another version", next);
  await wait(2 * SHORT_MS);
  checkEqual("a record is there until expiresInMs milliseconds are over", await driver.get(key), {
    key,
    version: next,
    value: "next",
  });
}

async function stays({ open, wait }: Bench): Promise<void> {
  const driver = await open();
  const key = freshKey("login");
  // On a busy machine the record may expire before the second put.
  for (let ttl = 1000; ; ttl *= 2) {
    const first = await driver.put(key, "first", undefined, { expiresInMs: ttl });
    const second: Version | undefined = first && (await driver.put(key, "second", first));
    if (second === undefined && ttl < 60_000) {
      await wait(ttl);
      continue;
    }
    await wait(ttl);
    const rule = "a put without expiresInMs takes away the expiry of the version before";
    return checkEqual(rule, await driver.get(key), { key, version: second, value: "second" });
  }
}

async function outlives({ open, wait }: Bench): Promise<void> {
  const driver = await open();
  await recordOutlivesLease(driver, wait);
  const key = freshKey("login");
  await driver.put(key, "text", undefined, { expiresInMs: SHORT_MS });
  await take(driver, key, claimOf("a"));
  await wait(2 * SHORT_MS);
  checkEqual("a record expires under a lease", await driver.get(key), undefined);
  const { by } = await refused(driver, key);
  checkEqual("a lease does not expire with the record under its key", by.owner, "a");
}

async function recordOutlivesLease(driver: StoreDriver, wait: Bench["wait"]): Promise<void> {
  const key = freshKey();
  const version = await create(driver, key);
  await take(driver, key, claimOf("a", SHORT_MS));
  await wait(2 * SHORT_MS);
  const rule = "a record does not expire with the lease under its key";
  checkEqual(rule, await driver.get(key), { key, version, value: "text" });
  const { length } = await scanAll(driver, { kind: key.kind, partition: key.partition });
  checkEqual(rule, length, 1);
}
