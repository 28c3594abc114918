import type { RecordKey, RecordKind, ScanFilter, StoreDriver, Version } from "../../../src/store/driver/driver.js";
import { check, checkEqual, checkPresent } from "./check.js";
import { type Cases, create, freshName, LONG_MS, leaseOf, replace, scanAll } from "./store-under-test.js";

const IDS = ["one", "two"];

/** Cases about scans. */
export const scanCases: Cases = {
  async "a scan returns each record once while others write"({ driver, key: { partition }, open }) {
    const writer = await open();
    const keyOf = (name: string, nth: number): RecordKey => ({ kind: "grant", partition, id: `${name}-${nth}` });
    const put = (name: string, nth: number) => create(writer, keyOf(name, nth), `${name}-${nth}`);
    for (let nth = 0; nth < 30; nth += 1) {
      await put("stays", nth);
      await put("leaves", nth);
    }
    let turn = 0;
    const between = async () => {
      // 20 turns, so that the scan ends although records are created during it.
      if (turn >= 20) return;
      const updated = keyOf("stays", (turn * 7) % 30);
      const stored = await writer.get(updated);
      if (stored) await replace(writer, updated, updated.id, stored.version);
      await writer.delete(keyOf("leaves", turn));
      await put("created", turn);
      turn += 1;
    };
    const found = await scanAll(driver, { kind: "grant", partition }, 4, between);
    const rule = "a scan returns a record that is there from its first part to its last exactly once";
    const seen = found.map(({ key }) => key.id).filter((id) => id.startsWith("stays-"));
    const staying = Array.from({ length: 30 }, (_, nth) => `stays-${nth}`);
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
    for (const partition of partitions) await leaseOf(driver, { kind: "grant", partition, id: "leased" }).take("a");
    const rule = "a scan returns the records of its kind and partition alone";
    for (const place of places) checkEqual(rule, await valuesOf(driver, place), textsOf(place));
    checkEqual("a scan of an empty partition is empty", await valuesOf(driver, { kind: "key", partition: name }), []);
  },

  async "a scan without a partition returns those of all"({ driver }) {
    const partitions = Array.from({ length: 5 }, freshName);
    for (const partition of partitions) for (const id of IDS) await create(driver, { kind: "client", partition, id });
    const found = (await scanAll(driver, { kind: "client" }, 3))
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
      await create(driver, { kind: "grant", partition, id }, id, { tags });
      await create(driver, { kind: "grant", partition: `${partition}x`, id }, "of another partition", { tags });
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

  async "a scan by the due time returns the first ones in their order"({ driver, key: { kind, partition } }) {
    const keyOf = (id: string) => ({ kind, partition, id });
    const versions = new Map<string, Version>();
    const due = { late: 1_900_000_000_300, first: -5, tie: 7, "tie:": 7, none: undefined, gone: 3 };
    for (const [id, dueAt] of Object.entries(due))
      versions.set(id, await create(driver, keyOf(id), id, { dueAt, tags: { a: "1" } }));
    await create(driver, { kind, partition: `${partition}x`, id: "one" }, "of another partition", { dueAt: 1 });
    await create(driver, { kind: "client", partition, id: "one" }, "of another kind", { dueAt: 1 });
    await driver.delete(keyOf("gone"));
    const select = async (dueUntil: number, limit = 10, countTo?: number) => {
      const { items, cursor, total } = await driver.scan({ kind, partition, dueUntil }, { limit, countTo });
      return { total, cursor, items: items.map(({ key, value, dueAt }) => [key.id, value, dueAt]) };
    };
    const rule = "a scan by dueUntil returns the records that are due then, the lowest first, and how many there are";
    const [first, late] = [
      ["first", "first", -5],
      ["late", "late", 1_900_000_000_300],
    ];
    checkEqual(rule, await select(-6), { total: 0, items: [] });
    checkEqual(rule, await select(6), { total: 1, items: [first] });
    const { total, items } = await select(7);
    const ties = [first, ["tie", "tie", 7], ["tie:", "tie:", 7]];
    checkEqual(rule, { total, items: items.toSorted() }, { total: 3, items: ties });
    checkEqual(rule, await select(1_900_000_000_300, 1), { total: 4, items: [first] });
    checkEqual(rule, (await select(1_900_000_000_300)).items.at(-1), late);
    check(
      "it counts at least up to countTo",
      Number((await select(1_900_000_000_300, 1, 2)).total) >= 2,
      "2 or more",
      1,
    );
    const put = async (id: string, options: object) =>
      versions.set(
        id,
        await replace(driver, keyOf(id), `${id} again`, checkPresent(rule, versions.get(id), "one"), options),
      );
    await put("first", {});
    const kept = "put without dueAt leaves the one of the version before";
    checkEqual(kept, (await select(0)).items, [["first", "first again", -5]]);
    await put("first", { dueAt: 8 });
    await put("late", { dueAt: null });
    checkEqual("put replaces dueAt, and null removes it", (await select(2_000_000_000_000)).items.at(-1), [
      "first",
      "first again",
      8,
    ]);
    await driver.delete(keyOf("first"));
    await create(driver, keyOf("first"));
    checkEqual("a record does not inherit the dueAt of a deleted one", (await select(2_000_000_000_000)).total, 2);
    if (driver.touch) await driver.touch(keyOf("tie"));
    checkEqual("touch leaves dueAt", (await select(2_000_000_000_000)).total, 2);
  },

  async "a put replaces the tags"({ driver, key }) {
    const { kind, partition } = key;
    const select = (tags: Record<string, string>) => valuesOf(driver, { kind, partition, tags });
    const version = await create(driver, key, "first", { tags: { a: "1", b: "1" } });
    const next = await replace(driver, key, "second", version, { tags: { b: "2" } });
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

async function valuesOf(driver: StoreDriver, filter: ScanFilter, limit = 100) {
  return (await scanAll(driver, filter, limit)).map(({ value }) => value).toSorted();
}

const NAMES = [
  ...["\0", "a\0b", "\u0001", "\n", " ", "\t", "\u2028", "\u202e"],
  ...[":", "a:b", "::", "{}", "{a}", "}{", "[", "*", "?", "%", "_", "/", "..", "-", "--", "'", '"', "\\", "$1", ";"],
  ...["é", "e\u0301", "ß", "SS", "ss", "😀", "\uffff", "中文", "عربى", "a", "A", "0", "00", "null", "undefined"],
  ...["__proto__", "constructor", "toString", "x".repeat(1024), `${"x".repeat(1023)}y`, "😀".repeat(256)],
];
const KIB_256 = 262_144;

/** Cases about the form of names and texts. */
export const nameCases: Cases = {
  async "names may have any character"({ driver, key: { partition } }) {
    const partitions = NAMES.filter(({ length }) => length < 100).map((name) => `${partition}${name}`);
    const long = partition.padEnd(1024, "x");
    const groups: RecordKey[][] = [
      NAMES.map((id) => ({ kind: "grant", partition, id })),
      partitions.map((one) => ({ kind: "grant", partition: one, id: "one" })),
      [{ kind: "grant", partition: long, id: long }],
      // A kind that the core may add later.
      [{ kind: "madeup" as RecordKind, partition, id: "one" }],
    ];
    const rule = "two names are the same only if all their characters are";
    for (const keys of groups) await checkNames(driver, rule, keys);
  },

  async "names never run together"({ driver }) {
    const p = freshName();
    const keys = [":", "\0", "/", "{", "}", ",", '","', "::", " "].flatMap((mark): RecordKey[] => [
      { kind: "grant", partition: `${p}a${mark}b`, id: `c` },
      { kind: "grant", partition: `${p}a`, id: `b${mark}c` },
      { kind: "grant", partition: p, id: `a${mark}b${mark}c` },
      { kind: "client", partition: p, id: `a${mark}b${mark}c` },
    ]);
    await checkNames(driver, "kind, partition and id are separate parts of a name", keys);
  },

  async "a value may have 256 KiB, and a note 16 KiB"({ driver, key }) {
    const repeated = ["x".repeat(KIB_256), "é".repeat(KIB_256 / 2), "😀".repeat(KIB_256 / 4)];
    let version = await create(driver, key, "first");
    for (const text of [...repeated, `"\\\n'`.repeat(KIB_256 / 4), ""]) {
      version = await replace(driver, key, text, version);
      const stored = await driver.get(key);
      const size = stored?.value.length;
      check("a value of up to 256 KiB is stored as it is", stored?.value === text, `${text.length} characters`, size);
    }
    const lease = leaseOf(driver, key);
    for (const note of ["n".repeat(16_384), "😀".repeat(4096), `{"a":"'\\\\é"}`]) {
      const rule = "a note of up to 16 KiB is stored as it is";
      await lease.take("a");
      await lease.extend("a", LONG_MS, note);
      checkEqual(rule, (await lease.refuse()).by.note, note);
      await lease.release("a", note);
      const { previous } = await lease.take("a", LONG_MS, note);
      checkEqual(rule, previous?.note, note);
      await lease.release("a");
    }
  },
};

/** Each key has its own record and its own lease, and a scan returns the key as it was written. */
async function checkNames(driver: StoreDriver, rule: string, keys: readonly RecordKey[]): Promise<void> {
  for (const key of keys) {
    check(rule, (await driver.put(key, textOf(key), undefined)) !== undefined, "a version for a new name", key);
    const claim = await leaseOf(driver, key).claim(textOf(key));
    check(rule, claim.held, `a free lease for ${textOf(key)}`, claim);
  }
  const places = new Map(keys.map(({ kind, partition }) => [JSON.stringify([kind, partition]), { kind, partition }]));
  const found = [];
  for (const place of places.values()) found.push(...(await scanAll(driver, place)));
  const names = found.map(({ key }) => textOf(key)).toSorted();
  checkEqual("a scan returns the names as they were put", names, keys.map(textOf).toSorted());
  for (const key of keys) {
    checkEqual(rule, (await driver.get(key))?.value, textOf(key));
    checkEqual(rule, (await leaseOf(driver, key).refuse()).by.owner, textOf(key));
    checkEqual(rule, await driver.delete(key), true);
  }
}

function textOf({ kind, partition, id }: RecordKey): string {
  return JSON.stringify([kind, partition, id]);
}
