import { describe, expect, it } from "vitest";
import type { AgentAuthError } from "../../../src/errors.js";
import { grantStore } from "../../../src/store/driver/grant-store.js";
import { memoryDriver } from "../../../src/store/driver/memory-driver.js";
import { keysInUse, reseal } from "../../../src/store/driver/reseal.js";
import { CipherError } from "../../../src/store/seal/sealing.js";
import { pendingError } from "../../helpers/captured.js";
import { madeClient, madeGrant } from "../../helpers/grant.js";
import { key, testRing } from "../seal/support.js";

const KEYS = { a: key(1), b: key(2) };

describe("reseal", () => {
  const setUp = async () => {
    const driver = memoryDriver();
    for (const tenant of ["ann", "bob"]) {
      const store = grantStore(driver, { seal: testRing(), tenant });
      for (const profile of ["one", "two", "three"]) await store.save(madeGrant({ profile }), undefined);
      await store.saveClient(madeClient({ issuer: `https://${tenant}.example` }), "form");
    }
    return { driver, ring: testRing({ current: "b", keys: KEYS }) };
  };

  it("seals every record with the current key, and each is found as before", async () => {
    const { driver, ring } = await setUp();
    expect(await keysInUse(driver)).toEqual({ a: 8 });
    expect(await reseal(driver, ring)).toEqual({ resealed: 8, current: 0, changed: 0, unusable: 0 });
    expect(await keysInUse(driver)).toEqual({ b: 8 });
    const store = grantStore(driver, { seal: testRing({ current: "b", keys: { b: KEYS.b } }), tenant: "ann" });
    expect(await store.list({ profile: "two" })).toHaveLength(1);
    expect(await store.readClient("https://bob.example", "form")).toBeDefined();
    expect(await reseal(driver, ring)).toEqual({ resealed: 0, current: 8, changed: 0, unusable: 0 });
  });

  it("goes on behind the first page of the engine", async () => {
    const driver = memoryDriver();
    const store = grantStore(driver, { seal: testRing() });
    const profiles = Array.from({ length: 201 }, (_, nth) => `p${nth}`);
    for (const profile of profiles) await store.save(madeGrant({ profile }), undefined);
    const ring = testRing({ current: "b", keys: KEYS });
    expect(await keysInUse(driver)).toEqual({ a: 201 });
    expect(await reseal(driver, ring)).toMatchObject({ resealed: 201 });
    expect(await keysInUse(driver)).toEqual({ b: 201 });
  });

  it("continues where it was aborted", async () => {
    const { driver, ring } = await setUp();
    const { put } = driver;
    const controller = new AbortController();
    let puts = 0;
    driver.put = async (...args) => {
      if (++puts === 3) controller.abort();
      return put.apply(driver, args);
    };
    expect(await pendingError(reseal(driver, ring, { signal: controller.signal }))).toMatchObject({ code: "aborted" });
    driver.put = put;
    expect(await reseal(driver, ring)).toMatchObject({ resealed: 5, current: 3 });
  });

  it("puts no older text over what another process has stored since it was read", async () => {
    const { driver, ring } = await setUp();
    const { scan } = driver;
    let changed: string | undefined;
    driver.scan = async (...args) => {
      const page = await scan.apply(driver, args);
      const [first] = page.items;
      if (changed === undefined && first) {
        changed = await driver.put(first.key, first.value, first.version);
      }
      return page;
    };
    expect(await reseal(driver, ring)).toMatchObject({ resealed: 7, changed: 1 });
    const { items } = await scan.call(driver, { kind: "grant" }, { limit: 10 });
    expect(items.map(({ version }) => version)).toContain(changed);
  });

  it("leaves what another process changes, and what it cannot open", async () => {
    const { driver, ring } = await setUp();
    const { put } = driver;
    const [first, second] = (await driver.scan({ kind: "grant" }, { limit: 2 })).items;
    if (!first || !second) throw new Error("two grants");
    await driver.put(second.key, second.value.replace(/"key":"a"(?!.*"key":"a")/s, '"key":"lost"'), second.version);
    const errors: AgentAuthError[] = [];
    driver.put = async (at, value, expected, options) => {
      const isFirst = at.id === first.key.id && at.partition === first.key.partition;
      if (isFirst) await put.call(driver, first.key, first.value, first.version);
      return put.call(driver, at, value, expected, options);
    };
    const report = await reseal(driver, ring, { onUnusable: (error) => errors.push(error) });
    expect(report).toEqual({ resealed: 6, current: 0, changed: 1, unusable: 1 });
    const message = expect.stringContaining('the key "lost", which is not in the key ring');
    expect(errors).toMatchObject([{ code: "store_failed", class: "store", message, cause: expect.any(CipherError) }]);
    expect(await keysInUse(driver)).toEqual({ a: 1, b: 6, lost: 1 });
  });
});
