import { describe, expect, it, onTestFinished, vi } from "vitest";
import { AgentAuthError } from "../../../src/errors.js";
import type { Grant } from "../../../src/oauth/model/grant.js";
import type { GrantStore } from "../../../src/oauth/model/grant-store.js";
import { holderText, type Lease, type LeaseHolder, type LeaseOptions } from "../../../src/oauth/model/lease.js";
import {
  decodeState,
  failureIn,
  inLocalTime,
  type LeaseState,
  readAttempt,
  refreshedGeneration,
} from "../../../src/store/driver/driver-leases.js";
import { type GrantStoreOptions, openGrantStore } from "../../../src/store/driver/grant-store.js";
import { memoryDriver } from "../../../src/store/driver/memory-driver.js";
import { pendingError } from "../../helpers/captured.js";
import { madeGrant } from "../../helpers/grant.js";
import { until } from "../../helpers/server.js";
import { rejection } from "../../helpers/service.js";
import { testRing } from "../seal/support.js";
import { type FaultyDriver, faulty, lost, settle, TestTime } from "./support.js";

const BRIEF = { durationMs: 25_000 };

/** Two processes with a store each, over one engine. */
async function processes(options: Partial<GrantStoreOptions> = {}) {
  const time = new TestTime();
  const engine = { aheadMs: 0 };
  const driver = memoryDriver({ clock: { epoch: () => time.epoch() + engine.aheadMs } });
  const notes: string[] = [];
  const { claim, extend, release } = driver;
  driver.claim = (key, lease) => {
    notes.push(lease.note);
    return claim.call(driver, key, lease);
  };
  driver.extend = (key, lease) => {
    notes.push(lease.note);
    return extend.call(driver, key, lease);
  };
  driver.release = (key, lease) => {
    if (lease.note !== undefined) notes.push(lease.note);
    return release.call(driver, key, lease);
  };
  const open = () => {
    const clock = time.process();
    const own = faulty(driver);
    const store = openGrantStore(own, { seal: "none", takeover: "fast", ...options }, { clock });
    return { store, clock, driver: own };
  };
  const made = { time, engine, notes, one: open(), other: open() };
  // The names are hashed by threads, which no clock of a test waits for.
  for (const { store, driver: own } of [made.one, made.other]) {
    await store.lease("x", async () => undefined, BRIEF);
    Object.assign(own.calls, { claim: 0, extend: 0, release: 0 });
  }
  return made;
}

interface Held {
  lease: Lease;
  end(): void;
  fail(error: Error): void;
  ended: Promise<unknown>;
}

/** Work under a lease that a test ends. */
async function hold(store: GrantStore, options: LeaseOptions<unknown> = BRIEF): Promise<Held> {
  let held: Omit<Held, "ended"> | undefined;
  const ended = store.lease<unknown>(
    "x",
    (lease) =>
      new Promise<void>((resolve, reject) => {
        held = { lease, end: resolve, fail: reject };
      }),
    options,
  );
  ended.catch(() => undefined);
  await until(() => held !== undefined);
  return { ...(held as Omit<Held, "ended">), ended };
}

/** A process that waits for the lease. */
function wait(store: GrantStore, options: LeaseOptions<Lease> = BRIEF) {
  const state: { lease?: Lease } = {};
  const done = store.lease(
    "x",
    async (lease) => {
      state.lease = lease;
      return lease;
    },
    options,
  );
  done.catch(() => undefined);
  return { state, done };
}

/** The process is gone: its timers fire no more, and nothing releases the lease. */
function kill({ clock, driver }: { clock: { isStalled: boolean }; driver: FaultyDriver }): void {
  clock.isStalled = true;
  driver.before.release = lost;
}

/** A process that may have sent something under the lease is gone. */
async function holdAndDie(process: Awaited<ReturnType<typeof processes>>["one"]): Promise<void> {
  await (await hold(process.store)).lease.commit();
  kill(process);
}

