import { describe, expect, it } from "vitest";
import { AgentAuthError } from "../../src/errors.js";
import { systemClock } from "../../src/http/deadline.js";
import { IssuerLoads, type IssuerOutcome, readPause, storePause } from "../../src/oauth/keep-alive.js";
import { memoryRecords, type ShortLivedRecords } from "../../src/oauth/model/grant-store.js";

const ISSUER = "https://as.example";
const MINUTE = 60_000;

/** The pauses that a worker sees and sets. */
function pausesOf(records: ShortLivedRecords | undefined, clock = systemClock) {
  const context = { records, clock };
  return {
    of: (issuer: string) => readPause(context, issuer),
    set: (issuer: string, until: number) => storePause(context, issuer, until),
  };
}

/** Two workers, and what they share. */
function workers(records: ShortLivedRecords | undefined = memoryRecords()) {
  return [1, 2].map(() => pausesOf(records));
}

it("shares the newest answer of an issuer, and of no other one", async () => {
  const [one, other] = workers();
  const now = Date.now();
  expect(await other?.of(ISSUER)).toBeUndefined();
  for (const minutes of [30, 10]) {
    await one?.set(ISSUER, now + minutes * MINUTE);
    const { pausedUntil, why } = (await other?.of(ISSUER)) ?? {};
    expect(pausedUntil).toBe(now + minutes * MINUTE);
    expect(why).toMatchObject({ code: "temporarily_unavailable", class: "unavailable", retryable: true });
    expect(why?.retryAfter).toBeGreaterThan(minutes * 60 - 30);
  }
  expect(await other?.of("https://other.example")).toBeUndefined();
});

it("shares no more than an hour of a pause, and nothing of one that has passed", async () => {
  const [one, other] = workers();
  await one?.set(ISSUER, Date.now() + 24 * 60 * MINUTE);
  expect((await other?.of(ISSUER))?.pausedUntil).toBeLessThanOrEqual(Date.now() + 60 * MINUTE);
  await one?.set(ISSUER, Date.now() - 1);
  expect(await other?.of(ISSUER)).toBeUndefined();
});

it.each([
  ["another issuer with the same id", JSON.stringify({ issuer: "https://b.example", pausedUntil: 1e15 })],
  ["no time", JSON.stringify({ issuer: ISSUER, pausedUntil: "soon" })],
  ["no object", "7"],
  ["no JSON", "{"],
])("knows of no pause where the record has %s", async (_, text) => {
  const [one] = workers({ ...memoryRecords(), read: async () => text });
  expect(await one?.of(ISSUER)).toBeUndefined();
});

it.each([
  ["has none", undefined],
  ["cannot read them", { ...memoryRecords(), read: undefined } as unknown as ShortLivedRecords],
  ["does not answer", { put: down, take: down, read: down }],
])("does without records where the store %s", async (_, records) => {
  const pauses = pausesOf(records);
  await pauses.set(ISSUER, Date.now() + MINUTE);
  expect(await pauses.of(ISSUER)).toBeUndefined();
});

async function down(): Promise<never> {
  throw new Error("down");
}

/** A clock that a test moves. */
function clockAt(start: number) {
  let now = start;
  const clock = { ...systemClock, epoch: () => now };
  const advance = (ms: number) => {
    now += ms;
  };
  return { clock, move: advance };
}

const busy = (retryAfter?: number) =>
  new AgentAuthError("temporarily_unavailable", "busy", { class: "unavailable", retryAfter });

describe("a pause", () => {
  const START = 1_000_000;

  it("is named with the seconds that are left, and has passed at its end", async () => {
    const { clock, move } = clockAt(START);
    const pauses = pausesOf(memoryRecords(), clock);
    await pauses.set(ISSUER, START + 1500);
    expect((await pauses.of(ISSUER))?.why).toMatchObject({
      message: '"https://as.example" asked another worker to wait; 2 s are left',
      retryAfter: 2,
    });
    move(1499);
    expect((await pauses.of(ISSUER))?.why?.retryAfter).toBe(1);
    move(1);
    expect(await pauses.of(ISSUER)).toBeUndefined();
  });

  it("replaces that of before, and is stored under letters and digits until it has passed", async () => {
    const { clock } = clockAt(START);
    const puts: unknown[] = [];
    const taken: string[] = [];
    const records: ShortLivedRecords = {
      put: async (...put) => puts.push(put) > 1,
      take: async (id) => void taken.push(id),
      read: async () => undefined,
    };
    await pausesOf(records, clock).set(ISSUER, START + 5000);
    const text = JSON.stringify({ issuer: ISSUER, pausedUntil: START + 5000 });
    const put = [expect.stringMatching(/^pause-[0-9a-f]{1,72}$/), text, { now: START, expiresAt: START + 5000 }];
    expect(puts).toEqual([put, put]);
    expect(taken).toEqual([put[0]]);
  });

  it("that could be stored at once is stored once", async () => {
    let puts = 0;
    const records = { ...memoryRecords(), put: async () => ++puts > 0 };
    await pausesOf(records).set(ISSUER, Date.now() + MINUTE);
    expect(puts).toBe(1);
  });
});

