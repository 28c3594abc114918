import type { RecordKey, RecordKind, StoreDriver } from "../store/driver/driver.js";
import { type Cases, create, freshName, refused, replace, scanAll, take } from "./bench.js";
import { check, checkEqual } from "./check.js";

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
    for (const note of ["n".repeat(16_384), "😀".repeat(4096), `{"a":"'\\\\é"}`]) {
      const claim = { owner: "a", ttlMs: 3_600_000, note: "" };
      const rule = "a note of up to 16 KiB is stored as it is";
      await take(driver, key, claim);
      await driver.extend(key, { ...claim, note });
      checkEqual(rule, (await refused(driver, key)).by.note, note);
      await driver.release(key, { owner: "a", note });
      const { before } = await take(driver, key, { ...claim, note });
      checkEqual(rule, before?.note, note);
      await driver.release(key, { owner: "a", note: undefined });
    }
  },
};

/** Each key has its own record and its own lease, and a scan returns the key as it was written. */
async function checkNames(driver: StoreDriver, rule: string, keys: readonly RecordKey[]): Promise<void> {
  for (const key of keys) {
    check(rule, (await driver.put(key, textOf(key), undefined)) !== undefined, "a version for a new name", key);
    const claim = await driver.claim(key, { owner: textOf(key), ttlMs: 3_600_000, note: "" });
    check(rule, claim.held, `a free lease for ${textOf(key)}`, claim);
  }
  const places = new Map(keys.map(({ kind, partition }) => [JSON.stringify([kind, partition]), { kind, partition }]));
  const found = [];
  for (const place of places.values()) found.push(...(await scanAll(driver, place)));
  const names = found.map(({ key }) => textOf(key)).toSorted();
  checkEqual("a scan returns the names as they were put", names, keys.map(textOf).toSorted());
  for (const key of keys) {
    checkEqual(rule, (await driver.get(key))?.value, textOf(key));
    checkEqual(rule, (await refused(driver, key)).by.owner, textOf(key));
    checkEqual(rule, await driver.delete(key), true);
  }
}

function textOf({ kind, partition, id }: RecordKey): string {
  return JSON.stringify([kind, partition, id]);
}
