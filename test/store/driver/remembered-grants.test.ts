import { describe, expect, it } from "vitest";
import { Secret } from "../../../src/redact.js";
import type { RecordKey, StoreDriver } from "../../../src/store/driver/driver.js";
import { memoryDriver } from "../../../src/store/driver/memory-driver.js";
import { NearGrants, type NearOptions, NewestGrants } from "../../../src/store/driver/remembered-grants.js";
import { madeGrant } from "../../helpers/grant.js";
import { TestTime } from "./support.js";

const ID = "an id";
const MINUTE = 60_000;
const { tokens } = madeGrant();
const GRANT = madeGrant({ generation: 5, tokens: { ...tokens, obtainedAt: 1000, expiresAt: undefined } });

describe("the newest generation that this process knows", () => {
  async function newest(ageMs = 0) {
    const time = new TestTime();
    const grants = new NewestGrants(time.process());
    grants.remember(ID, GRANT);
    await time.advance(ageMs);
    return grants;
  }

  it.each<[string, Partial<typeof GRANT>, boolean]>([
    ["an older one", { generation: 4 }, true],
    ["the same", {}, false],
    ["a newer one", { generation: 6 }, false],
    ["one of another login", { generation: 4, signedInAt: 7 }, false],
    ["one of another issuer", { generation: 4, issuer: "https://other.example" }, false],
    ["one that was received later", { generation: 4, tokens: { ...GRANT.tokens, obtainedAt: 1001 } }, false],
    ["one that was received earlier", { generation: 4, tokens: { ...GRANT.tokens, obtainedAt: 999 } }, true],
  ])("is put back over %s: %#", async (_what, over, isNewer) => {
    const stored = { ...GRANT, ...over };
    expect((await newest()).newerThan(ID, stored)).toBe(isNewer ? GRANT : undefined);
    expect((await newest()).newerThan("another id", stored)).toBeUndefined();
  });

  it("is put back for ten minutes, and not once it is forgotten", async () => {
    const older = { ...GRANT, generation: 4 };
    expect((await newest(10 * MINUTE)).newerThan(ID, older)).toBe(GRANT);
    expect((await newest(10 * MINUTE + 1)).newerThan(ID, older)).toBeUndefined();
    const grants = await newest();
    grants.forget(ID);
    expect(grants.newerThan(ID, older)).toBeUndefined();
  });

  it("is not replaced by an older one, and is by the first of another login", async () => {
    const grants = await newest();
    grants.remember(ID, { ...GRANT, generation: 4 });
    expect(grants.newerThan(ID, { ...GRANT, generation: 3 })).toBe(GRANT);
    const other = { ...GRANT, generation: 2, signedInAt: 7 };
    grants.remember(ID, other);
    expect(grants.newerThan(ID, { ...other, generation: 1 })).toBe(other);
  });

  const rotated = { ...GRANT, tokens: { ...GRANT.tokens, refreshToken: new Secret("another") } };

  it.each<[string, typeof GRANT, number | undefined]>([
    ["the same refresh token", GRANT, undefined],
    ["another refresh token", rotated, 4],
    ["no refresh token", { ...GRANT, tokens: { ...GRANT.tokens, refreshToken: undefined } }, 4],
    ["another login", { ...rotated, signedInAt: 7 }, undefined],
  ])("says what is used up, beside %s", async (_what, grant, spent) => {
    expect((await newest()).rotatedGeneration(ID, grant)).toBe(spent);
    expect((await newest()).rotatedGeneration("another id", grant)).toBeUndefined();
  });
});

describe("a near grant", () => {
  function near(options: Partial<NearOptions> = {}) {
    const time = new TestTime();
    const watches: Parameters<NonNullable<StoreDriver["watch"]>>[] = [];
    const driver: StoreDriver = memoryDriver();
    driver.watch = (...watch) => {
      watches.push(watch);
      return new Promise(() => undefined);
    };
    const grants = new NearGrants(driver, { ttlMs: 5000, ...options }, time.process());
    const change = (key: Partial<RecordKey>) => watches[0]?.[0]({ kind: "grant", partition: "p", id: ID, ...key });
    return {
      time,
      grants,
      watches,
      change,
      gap: () => watches[0]?.[1](),
      set: () => grants.set(ID, GRANT, time.epoch()),
    };
  }

  it("is one for its time, counted from before the engine was asked", async () => {
    const { time, grants } = near();
    grants.set(ID, GRANT, time.epoch() - 2000);
    await time.advance(2999);
    expect([grants.get(ID), grants.get("another id")]).toEqual([GRANT, undefined]);
    await time.advance(1);
    expect(grants.get(ID)).toBeUndefined();
  });

  it("is none where it was read before, or when, it was dropped", async () => {
    const { time, grants, set } = near();
    const before = time.epoch();
    await time.advance(1);
    grants.drop(ID);
    grants.set(ID, GRANT, before);
    set();
    expect(grants.get(ID)).toBeUndefined();
    await time.advance(1);
    set();
    expect(grants.get(ID)).toBe(GRANT);
    grants.drop("another id");
    expect(grants.get(ID)).toBe(GRANT);
  });

  it("is dropped by a report about it, and by a gap, and by no other report; one watch is enough", async () => {
    const { time, grants, watches, change, gap, set } = near();
    expect(watches).toHaveLength(0);
    for (const end of [() => change({}), gap]) {
      await time.advance(1);
      set();
      change({ id: "another id" });
      change({ kind: "client" });
      expect(grants.get(ID)).toBe(GRANT);
      end();
      expect(grants.get(ID)).toBeUndefined();
      // It was read before that.
      grants.set(ID, GRANT, time.epoch());
      expect(grants.get(ID)).toBeUndefined();
    }
    expect(watches).toHaveLength(1);
  });

  it("is one of no more than the most", async () => {
    const { time, grants } = near({ maxEntries: 2 });
    for (const id of ["a", "b", "c"]) grants.set(id, GRANT, time.epoch());
    expect(["a", "b", "c"].map((id) => grants.get(id) !== undefined)).toEqual([false, true, true]);
  });

  it.each([ID, undefined])(
    "is none under a lease of %s, nor is one set there that was read before it ended",
    async (id) => {
      const { time, grants, set } = near();
      set();
      await time.advance(1);
      await grants.without(id, async () => {
        expect(grants.get(ID)).toBeUndefined();
        await time.advance(1);
        set();
        expect(grants.get(ID)).toBeUndefined();
      });
      expect(grants.get(ID)).toBeUndefined();
      set();
      expect(grants.get(ID)).toBe(GRANT);
      await grants.without("another id", async () => expect(grants.get(ID)).toBe(GRANT));
      await expect(grants.without(id, () => Promise.reject(new Error("it failed")))).rejects.toThrow("it failed");
      await time.advance(1);
      set();
      expect(grants.get(ID)).toBe(GRANT);
    },
  );
});
