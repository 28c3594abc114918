import { describe, expect, it, onTestFinished, vi } from "vitest";
import { isFresh } from "../../../src/oauth/model/grant.js";
import { EngineClock, onClock, readClock, since, storeClock } from "../../../src/store/driver/engine.js";
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

describe("the clocks of a store", () => {
  it("count what has passed by the clock that has moved more", () => {
    const clock = (now: number, epoch: number) => ({ ...storeClock, now: () => now, epoch: () => epoch });
    const from = readClock(clock(10, 1000));
    expect(from).toEqual({ now: 10, epoch: 1000 });
    expect([since(from, clock(15, 1003)), since(from, clock(13, 1007))]).toEqual([5, 7]);
  });

  it("beat until they are stopped", () => {
    vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] });
    onTestFinished(() => void vi.useRealTimers());
    const beat = vi.fn();
    const stop = storeClock.every(10, beat);
    vi.advanceTimersByTime(25);
    stop();
    vi.advanceTimersByTime(25);
    expect(beat).toHaveBeenCalledTimes(2);
    vi.stubGlobal("setInterval", () => 7);
    onTestFinished(() => void vi.unstubAllGlobals());
    expect(() => storeClock.every(10, beat)()).not.toThrow();
  });

  it.each<[number | undefined, number]>([
    [undefined, 0],
    [9999, 0],
    [-9999, 0],
    [10_000, 10_000],
    [-10_000, -10_000],
  ])("differ from an engine that is %s ms behind by %i", async (clockAheadMs, aheadMs) => {
    const driver = { ...memoryDriver(), health: async () => ({ clockAheadMs, risks: [], errors: [], facts: {} }) };
    expect(await new EngineClock(driver as never, storeClock).aheadMs()).toBe(aheadMs);
    const failing = { ...driver, health: () => Promise.reject(new Error("down")) };
    expect(await new EngineClock(failing as never, storeClock).aheadMs()).toBe(0);
    expect(await new EngineClock({ ...driver, health: undefined } as never, storeClock).aheadMs()).toBe(0);
  });

  it("are measured again where one of them was set by ten seconds, or after ten minutes", async () => {
    const at = { now: 0, epoch: 0 };
    let measured = 0;
    const health = async () => ({ clockAheadMs: ++measured * 60_000, risks: [], errors: [], facts: {} });
    const clock = { ...storeClock, now: () => at.now, epoch: () => at.epoch };
    const engine = new EngineClock({ ...memoryDriver(), health } as never, clock);
    const counts: number[] = [];
    for (const [now, epoch] of [
      [0, 0],
      [599_999, 599_999],
      [599_999, 609_998],
      [599_999, 609_999],
      [1_199_999, 1_209_999],
    ] as const) {
      Object.assign(at, { now, epoch });
      await engine.aheadMs();
      counts.push(measured);
    }
    expect(counts).toEqual([1, 1, 1, 2, 3]);
  });

  it("move all times of a grant", () => {
    const tokens = { ...madeGrant().tokens, obtainedAt: 10, expiresAt: 20 };
    const grant = { ...madeGrant(), usedAt: 15, tokens };
    expect(onClock(grant, 0)).toBe(grant);
    expect(onClock(grant, 5)).toEqual({ ...grant, usedAt: 20, tokens: { ...tokens, obtainedAt: 15, expiresAt: 25 } });
    const endless = { ...grant, usedAt: undefined, tokens: { ...tokens, expiresAt: undefined } };
    expect(onClock(endless, 5)).toEqual({ ...endless, tokens: { ...endless.tokens, obtainedAt: 15 } });
  });
});
