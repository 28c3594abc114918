import { describe, expect, it } from "vitest";
import { type Clocks, decideTakeover, isLockOver, type Observation } from "../../../src/store/leases/file-leases.js";

const SIGHTS: Observation[] = [true, false].flatMap((done) =>
  (["alive", "dead", "unknown"] as const).flatMap((owner) =>
    [true, false].flatMap((sent) => [true, false].map((isExpired) => ({ done, owner, sent, isExpired }))),
  ),
);

describe("a lease of another process", () => {
  const fits = (cell: string, value: string | boolean) =>
    ["any", value === true ? "yes" : value === false ? "no" : value].includes(cell.trim());
  const seen: Observation[] = [];

  it.each([
    //done  owner    sent   expired decision
    ["yes", "any    ", "any", "any", "released"],
    ["no ", "dead   ", "any", "any", "died"],
    ["no ", "alive  ", "yes", "any", "wait"],
    ["no ", "alive  ", "no ", "no ", "wait"],
    ["no ", "alive  ", "no ", "yes", "expired"],
    ["no ", "unknown", "any", "no ", "wait"],
    ["no ", "unknown", "any", "yes", "expired"],
  ])("with done %s, owner %s, sent %s and expired %s: %s", (done, owner, sent, expired, decision) => {
    const sights = SIGHTS.filter((one) => {
      return fits(done, one.done) && fits(owner, one.owner) && fits(sent, one.sent) && fits(expired, one.isExpired);
    });
    expect(sights).not.toEqual([]);
    for (const one of sights) expect({ ...one, decision: decideTakeover(one) }).toEqual({ ...one, decision });
    seen.push(...sights);
  });

  it("is decided for every combination by one row", () => {
    expect(seen).toHaveLength(SIGHTS.length);
    expect(new Set(seen)).toEqual(new Set(SIGHTS));
  });
});

describe("the expiry of a lock", () => {
  const holder = { pid: 1, boot: "this", space: "", started: "" };
  // It started at 5,000 by the clock of its boot and at 1,000,000 by the epoch, and has 1,000 ms.
  const record = { id: "a", holder, at: 1_000_000, deadline: 6_000, duration: 1_000, extend: false };
  const clocks: Clocks = { boot: "this", now: 5_000, epoch: 1_000_000, heartbeat: undefined, watched: 0 };

  it.each<[string, { extend?: true; sent?: true }, Partial<Clocks>, boolean]>([
    ["this boot", {}, { now: 5_999 }, false],
    ["this boot", {}, { now: 6_000 }, true],
    ["this boot", { sent: true }, { now: 7_999 }, false],
    ["this boot", { sent: true }, { now: 8_000 }, true],
    ["this boot, with heartbeats", { extend: true }, { now: 1e9 }, false],
    ["this boot, after the machine slept", {}, { epoch: 1e12 }, false],
    ["this process", {}, { watched: 1_000 }, false],
    ["this process", {}, { watched: 1_001 }, true],
    ["this process", { sent: true }, { watched: 3_000 }, false],
    ["this process", { sent: true }, { watched: 3_001 }, true],
    ["this process, with heartbeats", { extend: true }, { watched: 1_001 }, true],
    ["this process, of another boot", {}, { boot: "other", watched: 1_001 }, true],
    ["the epoch, of another boot", {}, { boot: "other", epoch: 1_121_000 }, false],
    ["the epoch, of another boot", {}, { boot: "other", epoch: 1_121_001 }, true],
    ["the epoch, of another boot", { sent: true }, { boot: "other", epoch: 1_123_000 }, false],
    ["the epoch, of another boot", { sent: true }, { boot: "other", epoch: 1_123_001 }, true],
    ["the epoch, since a heartbeat", {}, { boot: "other", epoch: 1_121_500, heartbeat: 1_000_500 }, false],
    ["the epoch, since a heartbeat", {}, { boot: "other", epoch: 1_121_501, heartbeat: 1_000_500 }, true],
    ["a clock of another boot, far ahead", {}, { boot: "other", now: 1e9 }, false],
  ])("by %s (%o, %o) it has expired: %s", (_clock, { extend = false, sent = false }, shown, isExpired) => {
    expect(isLockOver({ ...record, extend }, sent, { ...clocks, ...shown })).toBe(isExpired);
  });
});
