import type { Version } from "../../store/driver/driver.js";
import { type Bench, create, freshKey, freshName, type Row, replace, scanAll } from "../bench.js";
import { check, checkEqual, checkPresent } from "../check.js";

/** Rows about single records. */
export const recordRows: readonly Row[] = [
  { name: "a record is read as it was put, by every driver of the engine", run: readsBack },
  { name: "a put with another version changes nothing", run: refusesOtherVersions },
  { name: "a put is whole or nothing", run: isWhole },
  { name: "a touch reads a record and leaves it as it is", run: touches },
  { name: "of 50 puts on one version one wins", run: onePutWins },
  { name: "a version never returns, also after a delete", run: versionsNeverReturn },
  { name: "a delete is true once", run: deletesOnce },
  { name: "a delete with another version changes nothing", run: deletesVersion },
];

async function readsBack({ open }: Bench): Promise<void> {
  const [driver, other] = [await open(), await open()];
  const key = freshKey();
  checkEqual("get finds no record before the first put", await driver.get(key), undefined);
  const version = await create(driver, key, "first");
  checkEqual("get returns what put stored", await other.get(key), { key, version, value: "first" });
  const next = await replace(other, key, "second", version);
  check("each put has a new version", next !== version, `another version than ${version}`, next);
  checkEqual("get sees every acknowledged put", await driver.get(key), { key, version: next, value: "second" });
  check("delete removes a record", await driver.delete(key), "true", false);
  checkEqual("get sees every acknowledged delete", await other.get(key), undefined);
}

async function refusesOtherVersions({ open }: Bench): Promise<void> {
  const driver = await open();
  const key = freshKey();
  const old = await create(driver, key, "old");
  const version = await replace(driver, key, "stored", old);
  const rule = "put stores nothing if another version is stored";
  for (const expected of [undefined, old]) {
    checkEqual(rule, await driver.put(key, "refused", expected), undefined);
    checkEqual(rule, await driver.get(key), { key, version, value: "stored" });
  }
  await driver.delete(key);
  const absent = "put with an expected version stores nothing if there is no record";
  checkEqual(absent, await driver.put(key, "refused", version), undefined);
  checkEqual(absent, await driver.get(key), undefined);
}

async function touches({ open }: Bench): Promise<void> {
  const driver = await open();
  if (driver.touch === undefined) return;
  const key = freshKey();
  checkEqual("touch finds no record before the first put", await driver.touch(key), undefined);
  checkEqual("touch stores no record", await driver.get(key), undefined);
  const tag = freshName();
  const tags = { tag };
  const version = checkPresent(
    "put without an expected version creates a record",
    await driver.put(key, "text", undefined, { tags }),
    "a version",
  );
  const rule = "touch returns the record and leaves its version, its text and its tags";
  const stored = { key, version, value: "text" };
  checkEqual(rule, await driver.touch(key), stored);
  checkEqual(rule, await driver.get(key), stored);
  checkEqual(rule, await scanAll(driver, { kind: key.kind, partition: key.partition, tags }), [stored]);
}

/** A value, its version and its tags are written together, so that no reader sees a part of a put. */
async function isWhole({ open }: Bench): Promise<void> {
  const [writer, reader] = [await open(), await open()];
  const key = freshKey();
  const rule = "a reader sees a put as a whole: its text, its version and its tags";
  const texts = new Map<string, string>();
  let isDone = false;
  const write = async () => {
    let version: Version | undefined;
    for (let turn = 0; turn < 40; turn += 1) {
      const letter = turn % 2 === 0 ? "a" : "b";
      version = await writer.put(key, letter.repeat(65_536), version, { tags: { letter } });
      texts.set(checkPresent("put with the stored version replaces the record", version, "a version"), letter);
    }
  };
  const seen: { version: string; value: string; letter?: string }[] = [];
  const read = async () => {
    while (!isDone) {
      const stored = await reader.get(key);
      if (stored) seen.push(stored);
      const { items } = await reader.scan(
        { kind: "grant", partition: key.partition, tags: { letter: "b" } },
        { limit: 9 },
      );
      seen.push(...items.map((item) => ({ ...item, letter: "b" })));
    }
  };
  const readers = [read(), read()];
  await write().finally(() => {
    isDone = true;
  });
  await Promise.all(readers);
  for (const { version, value, letter } of seen) {
    const written = texts.get(version);
    check(rule, value === written?.repeat(65_536), `65,536 times ${written}`, value);
    if (letter !== undefined) check(rule, written === letter, `a text with the tag ${letter}`, `one with ${written}`);
  }
}

async function onePutWins({ open }: Bench): Promise<void> {
  const drivers = [await open(), await open()];
  const key = freshKey();
  let version: Version | undefined;
  for (let round = 0; round < 100; round += 1) {
    const expected = version;
    const puts = Array.from({ length: 50 }, async (_, racer) => {
      const value = `${round}/${racer}`;
      return { value, version: await drivers[racer % 2]?.put(key, value, expected) };
    });
    const [winner, ...others] = (await Promise.all(puts)).filter((put) => put.version !== undefined);
    const rule = "of several puts on one version exactly one is stored";
    check(rule, winner !== undefined, "one version", "none");
    check(rule, others.length === 0, "one version", [winner, ...others]);
    checkEqual("the put that was acknowledged is stored", await drivers[round % 2]?.get(key), { key, ...winner });
    version = winner.version;
  }
}

async function versionsNeverReturn({ open }: Bench): Promise<void> {
  const driver = await open();
  const key = freshKey();
  const versions: Version[] = [];
  const remove = [
    async () => void (await driver.delete(key)),
    async () => void (await driver.delete(key, versions.at(-1))),
  ];
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
    await remove[round % 2]?.();
  }
  const count = new Set(versions).size;
  check("a version is never used twice for one key", count === versions.length, "20 versions", versions);
}

async function deletesOnce({ open }: Bench): Promise<void> {
  const drivers = [await open(), await open()];
  const key = freshKey();
  for (let round = 0; round < 20; round += 1) {
    const version = await create(drivers[0] ?? (await open()), key);
    const expected = round % 2 === 0 ? undefined : version;
    const deletes = Array.from({ length: 50 }, (_, racer) => drivers[racer % 2]?.delete(key, expected));
    const winners = (await Promise.all(deletes)).filter((isRemoved) => isRemoved === true).length;
    checkEqual("of several deletes of one record exactly one is true", winners, 1);
  }
  checkEqual("delete is false if there is no record", await drivers[0]?.delete(freshKey()), false);
}

async function deletesVersion({ open }: Bench): Promise<void> {
  const driver = await open();
  const key = freshKey();
  const old = await create(driver, key);
  const version = await replace(driver, key, "newer", old);
  const rule = "delete removes nothing if another version is stored";
  checkEqual(rule, await driver.delete(key, old), false);
  checkEqual(rule, await driver.get(key), { key, version, value: "newer" });
  const others = [
    { ...key, kind: "client" as const },
    { ...key, partition: freshName() },
    { ...key, id: "two" },
  ];
  for (const other of others) checkEqual("delete removes no other record", await driver.delete(other), false);
  checkEqual("delete removes the stored version", await driver.delete(key, version), true);
  const left = await scanAll(driver, { kind: key.kind, partition: key.partition });
  checkEqual("a deleted record is in no scan", left, []);
}
