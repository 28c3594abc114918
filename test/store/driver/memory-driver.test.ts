import { describe, expect, it, test } from "vitest";
import { AgentAuthError } from "../../../src/errors.js";
import type { LeaseClaim, RecordKey, Version } from "../../../src/store/driver/driver.js";
import { healthReport, isUnanswered, type Subscribe, untilFired, watchBy } from "../../../src/store/driver/engine.js";
import { memoryDriver } from "../../../src/store/driver/memory-driver.js";
import { grantTags, nameIn, sealedName, splitSummary } from "../../../src/store/driver/tenant-records.js";
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
  it("has records of its own", async () => {
    const [one, two] = [memoryDriver(), memoryDriver()];
    await one.put(KEY, "text", undefined);
    expect(await two.get(KEY)).toBeUndefined();
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

  it("removes records that have expired when another one that expires is stored", async () => {
    const { driver, advance } = driverAt(0);
    await driver.put(KEY, "text", undefined, { expiresInMs: 1000 });
    advance(1000);
    await driver.put(OTHER, "text", undefined, { expiresInMs: 1000 });
    expect(await driver.health?.()).toMatchObject({ facts: { records: "1" } });
  });

  it("keeps what replaced a record that would have expired", async () => {
    const { driver, advance } = driverAt(0);
    const version = await driver.put(KEY, "text", undefined, { expiresInMs: 1000 });
    await driver.put(KEY, "to stay", version);
    advance(1000);
    await driver.put(OTHER, "text", undefined, { expiresInMs: 1000 });
    expect(await driver.get(KEY)).toMatchObject({ value: "to stay" });
  });

  it("has a record that was stored again after its end in its new place", async () => {
    const { driver, advance } = driverAt(0);
    await driver.put(KEY, "text", undefined, { expiresInMs: 1000 });
    await driver.put(OTHER, "text", undefined);
    advance(1000);
    await driver.put(KEY, "text", undefined);
    const filter = { kind: KEY.kind, partition: KEY.partition };
    const { items, cursor } = await driver.scan(filter, { limit: 1 });
    const rest = await driver.scan(filter, { limit: 1, cursor });
    expect([...items, ...rest.items].map(({ key }) => key.id)).toEqual([OTHER.id, KEY.id]);
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

it("an error of ours that passes may hide what has happened, and no other does", () => {
  const error = (kind: AgentAuthError["class"]) => new AgentAuthError("x", "no", { class: kind });
  expect(
    [error("unavailable"), error("store"), Object.assign(new Error("no"), { class: "unavailable" })].map(isUnanswered),
  ).toEqual([true, false, false]);
});

describe("a watch over the channel of an engine", () => {
  const failure = (cause: unknown) =>
    new AgentAuthError("store_unavailable", "it ended", { class: "unavailable", cause });
  const keyOf = (id: string): RecordKey | undefined =>
    id === "no key" ? undefined : { kind: "grant", partition: "p", id };

  it("reports the key in each message until its signal fires, and gaps", async () => {
    const controller = new AbortController();
    const heard: string[] = [];
    const subscribe: Subscribe = async (channel, onMessage, onGap, signal) => {
      expect([channel, signal]).toEqual(["changes", controller.signal]);
      onGap();
      for (const message of ["one", "no key", "two"]) onMessage(message);
      controller.abort();
      onMessage("late");
    };
    const watch = watchBy(subscribe, "changes", { keyOf, failure });
    const listen = () =>
      watch(
        ({ id }) => heard.push(id),
        () => heard.push("gap"),
        controller.signal,
      );
    await listen();
    expect(heard).toEqual(["gap", "one", "two"]);
    await listen();
    expect(heard).toHaveLength(3);
  });

  it("fails with an error of the engine", async () => {
    const cause = new Error("the connection is gone");
    const watch = watchBy(() => Promise.reject(cause), "changes", { keyOf, failure });
    const { signal } = new AbortController();
    await expect(
      watch(
        () => {},
        () => {},
        signal,
      ),
    ).rejects.toMatchObject({ code: "store_unavailable", cause });
  });
});

it("a connection that listens is kept until the signal of its watch fires", async () => {
  const controller = new AbortController();
  let hasEnded = false;
  const ended = untilFired(controller.signal).then(() => {
    hasEnded = true;
  });
  await new Promise((resolve) => setImmediate(resolve));
  expect(hasEnded).toBe(false);
  controller.abort();
  await ended;
});

it("the report of an engine has the sentences that hold, and the facts that are known", () => {
  const facts = { version: "1", policy: "", replicas: undefined, role: null };
  expect(healthReport(5, ["a risk", false, undefined], [false, "an error"], facts)).toEqual({
    clockAheadMs: 5,
    risks: ["a risk"],
    errors: ["an error"],
    facts: { version: "1", policy: "" },
  });
});

const nameOf = async (...parts: string[]) => parts.join(" ");

// What an engine holds, which other versions of this program read.
describe("the tags of a grant", () => {
  const profile = { profile: "ann" };
  const server = { server: "https://mcp.example" };
  const issuer = { issuer: "https://as.example" };
  const one = { profile: "tag profile ann" };
  const other = { server: "tag server https://mcp.example" };

  it.each<[string, Parameters<typeof grantTags>[1], Record<string, string>]>([
    ["nothing", {}, {}],
    ["a profile", profile, one],
    ["a server", server, other],
    ["both", { ...profile, ...server }, { ...one, ...other, login: "tag login ann https://mcp.example" }],
    ["an issuer", issuer, { issuer: "tag issuer https://as.example" }],
    ["a login that is needed", { state: "needs_login" }, { state: "tag state needs_login" }],
    ["a refresh that was lost", { state: "lost_refresh" }, { state: "tag state lost_refresh" }],
    ["a state that a clock decides", { state: "expired" }, {}],
  ])("are named by %s", async (_what, query, expected) => {
    expect(await grantTags(nameOf, query)).toEqual(expected);
  });
});

describe("what is stored of a record", () => {
  it("has the name of its partition", async () => {
    const sealing = { nameOf: async (text: string) => `<${text}>` };
    expect(await nameIn(sealing, "p", ["grant", undefined, "x"])).toBe('<["p","grant",null,"x"]>');
    expect(sealedName({ kind: "grant", partition: "p", id: "i" })).toBe("grant:p:i");
  });

  it.each([
    ["3:sumvalue", { summary: "sum", value: "value" }],
    ["12:twelve chars", { summary: "twelve chars", value: "" }],
    ["{3:}", { value: "{3:}" }],
    ["3", { value: "3" }],
    ["", { value: "" }],
  ])("is divided: %j", (stored, parts) => {
    expect(splitSummary(stored)).toEqual(parts);
  });
});