describe("the load of an issuer", () => {
  const START = 1_000_000;
  const LIMITS = { perIssuer: 2, mostWaiting: 20, everyMs: 24 * 60 * MINUTE };

  /** Does so many refreshes, one after the other. @returns for each one until when the issuer is paused, 0 if it is not */
  async function run(loads: IssuerLoads, count: number, outcome: IssuerOutcome): Promise<number[]> {
    const pauses: number[] = [];
    for (let nth = 0; nth < count; nth++)
      await loads.run(ISSUER, async (pause) => {
        pauses.push(pause?.pausedUntil ?? 0);
        return outcome;
      });
    return pauses;
  }

  /** How many of so many refreshes are in flight at once, and how many are set aside. */
  async function inFlight(loads: IssuerLoads, count: number) {
    const counts = { active: 0, aside: 0 };
    let end = () => {};
    const held = new Promise<void>((resolve) => {
      end = resolve;
    });
    const all = Array.from({ length: count }, () =>
      loads.run(ISSUER, async (pause) => {
        counts[pause === undefined ? "active" : "aside"]++;
        await held;
        return undefined;
      }),
    );
    await new Promise((resolve) => setImmediate(resolve));
    const seen = { ...counts };
    end();
    await Promise.all(all);
    return seen;
  }

  it("has so many refreshes at once, one while all fail, and few wait for that", async () => {
    const loads = new IssuerLoads(undefined, systemClock, LIMITS);
    expect(await inFlight(loads, 22)).toEqual({ active: 2, aside: 0 });
    expect(await inFlight(loads, 25)).toEqual({ active: 2, aside: 3 });
    await run(loads, 3, busy());
    expect(await inFlight(loads, 15)).toEqual({ active: 1, aside: 4 });
    await run(loads, 1, "answered");
    expect(await inFlight(loads, 15)).toEqual({ active: 2, aside: 0 });
  });

  it("has none before its Retry-After has passed", async () => {
    const { clock, move } = clockAt(START);
    const loads = new IssuerLoads(undefined, clock, LIMITS);
    expect(await run(loads, 3, busy(10))).toEqual([0, START + 10_000, START + 10_000]);
    move(9999);
    expect(await run(loads, 1, busy(1))).toEqual([START + 10_000]);
    move(1);
    expect(await run(loads, 1, undefined)).toEqual([0]);
  });

  it("has one now and then after 30 failures, until one succeeds", async () => {
    const { clock, move } = clockAt(START);
    const loads = new IssuerLoads(undefined, clock, LIMITS);
    expect(await run(loads, 31, busy())).toEqual([...Array.from({ length: 30 }, () => 0), START + 1000]);
    for (const seconds of [1, 2, 4, 8, 16, 32, 64, 86.4, 86.4]) {
      move(seconds * 1000 - 1);
      expect(await run(loads, 1, busy())).not.toEqual([0]);
      move(1);
      expect(await run(loads, 1, busy())).toEqual([0]);
    }
    move(86_400);
    expect(await run(loads, 1, "answered")).toEqual([0]);
    expect(await run(loads, 2, busy())).toEqual([0, 0]);
  });

  it("is not that of a login that fails by itself", async () => {
    const loads = new IssuerLoads(undefined, systemClock, LIMITS);
    const own = new AgentAuthError("invalid_request", "own", { class: "remote" });
    expect(await run(loads, 40, own)).toEqual(Array.from({ length: 40 }, () => 0));
    await expect(loads.run(ISSUER, () => Promise.reject(own))).rejects.toBe(own);
  });

  it("learns what other workers were answered, at most every two seconds", async () => {
    const { clock, move } = clockAt(START);
    const records = memoryRecords();
    const [one, other] = [1, 2].map(() => new IssuerLoads(records, clock, LIMITS));
    if (!one || !other) throw new TypeError("two are needed");
    expect(await run(one, 1, undefined)).toEqual([0]);
    await run(other, 1, busy(60));
    move(1999);
    expect(await run(one, 1, undefined)).toEqual([0]);
    move(1);
    expect(await run(one, 1, undefined)).toEqual([START + 60_000]);
  });
});
