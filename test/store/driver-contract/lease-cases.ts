import type { LeaseBusy, LeaseHeld } from "../../../src/store/driver/driver.js";
import { ContractViolation, check, checkEqual, checkOne, checkPresent, checkRising } from "./check.js";
import {
  type Cases,
  checkStored,
  claimOf,
  create,
  freshKey,
  type LeaseUnderTest,
  LONG_MS,
  leaseOf,
  race,
  replace,
  type StoreUnderTest,
} from "./store-under-test.js";

const TTL_MS = 400;
const HOUR_MS = 3_600_000;
const AHEAD = [HOUR_MS, -HOUR_MS] as const;

/** Cases about who holds a lease, and about the clock that it ends by. */
export const leaseCases: Cases = {
  async "of 50 claims one is held"({ driver, open }) {
    const drivers = [driver, await open()] as const;
    for (let round = 0; round < 20; round += 1) {
      const key = freshKey("lease");
      const answers = await race(drivers, async (racing, racer) => {
        const owner = `racer-${racer}`;
        return { owner, answer: await racing.claim(key, claimOf(owner)) };
      });
      const held = answers.flatMap(({ owner, answer }) => (answer.held ? [{ owner, answer }] : []));
      const winner = checkOne("of several claims exactly one is held", held);
      checkEqual("the first claim under a key has none before it", winner.answer.previous, undefined);
      for (const { answer } of answers) {
        if (!answer.held) checkBusy(answer, winner.owner, winner.answer);
      }
    }
  },

  async "extend and release by another owner are ignored"({ driver, lease }) {
    const claim = await lease.take("holder");
    const rule = "extend and release by another owner are ignored";
    checkEqual(rule, await lease.extend("another owner", 10 * LONG_MS), false);
    checkBusy(await lease.refuse(), "holder", claim);
    for (const note of ["of another owner", undefined]) {
      await lease.release("another owner", note);
      checkBusy(await lease.refuse(), "holder", claim);
    }
    checkEqual("the holder extends its lease", await lease.extend("holder"), true);
    await lease.release("holder", "released");
    checkEqual("a released lease is not extended", await lease.extend("holder"), false);
    await lease.release("holder", "released twice");
    const next = await lease.take("next");
    checkEqual("a second release changes nothing", next.previous?.note, "released");
    checkEqual(rule, await lease.extend("holder"), false);
    for (const note of ["late", undefined]) await lease.release("holder", note);
    checkBusy(await lease.refuse(), "next", next);
    const free = leaseOf(driver);
    checkEqual("a lease that was never claimed is not extended", await free.extend("holder"), false);
    await free.release("holder", "never held");
    const { previous } = await free.take("first");
    checkEqual("a release by an owner that held nothing leaves no trace", previous, undefined);
  },

  async "an extend counts from now and replaces the note"({ lease }) {
    await lease.take("holder");
    const { by: first } = await lease.refuse();
    checkEqual("the holder extends its lease", await lease.extend("holder", 10 * LONG_MS, "sent"), true);
    const { by, leftMs } = await lease.refuse();
    const isLonger = leftMs > 9 * LONG_MS && leftMs <= 10 * LONG_MS;
    check("extend counts the time from now", isLonger, `at most ${10 * LONG_MS} ms`, leftMs);
    checkEqual("extend replaces the note", by.note, "sent");
    const same = { ...by, now: first.now, note: first.note };
    checkEqual("extend keeps the time and the number of the claim", same, first);
    await lease.extend("holder", LONG_MS, "");
    const { leftMs: shorter } = await lease.refuse();
    check("extend may shorten a lease", shorter <= LONG_MS, `at most ${LONG_MS} ms`, shorter);
  },

  async "the attempt of each claim is higher"({ driver, key, wait }) {
    const lease = leaseOf(driver, key);
    const attempts: number[] = [];
    for (let round = 0; round < 9; round += 1) {
      const owner = `owner-${round}`;
      attempts.push((await lease.take(owner)).attempt);
      // A record under the key that is removed does not take the number with it.
      if (round % 3 === 2) await driver.delete(key, await create(driver, key));
      await lease.release(owner, round % 3 === 0 ? "released" : undefined);
    }
    attempts.push((await lease.take("expires", 50)).attempt);
    await wait(100);
    attempts.push((await lease.take("last")).attempt);
    checkRising(attempts);
  },

  async "a release leaves its note as a trace"({ lease }) {
    const { attempt } = await lease.take("first");
    await lease.release("first", "failed");
    const next = await lease.take("second");
    const before = checkPresent("the next claim has the released one before it", next.previous, "a trace");
    const { at, now, releasedAt, ...rest } = before;
    checkEqual("a trace has the note of the release", rest, { attempt, owner: "first", note: "failed" });
    const inOrder = releasedAt !== undefined && at <= releasedAt && releasedAt <= now;
    check("a trace has the time of its release", inOrder, "at <= releasedAt <= now", before);
  },

  async "a release without a note leaves no trace"({ lease }) {
    await lease.take("first");
    await lease.release("first", "failed");
    await lease.take("second");
    await lease.release("second", undefined);
    const { previous } = await lease.take("third");
    checkEqual("the claim after a release without a note has none before it", previous, undefined);
  },

  async "a lease needs no record and does not change one"({ driver, key }) {
    const lease = leaseOf(driver, key);
    await lease.take("holder");
    checkEqual("a lease makes no record", await driver.get(key), undefined);
    const first = await create(driver, key, "first");
    await lease.extend("holder");
    checkEqual("a put changes no lease", (await lease.refuse()).by.owner, "holder");
    const second = await replace(driver, key, "second", first);
    await lease.release("holder", "released");
    await lease.take("next");
    await checkStored("claim, extend and release change no record", driver, key, second, "second");
    checkEqual("a record is removed under a lease", await driver.delete(key, second), true);
    checkEqual("a lease outlives its record", (await lease.refuse()).by.owner, "next");
    checkEqual("a lease is extended without its record", await lease.extend("next"), true);
    await lease.release("next", "over");
    const { previous } = await lease.take("last");
    checkEqual("a lease leaves its trace without its record", previous?.note, "over");
  },
  async "a lease is free after its ttl and not before"({ driver, wait }) {
    for (const aheadMs of [0, ...AHEAD]) {
      const lease = leaseOf(driver);
      await lease.take("first", TTL_MS);
      const { previous } = await withShiftedClock(aheadMs, () => claimWhenFree(lease, wait));
      const trace = checkPresent("the claim after an expired one has it before it", previous, "a trace");
      const { owner, note, releasedAt, at, now } = trace;
      const left = { owner, note, releasedAt };
      checkEqual("an expired lease was not released", left, { owner: "first", note: "note of first" });
      check("a lease is not free before its ttl is over", now - at >= TTL_MS, `${TTL_MS} ms or more`, now - at);
    }
  },

  async "an expired lease is over for its owner"({ lease, wait }) {
    await lease.take("first", TTL_MS);
    await wait(2 * TTL_MS);
    checkEqual("an expired lease is not extended", await lease.extend("first"), false);
    await lease.release("first", "late");
    const { previous } = await lease.take("second");
    const trace = { note: previous?.note, releasedAt: previous?.releasedAt };
    checkEqual("an expired lease is not released", trace, { note: "note of first" });
  },

  async "an extended lease outlives its first ttl"({ driver, wait }) {
    // On a busy machine the lease may expire before it is extended.
    for (let ttlMs = TTL_MS; ttlMs < LONG_MS; ttlMs *= 2) {
      const lease = leaseOf(driver);
      await lease.take("first", ttlMs);
      if (!(await lease.extend("first"))) continue;
      await wait(2 * ttlMs);
      const { by } = await lease.refuse();
      return checkEqual("an extended lease is not free after its first ttl", by.owner, "first");
    }
    throw new ContractViolation("the owner of a lease extends it before its ttl is over", "true", "false");
  },

  async "a wrong clock of this machine moves no lease"({ driver }) {
    const rule = "the engine's clock decides about a lease, whatever the clock of this machine says";
    // Less than the hours by which the clocks differ.
    const ttlMs = HOUR_MS / 2;
    for (const [claimed, read] of [AHEAD, [AHEAD[1], AHEAD[0]]] as const) {
      const lease = leaseOf(driver);
      await withShiftedClock(claimed, () => lease.take("first", ttlMs));
      const checkBusyAt = async (aheadMs: number) => {
        const answer = await withShiftedClock(aheadMs, () => lease.claim("second", ttlMs));
        const isRight = !answer.held && answer.leftMs > 0 && answer.leftMs <= ttlMs;
        check(rule, isRight, `busy for at most ${ttlMs} ms`, answer);
      };
      await checkBusyAt(read);
      checkEqual(rule, await withShiftedClock(read, () => lease.extend("first", ttlMs)), true);
      await checkBusyAt(claimed);
      await checkBusyAt(0);
    }
    for (const aheadMs of AHEAD) {
      const key = freshKey("login");
      await withShiftedClock(aheadMs, () => driver.put(key, "text", undefined, { expiresInMs: ttlMs }));
      for (const ahead of [0, ...AHEAD]) {
        const stored = await withShiftedClock(ahead, () => driver.get(key));
        checkEqual("the engine's clock decides when a record expires", stored?.value, "text");
      }
    }
  },
};