describe("a lease over a driver", () => {
  it("belongs to a live holder for as long as it works", async () => {
    const { time, one, other } = await processes();
    const held = await hold(one.store);
    const waiting = wait(other.store);
    await time.advance(20_000);
    expect(waiting.state.lease).toBeUndefined();
    expect(held.lease.left()).toBe(5000);
    held.end();
    await held.ended;
    await time.advance(1000);
    expect(await waiting.done).toMatchObject({ waited: true, previous: undefined });
    // A server would gather one for each refresh.
    expect(time.timers).toBe(0);
  });

  it("of one tenant lets that of the same name of another tenant begin", async () => {
    const store = openGrantStore(memoryDriver(), { seal: "none" });
    const [acme, other] = [store.for?.({ tenant: "acme" }), store.for?.({ tenant: "other" })];
    const refreshes = madeGrant();
    let end = () => {};
    const work = () =>
      new Promise<void>((resolve) => {
        end = resolve;
      });
    const held = acme?.lease("x", work, { ...BRIEF, refreshes });
    expect(await other?.lease("x", async () => "began", { ...BRIEF, refreshes })).toBe("began");
    end();
    await held;
  });

  it("passes on four seconds after its holder was killed, and not before", async () => {
    const { time, one, other } = await processes();
    await holdAndDie(one);
    const waiting = wait(other.store);
    await time.advance(3900);
    expect(waiting.state.lease).toBeUndefined();
    await time.advance(500);
    expect((await waiting.done).previous).toMatchObject({ ended: "expired", committed: true, failure: undefined });
  });

  it("passes on later where the holder may have sent something and has to be waited for", async () => {
    const { time, one, other } = await processes({ takeover: "patient" });
    await holdAndDie(one);
    const waiting = wait(other.store);
    await time.advance(74_000);
    expect(waiting.state.lease).toBeUndefined();
    await time.advance(2000);
    expect((await waiting.done).previous).toMatchObject({ committed: true });
  });

  it.each([
    ["patient", { reusesRefreshToken: true }, true],
    ["patient", {}, false],
    [(issuer: string) => (issuer === "https://as.example" ? "fast" : "patient"), {}, true],
    [() => "patient" as const, {}, false],
    [() => "patient" as const, { reusesRefreshToken: true }, true],
  ] as const)("passes on by %o what refreshes %o fast: %s", async (takeover, over, isFast) => {
    const { time, one, other } = await processes({ takeover });
    const refreshes = madeGrant({ issuer: "https://as.example", ...over });
    const held = await hold(one.store, { ...BRIEF, refreshes });
    await held.lease.commit();
    kill(one);
    const waiting = wait(other.store, { ...BRIEF, refreshes });
    await time.advance(7000);
    expect(waiting.state.lease !== undefined).toBe(isFast);
    await time.advance(BRIEF.durationMs * 3);
    expect((await waiting.done).previous).toMatchObject({ committed: true });
  });

  it("passes on as fast where a holder that is waited for has sent nothing", async () => {
    const { time, one, other } = await processes({ takeover: "patient" });
    await hold(one.store);
    await time.advance(1500);
    kill(one);
    const waiting = wait(other.store);
    await time.advance(5000);
    expect((await waiting.done).previous).toMatchObject({ ended: "expired", committed: false });
  });

  it("is lost by a suspended holder, whose error says for how long", async () => {
    const { time, one, other } = await processes();
    const held = await hold(one.store);
    one.clock.isStalled = true;
    await time.advance(5000);
    expect(held.lease.left()).toBe(0);
    expect(await pendingError(held.lease.commit())).toMatchObject({ code: "lease_lost", class: "unavailable" });
    expect(one.driver.calls.extend).toBe(0);
    const waiting = wait(other.store);
    await time.advance(100);
    await waiting.done;
    one.clock.isStalled = false;
    await time.advance(2000);
    expect(held.lease.left()).toBe(0);
  });

  it("is not given back to a holder after another one has taken over", async () => {
    const { time, one, other } = await processes();
    const held = await hold(one.store);
    one.clock.isStalled = true;
    await time.advance(5000);
    const next = await hold(other.store);
    held.end();
    await held.ended;
    await next.lease.commit();
    expect(next.lease.left()).toBeGreaterThan(0);
  });

  it("is lost as soon as the engine says that another process has it", async () => {
    const { time, one } = await processes();
    const held = await hold(one.store);
    one.driver.extend = async () => false;
    await time.advance(1000);
    expect(held.lease.left()).toBe(0);
  });

  it("lets nothing be sent after the time of its work, though it is extended while that goes on", async () => {
    const { time, one } = await processes();
    const held = await hold(one.store);
    await held.lease.commit();
    await time.advance(BRIEF.durationMs - 1);
    expect([held.lease.left(), held.lease.maySend?.()]).toEqual([1, true]);
    await time.advance(1);
    expect([held.lease.left(), held.lease.maySend?.()]).toEqual([0, false]);
    held.end();
    await held.ended;
  });

  it("is lost where the engine does not answer, and says so", async () => {
    const { time, one } = await processes();
    const held = await hold(one.store);
    one.driver.before.extend = lost;
    await time.advance(3000);
    expect(held.lease.left()).toBeGreaterThan(0);
    await time.advance(1000);
    expect(held.lease.left()).toBe(0);
    expect(await pendingError(held.lease.commit())).toMatchObject({ code: "lease_lost" });
  });

  it("counts from before an extension was asked for, not from its answer", async () => {
    const { time, one } = await processes();
    const held = await hold(one.store);
    let answer: () => void = () => undefined;
    one.driver.after.extend = () => new Promise<void>((resolve) => (answer = resolve));
    await time.advance(1500);
    answer();
    await settle();
    one.driver.before.extend = lost;
    await time.advance(3499);
    expect(held.lease.left()).toBeGreaterThan(0);
    await time.advance(1);
    expect(held.lease.left()).toBe(0);
  });

  it("is not extended again by a heartbeat that waits while its work ends", async () => {
    const { time, one } = await processes();
    const held = await hold(one.store);
    let answer: () => void = () => undefined;
    one.driver.before.extend = () => new Promise<void>((resolve) => (answer = resolve));
    await time.advance(2000);
    held.end();
    await held.ended;
    answer();
    await settle();
    expect(one.driver.calls).toMatchObject({ extend: 1, release: 1 });
  });

  it.each([
    ["another error of ours", new AgentAuthError("timeout", "no answer", { class: "unavailable", retryAfter: 1 })],
    ["a save that is refused for good", new AgentAuthError("grant_not_saved", "full", { class: "store" })],
    ["any other error", Object.assign(new Error("no"), { code: "grant_not_saved", retryable: true })],
  ])("ends with %s, which leaves nothing to be saved later", async (_what, failure) => {
    const { one, other } = await processes();
    let saves = 0;
    const held = await hold(one.store, { ...BRIEF, save: async () => void saves++ });
    held.fail(failure);
    await expect(held.ended).rejects.toBe(failure);
    await wait(other.store).done;
    expect(saves).toBe(0);
  });

  it("stays with a process that has not saved new tokens also where no caller waits for that", async () => {
    const { time, one } = await processes();
    const held = await hold(one.store, { ...BRIEF, save: async () => undefined });
    held.fail(new AgentAuthError("grant_not_saved", "the engine is away", { class: "unavailable" }));
    await expect(held.ended).rejects.toMatchObject({ code: "grant_not_saved" });
    await time.advance(1000);
    expect([time.timers, one.driver.calls.release]).toEqual([0, 1]);
  });

  it("stays with a process that has not saved new tokens, beyond the time of its work, until it has", async () => {
    const { time, one, other } = await processes();
    let isBack = false;
    const unavailable = new AgentAuthError("store_unavailable", "away", { class: "unavailable" });
    const save = () => (isBack ? Promise.resolve() : Promise.reject(unavailable));
    let unsaved: Promise<unknown> | undefined;
    const onUnsaved = (until: Promise<unknown>) => {
      unsaved = until;
    };
    const held = await hold(one.store, { ...BRIEF, save, onUnsaved });
    held.fail(new AgentAuthError("grant_not_saved", "the engine is away", { class: "unavailable" }));
    await expect(held.ended).rejects.toMatchObject({ code: "grant_not_saved" });
    const waiting = wait(other.store);
    await time.advance(60_000);
    expect(waiting.state.lease).toBeUndefined();
    isBack = true;
    await time.advance(2000);
    await unsaved;
    expect((await waiting.done).previous).toBeUndefined();
    expect(time.timers).toBe(0);
  });

  it("is not committed where the engine never answers, for half the time that it lives", async () => {
    const { one } = await processes();
    const held = await hold(one.store);
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "performance"] });
    onTestFinished(() => void vi.useRealTimers());
    one.driver.before.extend = () => new Promise(() => undefined);
    const commit = expect(held.lease.commit()).rejects.toMatchObject({
      code: "store_unavailable",
      message: "memory at memory did not answer in 2 s",
    });
    await settle();
    vi.advanceTimersByTime(2000);
    await commit;
  });

  it("has no end while its work waits for the user", async () => {
    const { time, one, other } = await processes();
    const held = await hold(one.store, { durationMs: 15_000, extend: true });
    const waiting = wait(other.store, { durationMs: 15_000, extend: true });
    await time.advance(600_000);
    expect(held.lease.left()).toBeGreaterThan(0);
    expect(waiting.state.lease).toBeUndefined();
    held.end();
    await time.advance(1000);
    await waiting.done;
  });

  it("passes on from work that is stuck and has sent nothing", async () => {
    const { time, one, other } = await processes();
    const held = await hold(one.store);
    const waiting = wait(other.store);
    await time.advance(25_000);
    expect(held.lease.left()).toBe(0);
    expect(held.lease.lost?.().message).toContain("the time for this work has passed");
    await time.advance(5000);
    await waiting.done;
  });

  it("shows the failure of the attempt before to other processes, once", async () => {
    const { time, one, other } = await processes();
    const held = await hold(one.store);
    await held.lease.commit();
    let isWaiting = false;
    const onWait = () => {
      isWaiting = true;
    };
    const waiting = wait(other.store, { ...BRIEF, onWait });
    await until(() => isWaiting);
    await time.advance(1000);
    held.fail(new AgentAuthError("timeout", "no answer", { class: "unavailable", retryAfter: 7 }));
    await held.ended.catch(() => undefined);
    const endedAt = time.epoch();
    while (waiting.state.lease === undefined) await time.advance(100);
    const { previous, waited } = await waiting.done;
    expect(waited).toBe(true);
    expect(previous).toMatchObject({
      ended: "released",
      committed: true,
      endedAt,
      failure: { code: "timeout", class: "unavailable", message: "no answer", retry_after: 7 },
    });
    expect((await other.store.lease("x", async (lease) => lease, BRIEF)).previous).toBeUndefined();
  });

  it("shows an attempt that was rolled back, behind a token that is used up, as one that has sent nothing", async () => {
    const { one, other } = await processes();
    const grant = madeGrant({ generation: 2 });
    const newer = { ...grant, generation: 3 };
    await one.store.lease("x", async (lease) => lease.markRotated?.(), { ...BRIEF, refreshes: grant });
    const rolled = await hold(one.store, { ...BRIEF, refreshes: newer });
    rolled.lease.rollback();
    rolled.fail(new Error("no"));
    await expect(rolled.ended).rejects.toThrow("no");
    const next = await wait(other.store, { ...BRIEF, refreshes: newer }).done;
    expect([next.previous?.committed ?? false, next.rotatedGeneration]).toEqual([false, 2]);
  });

  it("seals what it leaves for the next process", async () => {
    const { one, other, notes } = await processes({ seal: testRing() });
    const failing = one.store.lease(
      "x",
      async (lease) => {
        await lease.commit();
        throw new AgentAuthError("timeout", "no answer", { class: "unavailable" });
      },
      BRIEF,
    );
    expect(await pendingError(failing)).toMatchObject({ code: "timeout" });
    expect(notes.length).toBeGreaterThan(2);
    for (const note of notes) expect(JSON.parse(note)).toMatchObject({ kind: "sealed", key: "a" });
    const { previous } = await other.store.lease("x", async (lease) => lease, BRIEF);
    expect(previous).toMatchObject({ committed: true, failure: { message: "no answer" } });
  });

  it("keeps the attempt before a rolled back one, in the time of each machine", async () => {
    const { time, one, other } = await processes();
    // The machine is an hour behind the engine.
    const { epoch } = other.clock;
    other.clock.epoch = () => epoch() - 3_600_000;
    const failing = await hold(one.store);
    failing.fail(new AgentAuthError("timeout", "no answer", { class: "unavailable" }));
    await failing.ended.catch(() => undefined);
    const endedAt = time.epoch();
    await time.advance(5000);
    const rolled = await hold(one.store);
    rolled.lease.rollback();
    rolled.fail(new AgentAuthError("timeout", "again", { class: "unavailable" }));
    await rolled.ended.catch(() => undefined);
    await time.advance(5000);
    const { previous } = await wait(other.store).done;
    expect(previous).toMatchObject({ endedAt: endedAt - 3_600_000, failure: { message: "no answer" } });
  });

  it("of a refresh is that of the login, whatever its name", async () => {
    const { time, one, other } = await processes();
    const grant = madeGrant();
    const held = await hold(one.store, { ...BRIEF, refreshes: grant });
    const impatient = (refreshes: Grant) =>
      other.store.lease("y", async () => "worked", { ...BRIEF, refreshes, patienceMs: 1 });
    const others = [{ profile: "p" }, { server: "https://o.example" }, { account: "a" }, { signedInAt: 5 }];
    for (const over of others) expect(await impatient({ ...grant, ...over })).toBe("worked");
    const failed = expect(impatient({ ...grant, generation: 2 })).rejects.toMatchObject({ code: "lease_busy" });
    await time.advance(1000);
    await failed;
    held.end();
    await held.ended;
  });

  it("shows the attempts before at the tokens that its work replaces, and at no others", async () => {
    const { one, other } = await processes();
    const grant = madeGrant({ generation: 2 });
    const failing = await hold(one.store, { ...BRIEF, refreshes: grant });
    failing.fail(new AgentAuthError("timeout", "no answer", { class: "unavailable" }));
    await failing.ended.catch(() => undefined);
    const attemptBefore = async (refreshes: Grant) => {
      let seen: Lease["previous"];
      const look = async (lease: Lease) => {
        seen = lease.previous;
        lease.rollback();
        throw new Error("enough");
      };
      await other.store.lease("x", look, { ...BRIEF, refreshes }).catch(() => undefined);
      return seen;
    };
    expect(await attemptBefore(grant)).toMatchObject({ ended: "released", failure: { message: "no answer" } });
    expect(await attemptBefore({ ...grant, generation: 3 })).toBeUndefined();
  });

  it("gives a waiting process the result of another one, or up", async () => {
    const { time, one, other } = await processes();
    const held = await hold(one.store);
    let waits = 0;
    const since = time.epoch();
    let result: string | undefined;
    const waiting = other.store.lease<unknown>("x", async () => "worked", {
      ...BRIEF,
      until: async () => result,
      onWait: ({ at }) => {
        waits++;
        expect(at).toBe(since);
      },
    });
    await time.advance(2000);
    result = "theirs";
    await time.advance(1000);
    expect(await waiting).toBe("theirs");
    expect(waits).toBe(1);
    const impatient = other.store.lease("x", async () => "worked", { ...BRIEF, patienceMs: 3000 });
    const failed = expect(impatient).rejects.toMatchObject({ code: "lease_busy", class: "unavailable" });
    await time.advance(4000);
    await failed;
    held.end();
  });

  it("is claimed again after pauses that grow to 200 ms, and as soon as it is free", async () => {
    vi.spyOn(Math, "random").mockReturnValue(0.5);
    onTestFinished(() => void vi.restoreAllMocks());
    const { time, one, other } = await processes();
    await hold(one.store);
    kill(one);
    const begun = time.epoch();
    const claims: number[] = [];
    other.driver.before.claim = () => void claims.push(Math.round(time.epoch() - begun));
    const waiting = wait(other.store);
    await time.advance(5000);
    await waiting.done;
    const growing = claims.slice(0, 8);
    expect(growing).toEqual([0, 20, 50, 95, 163, 264, 416, 616]);
    const [before = 0, last = 0] = claims.slice(-2);
    expect(last - before).toBeLessThanOrEqual(200);
    expect([last >= 4000, last <= 4020]).toEqual([true, true]);
  });

  it.each(["while another one has it", "in the time in which the one before may come back"])(
    "lets a caller leave at once %s",
    async (when) => {
      const { time, one, other } = await processes();
      await holdAndDie(one);
      if (when.startsWith("in the time")) await time.advance(5000);
      const controller = new AbortController();
      const until = async () => undefined;
      let hasWorked = false;
      const work = async () => {
        hasWorked = true;
      };
      const leaving = other.store.lease<unknown>("x", work, { ...BRIEF, until, signal: controller.signal });
      await time.advance(100);
      const begun = time.epoch();
      controller.abort();
      await expect(leaving).rejects.toMatchObject({ code: "aborted" });
      expect([time.epoch(), hasWorked]).toEqual([begun, false]);
    },
  );

  it.each([
    ["pod-7", "pod-7", '"pod-7"'],
    ["p".repeat(200), "p".repeat(100), `"${"p".repeat(100)}"`],
    ["a\u001b[2J", "a\u001b[2J", '"a\\e[2J"'],
    [undefined, undefined, "another process"],
  ])("names its holder %j to those who wait, also after a heartbeat", async (holder, label, text) => {
    const { time, one, other } = await processes({ holder });
    const held = await hold(one.store);
    const seen: LeaseHolder[] = [];
    const waiting = () =>
      other.store.lease("x", async () => 0, { ...BRIEF, patienceMs: 1, onWait: (by) => seen.push(by) });
    const first = rejection(waiting());
    await time.advance(2000);
    const second = rejection(waiting());
    await time.advance(1000);
    const busy = {
      code: "lease_busy",
      message: expect.stringContaining(`${label ? text : "another worker"} has held`),
    };
    expect([await first, await second]).toMatchObject([busy, busy]);
    expect(seen.map(({ pid, label }) => [pid, label])).toEqual(Array(2).fill([undefined, label]));
    expect(seen.map(holderText)).toEqual([text, text]);
    held.end();
    await held.ended;
  });

  it("is not waited for by a caller without patience", async () => {
    const { time, one, other } = await processes();
    await hold(one.store);
    const begun = time.epoch();
    const impatient = other.store.lease("x", async () => "worked", { ...BRIEF, patienceMs: 0 });
    await expect(impatient).rejects.toMatchObject({ code: "lease_busy" });
    expect(time.epoch()).toBe(begun);
  });

  it("is not taken back after an answer that refuses the claim", async () => {
    const { one } = await processes();
    const refused = new AgentAuthError("store_failed", "no rights", { class: "store" });
    one.driver.before.claim = () => Promise.reject(refused);
    await expect(one.store.lease("x", async () => "worked", BRIEF)).rejects.toBe(refused);
    await settle();
    expect(one.driver.calls).toMatchObject({ claim: 1, release: 0 });
  });

  it("is taken for one that may have sent something after a claim whose answer was lost", async () => {
    const { time, one, other } = await processes();
    const since = time.epoch();
    one.driver.after.claim = lost;
    expect(await pendingError(one.store.lease("x", async () => "worked", BRIEF))).toMatchObject({
      code: "store_unavailable",
    });
    await settle();
    // It was taken back, so that no process waits for its end.
    expect((await wait(other.store).done).previous).toMatchObject({ committed: true, ended: "expired" });
    expect(time.epoch()).toBe(since);
  });

  it("is taken for one that may have sent something after a claim that cannot be taken back", async () => {
    const { time, one, other } = await processes();
    one.driver.after.claim = lost;
    one.driver.before.release = lost;
    expect(await pendingError(one.store.lease("x", async () => "worked", BRIEF))).toMatchObject({
      code: "store_unavailable",
    });
    const waiting = wait(other.store);
    await time.advance(5000);
    expect((await waiting.done).previous).toMatchObject({ committed: true, ended: "expired" });
  });

  it("is held by a process whose client has sent its claim twice", async () => {
    const { time, one } = await processes();
    const { claim } = one.driver;
    one.driver.claim = async (...args) => {
      await claim(...args);
      return claim(...args);
    };
    const since = time.epoch();
    const { lease } = await hold(one.store);
    expect(time.epoch()).toBe(since);
    expect(lease.previous).toMatchObject({ committed: true, ended: "expired" });
  });

  it("lets nothing be sent once two heartbeats are late, and again after the next one", async () => {
    const { time, one } = await processes();
    const { lease } = await hold(one.store);
    expect(lease.maySend?.()).toBe(true);
    one.clock.isStalled = true;
    await time.advance(1999);
    expect(lease.maySend?.()).toBe(true);
    await time.advance(1);
    expect(lease.left()).toBeGreaterThan(0);
    expect(lease.maySend?.()).toBe(false);
    expect(lease.lost?.().code).toBe("lease_lost");
    await lease.commit();
    expect(lease.maySend?.()).toBe(true);
  });

  it("is not counted from the answer to a claim", async () => {
    const { time, one } = await processes();
    let answer: () => void = () => undefined;
    one.driver.after.claim = () => new Promise<void>((resolve) => (answer = resolve));
    const holding = hold(one.store);
    await until(() => one.driver.calls.claim === 1);
    await time.advance(3000);
    answer();
    one.driver.before.extend = lost;
    const { lease } = await holding;
    expect(lease.maySend?.()).toBe(false);
    await time.advance(1000);
    expect(lease.left()).toBe(0);
    expect(await pendingError(lease.commit())).toMatchObject({ code: "lease_lost" });
  });

  describe("that has expired while its holder may have sent something", () => {
    /** A process that takes over, and for how long it waited for the result of the holder before. */
    function takeOver({ time, other }: Awaited<ReturnType<typeof processes>>) {
      const since = time.epoch();
      const state: { waited?: number; result?: string } = {};
      const work = async () => {
        state.waited = time.epoch() - since;
        return "worked";
      };
      const done = other.store.lease<unknown>("x", work, { ...BRIEF, until: async () => state.result });
      return { state, done };
    }

    it.each([0, 1])("gives it time to come back where the engine stood still after %i answers", async (answers) => {
      const scene = await processes();
      const { time, one, other } = scene;
      const held = await hold(one.store);
      await held.lease.commit();
      one.driver.before.extend = lost;
      let answer: () => void = () => undefined;
      other.driver.before.claim = () =>
        other.driver.calls.claim > answers && new Promise<void>((resolve) => (answer = resolve));
      const { state, done } = takeOver(scene);
      while (other.driver.calls.claim <= answers) await time.advance(25);
      await time.advance(5000);
      other.driver.before = {};
      answer();
      await time.advance(1000);
      state.result = "theirs";
      await time.advance(1000);
      expect(await done).toBe("theirs");
      expect(state.waited).toBeUndefined();
    });

    it("gives it eight seconds after the engine did not answer this process", async () => {
      const scene = await processes();
      const { time, one, other } = scene;
      await holdAndDie(one);
      other.driver.before.claim = lost;
      expect(await pendingError(takeOver(scene).done)).toMatchObject({ code: "store_unavailable" });
      other.driver.before = {};
      const { state, done } = takeOver(scene);
      await time.advance(7800);
      expect(state.waited).toBeUndefined();
      await time.advance(500);
      await done;
      expect(state.waited).toBeGreaterThanOrEqual(8000);
    });

    it.each([11, 1000, 11 * 60_000])("gives it two seconds where it has been silent for %i ms more", async (ms) => {
      const scene = await processes();
      await holdAndDie(scene.one);
      await scene.time.advance(4000 + ms);
      const { state, done } = takeOver(scene);
      await scene.time.advance(1800);
      expect(state.waited).toBeUndefined();
      await scene.time.advance(500);
      await done;
    });

    it.each([10_000, 3_600_000])("gives it what it had where the clock of the engine jumps by %i ms", async (ms) => {
      const scene = await processes({ takeover: "patient" });
      const { time, engine, one } = scene;
      const held = await hold(one.store);
      await held.lease.commit();
      const { state, done } = takeOver(scene);
      await time.advance(1000);
      engine.aheadMs = ms + 120_000;
      await time.advance(60_000);
      expect(state.waited).toBeUndefined();
      expect(held.lease.left()).toBe(0);
      state.result = "theirs";
      await time.advance(1000);
      expect(await done).toBe("theirs");
    });

    it("gives it two seconds where the clock jumped before another process waited", async () => {
      const scene = await processes({ takeover: "patient" });
      const held = await hold(scene.one.store);
      await held.lease.commit();
      scene.engine.aheadMs = 3_600_000;
      const { state, done } = takeOver(scene);
      await scene.time.advance(1500);
      expect(state.waited).toBeUndefined();
      state.result = "theirs";
      await scene.time.advance(500);
      expect(await done).toBe("theirs");
    });

    it("is reported to the next one by a process that took over and has sent nothing", async () => {
      const { time, one, other } = await processes();
      await holdAndDie(one);
      await time.advance(5000);
      const next = await hold(other.store);
      next.fail(new Error("no space"));
      await next.ended.catch(() => undefined);
      expect((await wait(other.store).done).previous).toMatchObject({ committed: true, ended: "expired" });
    });
  });

  it("belongs to one tenant, unless its work concerns all", async () => {
    const driver = memoryDriver();
    const [ann, bob] = ["ann", "bob"].map((tenant) => openGrantStore(driver, { seal: "none", tenant }, {}));
    if (!ann || !bob) throw new Error("two stores");
    const held = await hold(ann);
    expect(await bob.lease("x", async () => "worked", BRIEF)).toBe("worked");
    held.end();
    const shared = await hold(ann, { ...BRIEF, shared: true });
    const failed = bob.lease("x", async () => "worked", { ...BRIEF, shared: true, patienceMs: 1 });
    expect(await pendingError(failed)).toMatchObject({ code: "lease_busy" });
    shared.end();
  });
});

