import { describe, expect, it } from "vitest";
import { AgentAuthError } from "../../src/errors.js";
import { systemClock } from "../../src/http/deadline.js";
import { IssuerLoads, IssuerPauses } from "../../src/oauth/issuer-pauses.js";
import { memoryRecords, type ShortLivedRecords } from "../../src/oauth/model/grant-store.js";

const ISSUER = "https://as.example";
const MINUTE = 60_000;

/** Two workers, and what they share. */
function workers(records: ShortLivedRecords | undefined = memoryRecords()) {
  return [1, 2].map(() => new IssuerPauses(records, systemClock));
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
  ["another issuer with the same hash", JSON.stringify({ issuer: "https://b.example", pausedUntil: 1e15 })],
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
  const pauses = new IssuerPauses(records, systemClock);
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
    const pauses = new IssuerPauses(memoryRecords(), clock);
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
    await new IssuerPauses(records, clock).set(ISSUER, START + 5000);
    const text = JSON.stringify({ issuer: ISSUER, pausedUntil: START + 5000 });
    const put = [expect.stringMatching(/^pause-[0-9a-f]{1,8}$/), text, { now: START, expiresAt: START + 5000 }];
    expect(puts).toEqual([put, put]);
    expect(taken).toEqual([put[0]]);
  });

  it("that could be stored at once is stored once", async () => {
    let puts = 0;
    const records = { ...memoryRecords(), put: async () => ++puts > 0 };
    await new IssuerPauses(records, systemClock).set(ISSUER, Date.now() + MINUTE);
    expect(puts).toBe(1);
  });
});

describe("the load of an issuer", () => {
  const START = 1_000_000;

  it("has so many refreshes at once, and others wait for a moment, or for the distance of two", async () => {
    const { clock } = clockAt(START);
    const loads = new IssuerLoads(undefined, clock, 2);
    let end = () => {};
    const held = new Promise<void>((resolve) => (end = resolve));
    const first = loads.during(ISSUER, () => held);
    expect(await loads.laterTurn(ISSUER, 10)).toBeUndefined();
    const second = loads.during(ISSUER, () => held);
    expect(await loads.laterTurn(ISSUER, 10)).toEqual({ at: START + 250 });
    expect(await loads.laterTurn(ISSUER, 900)).toEqual({ at: START + 900 });
    expect(await loads.laterTurn("https://other.example", 10)).toBeUndefined();
    end();
    await Promise.all([first, second]);
    expect(await loads.laterTurn(ISSUER, 10)).toBeUndefined();
  });

  it("has none before its Retry-After has passed, and then not all at once", async () => {
    const { clock, move } = clockAt(START);
    const loads = new IssuerLoads(undefined, clock, 2);
    const why = busy(10);
    await expect(loads.during(ISSUER, () => Promise.reject(why))).rejects.toBe(why);
    expect(await loads.laterTurn(ISSUER, 100)).toEqual({ at: START + 10_100, why });
    expect(await loads.laterTurn(ISSUER, 100)).toEqual({ at: START + 10_200, why });
    // A shorter one does not end it sooner.
    await expect(loads.during(ISSUER, () => Promise.reject(busy(1)))).rejects.toThrow("busy");
    move(9999);
    expect((await loads.laterTurn(ISSUER, 100))?.at).toBe(START + 10_300);
    move(1);
    expect(await loads.laterTurn(ISSUER, 100)).toBeUndefined();
  });

  it("is not paused by an error without a time, or by a bug", async () => {
    const loads = new IssuerLoads(undefined, systemClock, 1);
    for (const error of [busy(), new Error("x")]) {
      await expect(loads.during(ISSUER, () => Promise.reject(error))).rejects.toBe(error);
      expect(await loads.laterTurn(ISSUER, 10)).toBeUndefined();
    }
  });

  it("learns what other workers were answered, at most every two seconds", async () => {
    const { clock, move } = clockAt(START);
    const records = memoryRecords();
    const [one, other] = [1, 2].map(() => new IssuerLoads(records, clock, 1));
    expect(await one?.laterTurn(ISSUER, 100)).toBeUndefined();
    await other?.during(ISSUER, () => Promise.reject(busy(60))).catch(() => undefined);
    move(1999);
    expect(await one?.laterTurn(ISSUER, 100)).toBeUndefined();
    move(1);
    const later = await one?.laterTurn(ISSUER, 100);
    expect(later?.at).toBe(START + 60_100);
    expect(later?.why).toMatchObject({ message: '"https://as.example" asked another worker to wait; 58 s are left' });
  });
});
