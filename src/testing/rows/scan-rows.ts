import type { RecordKey, StoreDriver } from "../../store/driver/driver.js";
import { type Bench, claimOf, create, freshName, type Row, replace, scanAll, take } from "../bench.js";
import { check, checkEqual } from "../check.js";

/** Rows about scans. */
export const scanRows: readonly Row[] = [
  { name: "a scan returns each record once while others write", run: onceWhileOthersWrite },
  { name: "a scan never mixes partitions and kinds", run: neverMixes },
  { name: "a scan without a partition returns those of all", run: allPartitions },
  { name: "a scan selects by tags", run: selectsByTags },
  { name: "a put replaces the tags", run: replacesTags },
];

async function onceWhileOthersWrite({ open }: Bench): Promise<void> {
  const [driver, writer] = [await open(), await open()];
  const partition = freshName();
  const keyOf = (id: string): RecordKey => ({ kind: "grant", partition, id });
  const staying = Array.from({ length: 30 }, (_, index) => `stays-${index}`);
  const leaving = Array.from({ length: 30 }, (_, index) => `leaves-${index}`);
  for (const id of staying.flatMap((name, index) => [name, leaving[index] ?? ""])) await create(writer, keyOf(id), id);
  let turn = 0;
  const between = async () => {
    // 20 turns, so that the scan ends although records are created during it.
    if (turn >= 20) return;
    const [updated, removed] = [keyOf(staying[(turn * 7) % 30] ?? ""), keyOf(leaving[turn] ?? "")];
    const stored = await writer.get(updated);
    if (stored) await replace(writer, updated, updated.id, stored.version);
    await writer.delete(removed);
    await create(writer, keyOf(`created-${turn}`), `created-${turn}`);
    turn += 1;
  };
  const found = await scanAll(driver, { kind: "grant", partition }, { limit: 4, between });
  const rule = "a scan returns a record that is there from its first part to its last exactly once";
  const seen = found.filter(({ key }) => key.id.startsWith("stays-")).map(({ key }) => key.id);
  checkEqual(rule, seen.toSorted(), staying.toSorted());
  for (const { key, value } of found) checkEqual("a scan returns a record with its own key", value, key.id);
}

async function neverMixes({ open }: Bench): Promise<void> {
  const driver = await open();
  const name = freshName();
  const partitions = [name, `${name}1`, `${name}:`, `${name}*`, `${name}%`, name.toUpperCase()];
  const kinds = ["grant", "client"] as const;
  for (const partition of partitions) {
    for (const kind of kinds)
      for (const id of ["one", "two"]) await create(driver, { kind, partition, id }, `${kind} ${partition} ${id}`);
    // A lease is no record, also if its key has none.
    await take(driver, { kind: "grant", partition, id: "leased" }, claimOf("a"));
  }
  for (const partition of partitions) {
    for (const kind of kinds) {
      const rule = "a scan returns the records of its kind and partition alone";
      checkEqual(rule, await valuesOf(driver, { kind, partition }), [
        `${kind} ${partition} one`,
        `${kind} ${partition} two`,
      ]);
    }
  }
  checkEqual("a scan of an empty partition is empty", await valuesOf(driver, { kind: "key", partition: name }), []);
}

async function allPartitions({ open }: Bench): Promise<void> {
  const driver = await open();
  const partitions = Array.from({ length: 5 }, freshName);
  for (const partition of partitions)
    for (const id of ["one", "two"]) await create(driver, { kind: "client", partition, id });
  const found = (await scanAll(driver, { kind: "client" }, { limit: 3 }))
    .filter(({ key }) => partitions.includes(key.partition))
    .map(({ key }) => `${key.partition} ${key.id}`);
  const expected = partitions.flatMap((partition) => [`${partition} one`, `${partition} two`]);
  const rule = "a scan without a partition returns each record of the kind once";
  checkEqual(rule, found.toSorted(), expected.toSorted());
}

async function selectsByTags({ open }: Bench): Promise<void> {
  const driver = await open();
  const partition = freshName();
  const tagged: Record<string, Record<string, string>> = {
    both: { server: "s1", issuer: "i1" },
    server: { server: "s1", issuer: "i2" },
    crossed: { server: "i1", issuer: "s1" },
    longer: { server: "s1 ", issuer: "i1x" },
    odd: { "a:b": "{}", "a.b": "'\"%*\\ é", constructor: "c" },
    none: {},
  };
  for (const [id, tags] of Object.entries(tagged)) {
    await create(driver, { kind: "grant", partition, id }, id, tags);
    await create(driver, { kind: "grant", partition: `${partition}x`, id }, "of another partition", tags);
  }
  const select = (tags: Record<string, string> | undefined) => valuesOf(driver, { kind: "grant", partition, tags }, 1);
  const rule = "a scan with tags returns the records that have all of them";
  checkEqual(rule, await select({ server: "s1" }), ["both", "server"]);
  checkEqual(rule, await select({ server: "s1", issuer: "i1" }), ["both"]);
  checkEqual(rule, await select({ "a:b": "{}" }), ["odd"]);
  checkEqual(rule, await select({ "a.b": "'\"%*\\ é", constructor: "c" }), ["odd"]);
  checkEqual(rule, await select({ server: "i1", issuer: "i1" }), []);
  checkEqual(rule, await select({ missing: "s1" }), []);
  checkEqual("a scan without tags returns every record", await select(undefined), Object.keys(tagged).toSorted());
}

async function replacesTags({ open }: Bench): Promise<void> {
  const driver = await open();
  const key: RecordKey = { kind: "grant", partition: freshName(), id: "one" };
  const select = (tags: Record<string, string>) => valuesOf(driver, { kind: "grant", partition: key.partition, tags });
  const version = await create(driver, key, "first", { a: "1", b: "1" });
  const next = await driver.put(key, "second", version, { tags: { b: "2" } });
  check("put with the stored version replaces the record", next !== undefined, "a version", next);
  const rule = "put replaces the tags of the version before";
  for (const gone of [{ a: "1" }, { b: "1" }]) checkEqual(rule, await select(gone), []);
  checkEqual(rule, await select({ b: "2" }), ["second"]);
  await replace(driver, key, "third", next);
  checkEqual("a put without tags removes those of the version before", await select({ b: "2" }), []);
  await driver.delete(key);
  await create(driver, key, "fourth");
  checkEqual("a record does not inherit the tags of a deleted one", await select({ b: "2" }), []);
}

async function valuesOf(driver: StoreDriver, filter: Parameters<StoreDriver["scan"]>[0], limit = 100) {
  return (await scanAll(driver, filter, { limit })).map(({ value }) => value).toSorted();
}