const failure = { code: "timeout", class: "unavailable", message: "m" } as unknown as LeaseState["failure"];
const instead = { at: 1, endedAt: 2, ended: "expired", committed: false, failure: undefined } as const;

it.each<[string, number | undefined, LeaseState | undefined, object]>([
  [
    "has the failure that it ended with",
    6,
    { sent: false, failure },
    { at: 5, endedAt: 6, ended: "released", committed: false, failure },
  ],
  [
    "may have sent something where its note cannot be read",
    6,
    undefined,
    { at: 5, endedAt: 6, ended: "released", committed: true, failure: undefined },
  ],
  ["is the one before it where it was rolled back", 6, { sent: false, instead }, instead],
  [
    "has expired where it was not released, whatever its note says",
    undefined,
    { sent: false, failure, instead },
    { at: 5, endedAt: undefined, ended: "expired", committed: false, failure: undefined },
  ],
  [
    "has expired, and may have sent something, where there is no note either",
    undefined,
    undefined,
    { at: 5, endedAt: undefined, ended: "expired", committed: true, failure: undefined },
  ],
])("the previous attempt, as the next holder sees it, %s", (_what, releasedAt, note, expected) => {
  expect(readAttempt({ attempt: 1, owner: "one", at: 5, now: 9, releasedAt, note: "" }, note)).toEqual(expected);
});

