import { describe, expect, it, test } from "vitest";
import type { LeaseClaim, RecordKey, Version } from "../../../src/store/driver/driver.js";
import { memoryDriver } from "../../../src/store/driver/memory-driver.js";
import { driverContract } from "../driver-contract/driver-contract.js";

const REMEMBERED_MS = 30 * 86_400_000;
const KEY: RecordKey = { kind: "login", partition: "p", id: "one" };
const OTHER: RecordKey = { ...KEY, id: "two" };
const CLAIM: LeaseClaim = { owner: "a", ttlMs: 1000, note: "" };

function driverAt(start: number) {
  let now = start;
  const driver = memoryDriver({ clock: { epoch: () => now } });
  const advance = (ms: number) => {
    now += ms;
  };
  return { driver, advance };
}

describe("a memory driver whose clock moves when a case waits", () => {
  const { driver, advance } = driverAt(1_900_000_000_000);
  driverContract({ test, open: () => driver, wait: async (ms) => advance(Math.ceil(ms)) });
});

describe("a memory driver with the clock of the machine", () => {
  const declare = (name: string, run: () => Promise<void>) => name.includes("wrong clock") && test(name, run);
  driverContract({ test: declare, open: () => memoryDriver() });

  it("counts in Unix milliseconds", async () => {
    const before = Date.now();
    await memoryDriver().claim(KEY, CLAIM);
    const { clockAheadMs } = (await memoryDriver().health?.()) ?? {};
    expect(before).toBeGreaterThan(1_600_000_000_000);
    // A step of the machine's clock since this process began may be in the difference.
    expect(Math.abs(clockAheadMs ?? Number.NaN)).toBeLessThan(REMEMBERED_MS);
  });
});

describe("a memory driver", () => {
  it("has records of its own and the place that it was given", async () => {
    const [one, two] = [memoryDriver(), memoryDriver({ location: "the memory of a test" })];
    await one.put(KEY, "text", undefined);
    expect(await two.get(KEY)).toBeUndefined();
    expect([one.location, two.location]).toEqual(["memory", "the memory of a test"]);
  });

  const held = { held: true, attempt: 2 };
  it.each<[string, string, string | undefined, number, object]>([
    ["its trace", "a", "trace", 999, { ...held, previous: { owner: "a", releasedAt: 999, note: "trace" } }],
    ["its number alone, without a trace", "a", undefined, 999, { ...held, previous: undefined }],
    ["all of it, by another owner", "b", "trace", 999, { held: false, by: { owner: "a" }, leftMs: 1 }],
    ["its end, once it is over", "a", "trace", 1000, { ...held, previous: { releasedAt: undefined, note: "" } }],
  ])("keeps of a lease that was released %s", async (_what, owner, note, now, answer) => {
    const { driver, advance } = driverAt(0);
    await driver.claim(KEY, CLAIM);
    advance(now);
    await driver.release(KEY, { owner, note });
    expect(await driver.claim(KEY, { ...CLAIM, owner: "c" })).toMatchObject(answer);
  });

  it.each(["released", "expired"])("forgets the trace of a lease that has %s after 30 days", async (end) => {
    const { driver, advance } = driverAt(0);
    const finish = () => (end === "released" ? driver.release(KEY, { owner: "a", note: "trace" }) : advance(1000));
    await driver.claim(KEY, CLAIM);
    await finish();
    advance(REMEMBERED_MS - 1);
    await driver.claim(OTHER, CLAIM);
    expect(await driver.claim(KEY, CLAIM)).toMatchObject({ held: true, previous: { owner: "a" } });
    await finish();
    advance(REMEMBERED_MS);
    await driver.claim(OTHER, CLAIM);
    expect(await driver.claim(KEY, CLAIM)).toMatchObject({ held: true, previous: undefined });
  });

  it("removes records that have expired when another one is stored", async () => {
    const { driver, advance } = driverAt(0);
    await driver.put(KEY, "text", undefined, { expiresInMs: 1000 });
    advance(1000);
    await driver.put(OTHER, "text", undefined);
    expect(await driver.health?.()).toMatchObject({ facts: { records: "1" } });
  });

  it("keeps what replaced a record that would have expired", async () => {
    const { driver, advance } = driverAt(0);
    const version = await driver.put(KEY, "text", undefined, { expiresInMs: 1000 });
    await driver.put(KEY, "to stay", version);
    advance(1000);
    await driver.put(OTHER, "text", undefined);
    expect(await driver.get(KEY)).toMatchObject({ value: "to stay" });
  });

  it("looks no longer at the end of a record that was deleted", async () => {
    let visits = 0;
    const driver = memoryDriver({ clock: { epoch: () => (visits += 1) } });
    for (let nth = 0; nth < 100; nth++) {
      await driver.put({ ...KEY, id: `${nth}` }, "text", undefined, { expiresInMs: 1e9 });
      await driver.delete({ ...KEY, id: `${nth}` });
    }
    visits = 0;
    await driver.put(OTHER, "text", undefined);
    expect(visits).toBeLessThan(10);
  });

  it("visits only the records with a tag, however many others there are", async () => {
    let visits = 0;
    const driver = memoryDriver({ clock: { epoch: () => (visits += 1) } });
    const put = (id: string, login: string) => driver.put({ ...KEY, id }, "text", undefined, { tags: { login } });
    for (let nth = 0; nth < 100; nth++) await put(`${nth}`, `of ${nth}`);
    const scan = async (login: string) => {
      visits = 0;
      const { items } = await driver.scan({ kind: KEY.kind, partition: KEY.partition, tags: { login } }, { limit: 9 });
      return { ids: items.map(({ key }) => key.id), visits };
    };
    expect(await scan("of nobody")).toEqual({ ids: [], visits: 0 });
    expect(await scan("of 7")).toEqual({ ids: ["7"], visits: 1 });
  });

  it("returns a record that got its tag late once, in its place", async () => {
    const { driver } = driverAt(0);
    const put = (id: string, tag: string, version?: Version) =>
      driver.put({ ...KEY, id }, "text", version, { tags: { tag, all: "yes" } });
    const first = await put("first", "old");
    await put("second", "new");
    await put("first", "new", first);
    await put("third", "new");
    const scan = async (tags: Record<string, string>) => {
      const ids: string[] = [];
      let cursor: string | undefined;
      do {
        const page = await driver.scan({ kind: KEY.kind, partition: KEY.partition, tags }, { limit: 1, cursor });
        ids.push(...page.items.map(({ key }) => key.id));
        cursor = page.cursor;
      } while (cursor !== undefined);
      return ids;
    };
    expect(await scan({ tag: "new" })).toEqual(["first", "second", "third"]);
    expect(await scan({ tag: "old" })).toEqual([]);
    expect(await scan({ tag: "new", all: "yes" })).toEqual(["first", "second", "third"]);
    await driver.delete({ ...KEY, id: "second" });
    expect(await scan({ tag: "new" })).toEqual(["first", "third"]);
  });

  it("reports nothing to a watch whose signal has fired since the change", async () => {
    const { driver } = driverAt(0);
    const changes: RecordKey[] = [];
    const controller = new AbortController();
    const over = driver.watch?.(
      (key) => changes.push(key),
      () => {},
      controller.signal,
    );
    const put = driver.put(KEY, "text", undefined);
    controller.abort();
    await Promise.all([put, over]);
    expect(changes).toEqual([]);
  });
});
