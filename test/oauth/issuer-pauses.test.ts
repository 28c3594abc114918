import { expect, it } from "vitest";
import { systemClock } from "../../src/http/deadline.js";
import { IssuerPauses } from "../../src/oauth/issuer-pauses.js";
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
