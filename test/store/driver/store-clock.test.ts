import { describe, expect, it } from "vitest";
import { isFresh } from "../../../src/oauth/model/grant.js";
import { openGrantStore } from "../../../src/store/driver/grant-store.js";
import { memoryDriver } from "../../../src/store/driver/memory-driver.js";
import { madeGrant } from "../../helpers/grant.js";
import { TestTime } from "./support.js";

const HOUR = 3_600_000;
const KEY = { profile: "default", server: "https://mcp.example/mcp", account: undefined };

/** Machines whose clocks differ from that of one engine. */
function machines() {
  const time = new TestTime();
  const engine = memoryDriver({ clock: time });
  const open = (aheadMs: number) => {
    const process = time.process();
    const set = { aheadMs, measured: 0 };
    const clock = { ...process, epoch: () => time.epoch() + set.aheadMs };
    const health = async () => {
      set.measured++;
      return { clockAheadMs: set.aheadMs, risks: [], errors: [], facts: {} };
    };
    const store = openGrantStore({ ...bound(engine), health }, { seal: "none" }, { clock });
    const grant = () => {
      const obtainedAt = clock.epoch();
      return madeGrant({ ...KEY, tokens: { ...madeGrant().tokens, obtainedAt, expiresAt: obtainedAt + HOUR } });
    };
    const fresh = async () => {
      const stored = await store.read(KEY);
      return stored && isFresh(stored, clock.epoch(), undefined);
    };
    return { store, set, grant, fresh };
  };
  return { time, open };
}

function bound(engine: ReturnType<typeof memoryDriver>) {
  const { system, location } = engine;
  const { get, put, scan, claim, extend, release } = engine;
  const calls = { get, put, scan, claim, extend, release, delete: engine.delete };
  const bind = ([name, call]: [string, unknown]) => [name, (call as () => unknown).bind(engine)];
  return { system, location, ...Object.fromEntries(Object.entries(calls).map(bind)) } as typeof engine;
}

describe("a token of machines whose clocks differ by hours", () => {
  it("is fresh on all of them for its life, and on none after it", async () => {
    const { time, open } = machines();
    const fleet = [-HOUR, 0, 2 * HOUR].map(open);
    for (const [nth, { store, grant }] of fleet.entries()) {
      await store.save({ ...grant(), generation: nth + 1 }, nth === 0 ? undefined : nth);
      expect(await Promise.all(fleet.map(({ fresh }) => fresh()))).toEqual([true, true, true]);
      const [listed] = await store.list();
      expect(listed?.tokens).toEqual((await store.read(KEY))?.tokens);
      await time.advance(HOUR - 60_000);
      expect(await Promise.all(fleet.map(({ fresh }) => fresh()))).toEqual([false, false, false]);
    }
  });

  it("stays fresh on a machine whose clock is set back or forward", async () => {
    const { open } = machines();
    const { store, set, grant, fresh } = open(0);
    await store.save({ ...grant(), generation: 1 }, undefined);
    for (const aheadMs of [-HOUR, 0, 2 * HOUR]) {
      set.aheadMs = aheadMs;
      expect(await fresh()).toBe(true);
    }
  });

  it("costs no call of the engine while the clock continues as it did", async () => {
    const { time, open } = machines();
    const { store, set, grant, fresh } = open(HOUR);
    await store.save({ ...grant(), generation: 1 }, undefined);
    const { measured } = set;
    for (let read = 0; read < 5; read++) await fresh();
    expect(set.measured).toBe(measured);
    await time.advance(10 * 60_000);
    await fresh();
    expect(set.measured).toBe(measured + 1);
  });

  it("has the times that were saved where clocks agree within seconds, or the engine does not show its own", async () => {
    const { open } = machines();
    const { store, grant } = open(0);
    const saved = { ...grant(), generation: 1 };
    await store.save(saved, undefined);
    expect((await open(9000).store.read(KEY))?.tokens.expiresAt).toBe(saved.tokens.expiresAt);
    const plain = openGrantStore(memoryDriver(), { seal: "none" }, {});
    await plain.save(saved, undefined);
    expect((await plain.read(KEY))?.tokens.obtainedAt).toBe(saved.tokens.obtainedAt);
  });
});
