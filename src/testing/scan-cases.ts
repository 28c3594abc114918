import type { RecordKey, StoreDriver } from "../store/driver/driver.js";
import { type Cases, claimOf, create, freshName, replace, scanAll, take } from "./bench.js";
import { checkEqual } from "./check.js";

const IDS = ["one", "two"];

/** Cases about scans. */
export const scanCases: Cases = {
  async "a scan returns each record once while others write"({ driver, key: { partition }, open }) {
    const writer = await open();
    const keyOf = (id: string): RecordKey => ({ kind: "grant", partition, id });
    const staying = Array.from({ length: 30 }, (_, index) => `stays-${index}`);
    const leaving = Array.from({ length: 30 }, (_, index) => `leaves-${index}`);
    for (const id of staying.flatMap((name, index) => [name, leaving[index] ?? ""]))
      await create(writer, keyOf(id), id);
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
  },

  async "a scan never mixes partitions and kinds"({ driver }) {
    const name = freshName();
    const partitions = [name, `${name}1`, `${name}:`, `${name}*`, `${name}%`, name.toUpperCase()];
    const kinds = ["grant", "client"] as const;
    const places = partitions.flatMap((partition) => kinds.map((kind) => ({ kind, partition })));
    const textsOf = ({ kind, partition }: Omit<RecordKey, "id">) => IDS.map((id) => `${kind} ${partition} ${id}`);
    for (const place of places) {
      for (const [nth, id] of IDS.entries()) await create(driver, { ...place, id }, textsOf(place)[nth]);
    }
    // A lease is no record, also if its key has none.
    for (const partition of partitions) await take(driver, { kind: "grant", partition, id: "leased" }, claimOf("a"));
    const rule = "a scan returns the records of its kind and partition alone";
    for (const place of places) checkEqual(rule, await valuesOf(driver, place), textsOf(place));
    checkEqual("a scan of an empty partition is empty", await valuesOf(driver, { kind: "key", partition: name }), []);
  },

  async "a scan without a partition returns those of all"({ driver }) {
    const partitions = Array.from({ length: 5 }, freshName);
    for (const partition of partitions) for (const id of IDS) await create(driver, { kind: "client", partition, id });
    const found = (await scanAll(driver, { kind: "client" }, { limit: 3 }))
      .filter(({ key }) => partitions.includes(key.partition))
      .map(({ key }) => `${key.partition} ${key.id}`);
    const expected = partitions.flatMap((partition) => IDS.map((id) => `${partition} ${id}`));
    const rule = "a scan without a partition returns each record of the kind once";
    checkEqual(rule, found.toSorted(), expected.toSorted());
  },

  async "a scan selects by tags"({ driver, key: { partition } }) {
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
    const selections: [Record<string, string>, string[]][] = [
      [{ server: "s1" }, ["both", "server"]],
      [{ server: "s1", issuer: "i1" }, ["both"]],
      [{ "a:b": "{}" }, ["odd"]],
      [{ "a.b": "'\"%*\\ é", constructor: "c" }, ["odd"]],
      [{ server: "i1", issuer: "i1" }, []],
      [{ missing: "s1" }, []],
    ];
    for (const [tags, ids] of selections) {
      const found = await valuesOf(driver, { kind: "grant", partition, tags }, 1);
      checkEqual("a scan with tags returns the records that have all of them", found, ids);
    }
    const all = await valuesOf(driver, { kind: "grant", partition }, 1);
    checkEqual("a scan without tags returns every record", all, Object.keys(tagged).toSorted());
  },

  async "a put replaces the tags"({ driver, key }) {
    const { kind, partition } = key;
    const select = (tags: Record<string, string>) => valuesOf(driver, { kind, partition, tags });
    const version = await create(driver, key, "first", { a: "1", b: "1" });
    const next = await replace(driver, key, "second", version, { b: "2" });
    const rule = "put replaces the tags of the version before";
    for (const gone of [{ a: "1" }, { b: "1" }]) checkEqual(rule, await select(gone), []);
    checkEqual(rule, await select({ b: "2" }), ["second"]);
    await replace(driver, key, "third", next);
    checkEqual("a put without tags removes those of the version before", await select({ b: "2" }), []);
    await driver.delete(key);
    await create(driver, key, "fourth");
    checkEqual("a record does not inherit the tags of a deleted one", await select({ b: "2" }), []);
  },
};

async function valuesOf(driver: StoreDriver, filter: Parameters<StoreDriver["scan"]>[0], limit = 100) {
  return (await scanAll(driver, filter, { limit })).map(({ value }) => value).toSorted();
}