function checkBusy({ by, leftMs }: LeaseBusy, owner: string, { attempt }: LeaseHeld): void {
  const rule = "a refused claim names the claim that holds the lease";
  const { at, now, ...rest } = by;
  checkEqual(rule, rest, { owner, attempt, note: `note of ${owner}`, releasedAt: undefined });
  check("a trace has the time when it was claimed and when it was read", at > 0 && now >= at, "at <= now", by);
  const isOfEngine = leftMs > 0 && leftMs <= LONG_MS;
  check("a refused claim says how long the lease is not free", isOfEngine, `1 to ${LONG_MS} ms`, leftMs);
}

/** Claims until the lease is free. However slowly this runs, the engine's own times show whether it was right. */
async function claimWhenFree(lease: LeaseUnderTest, wait: StoreUnderTest["wait"]): Promise<LeaseHeld> {
  for (let turn = 0; turn < 20; turn += 1) {
    const answer = await lease.claim(`next-${turn}`);
    if (answer.held) return answer;
    const { by, leftMs } = answer;
    const age = by.now - by.at;
    // An engine whose clock is finer than milliseconds may cut both times.
    check("a lease is not held after its ttl is over", age <= TTL_MS, `at most ${TTL_MS} ms`, age);
    const isLeft = leftMs >= 0 && leftMs <= TTL_MS - age + 1;
    check("leftMs is what is left of the ttl", isLeft, `0 to ${TTL_MS - age} ms`, leftMs);
    // The first wait ends before the ttl.
    await wait(turn === 0 ? leftMs / 2 : leftMs + 1);
  }
  throw new ContractViolation("a lease is free after its ttl is over", "held: true", "held: false 20 times");
}

/**
 * Runs work while the clock of this machine seems to be wrong: what `Date` says is ahead by `aheadMs`. The engine's clock
 * decides about leases, so a driver that sends its own time is seen by this.
 */
async function withShiftedClock<T>(aheadMs: number, work: () => Promise<T>): Promise<T> {
  const Real = globalThis.Date;
  // A driver takes the time from the global object: only a replacement there reaches it, for as long as the work lasts.
  globalThis.Date = new Proxy(Real, {
    construct: (target, given: unknown[], proxy) =>
      Reflect.construct(target, given.length === 0 ? [Real.now() + aheadMs] : given, proxy),
    get: (target, name, receiver) =>
      name === "now" ? () => Real.now() + aheadMs : Reflect.get(target, name, receiver),
  });
  try {
    return await work();
  } finally {
    globalThis.Date = Real;
  }
}