describe("a note", () => {
  const remedy = { action: "wait" };
  const whole = {
    sent: true,
    generation: 3,
    rotatedGeneration: 2,
    holder: "one",
    failure: { code: "timeout", class: "unavailable", message: "m", retryable: true, remedy },
    instead: { at: 1, endedAt: 2, ended: "released", committed: true, failure },
  };
  const decoded = (note: object) => decodeState(JSON.stringify({ sent: false, ...note }));

  it("is read as it was written", () => {
    expect(decodeState(JSON.stringify(whole))).toEqual(whole);
    expect(decoded({})).toEqual({ sent: false });
  });

  it.each(["", "{", "[]", "null", "{}", '{"sent":1}', '{"sent":true,"sent":false}'])("is none: %j", (text) => {
    expect(decodeState(text)).toBeUndefined();
  });

  it.each<[string, object]>([
    ["a generation that is no number", { generation: "3" }],
    ["a rotated generation that is no number", { rotatedGeneration: null }],
    ["a holder that is no text", { holder: 5 }],
    ["a failure that is a text", { failure: "timeout" }],
    ...["code", "class", "message"].map((name): [string, object] => [
      `a failure whose ${name} is no text`,
      { failure: { ...failure, [name]: 5 } },
    ]),
    ["a failure whose remedy is a text", { failure: { ...failure, remedy: "wait" } }],
    ["a failure whose remedy has no action", { failure: { ...failure, remedy: {} } }],
    ["an attempt that is a list", { instead: [] }],
    ["an attempt without a time", { instead: { ...instead, at: undefined } }],
    ["an attempt that ended at no time", { instead: { ...instead, endedAt: "2" } }],
    ["an attempt that ended in another way", { instead: { ...instead, ended: "lost" } }],
    ["an attempt that may have sent", { instead: { ...instead, committed: "yes" } }],
  ])("is read without %s", (_what, note) => {
    expect(decoded(note)).toEqual({ sent: false });
  });

  it("is read with an attempt that has not ended, and without a failure of it that is none", () => {
    const open = { at: 1, ended: "released", committed: false };
    expect(decoded({ instead: { ...open, failure: "x" } })?.instead).toEqual({ ...open, failure: undefined });
  });

  it("has the failure of an error, and times of this machine", () => {
    const error = new AgentAuthError("timeout", "late", { class: "unavailable" });
    const first = { ...error.toJSON(), repeats: 0 };
    expect([failureIn(undefined, undefined), failureIn(error, undefined)]).toEqual([{}, { failure: first }]);
    expect(failureIn(error, { ...instead, failure: first })).toEqual({ failure: { ...first, repeats: 1 } });
    expect(inLocalTime(instead, 1)).toEqual({ ...instead, at: 0, endedAt: 1 });
    expect(inLocalTime({ ...instead, endedAt: undefined }, 1)).toEqual({ ...instead, at: 0, endedAt: undefined });
    expect(refreshedGeneration({ refreshes: undefined })).toBeUndefined();
  });
});
