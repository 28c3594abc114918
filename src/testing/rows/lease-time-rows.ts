import type { LeaseHeld, RecordKey, StoreDriver } from "../../store/driver/driver.js";
import { type Bench, claimOf, freshKey, LONG_MS, type Row, refused, take } from "../bench.js";
import { ContractViolation, check, checkEqual, checkPresent } from "../check.js";
import { withShiftedClock } from "../shifted-clock.js";

const TTL_MS = 400;
const HOUR_MS = 3_600_000;
const AHEAD = [HOUR_MS, -HOUR_MS];

/** Rows about the clock that leases end by. */
export const leaseTimeRows: readonly Row[] = [
  { name: "a lease is free after its ttl and not before", run: freeAfterTtl },
  { name: "an expired lease is over for its owner", run: isOver },
  { name: "an extended lease outlives its first ttl", run: outlivesFirstTtl },
  { name: "a wrong clock of this machine moves no lease", run: clockMovesNothing },
];

async function freeAfterTtl({ open, wait }: Bench): Promise<void> {
  const driver = await open();
  for (const aheadMs of [0, ...AHEAD]) {
    const key = freshKey("lease");
    await take(driver, key, claimOf("first", TTL_MS));
    const { before } = await withShiftedClock(aheadMs, () => claimWhenFree(driver, key, wait));
    const trace = checkPresent("the claim after an expired one has it before it", before, "a trace");
    const { owner, note, releasedAt, at, now } = trace;
    const left = { owner, note, releasedAt };
    checkEqual("an expired lease was not released", left, { owner: "first", note: "note of first" });
    check("a lease is not free before its ttl is over", now - at >= TTL_MS, `${TTL_MS} ms or more`, now - at);
  }
}

/** Claims until the lease is free. However slowly this runs, the engine's own times show whether it was right. */
async function claimWhenFree(driver: StoreDriver, key: RecordKey, wait: Bench["wait"]): Promise<LeaseHeld> {
  for (let turn = 0; turn < 20; turn += 1) {
    const answer = await driver.claim(key, claimOf(`next-${turn}`));
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

async function isOver({ open, wait }: Bench): Promise<void> {
  const driver = await open();
  const key = freshKey("lease");
  await take(driver, key, claimOf("first", TTL_MS));
  await wait(2 * TTL_MS);
  checkEqual("an expired lease is not extended", await driver.extend(key, claimOf("first")), false);
  await driver.release(key, { owner: "first", note: "late" });
  const { before } = await take(driver, key, claimOf("second"));
  const trace = { note: before?.note, releasedAt: before?.releasedAt };
  checkEqual("an expired lease is not released", trace, { note: "note of first" });
}

async function outlivesFirstTtl({ open, wait }: Bench): Promise<void> {
  const driver = await open();
  // On a busy machine the lease may expire before it is extended.
  for (let ttlMs = TTL_MS; ttlMs < LONG_MS; ttlMs *= 2) {
    const key = freshKey("lease");
    await take(driver, key, claimOf("first", ttlMs));
    if (!(await driver.extend(key, claimOf("first", LONG_MS)))) continue;
    await wait(2 * ttlMs);
    const { by } = await refused(driver, key);
    return checkEqual("an extended lease is not free after its first ttl", by.owner, "first");
  }
  throw new ContractViolation("the owner of a lease extends it before its ttl is over", "true", "false");
}

async function clockMovesNothing({ open }: Bench): Promise<void> {
  const driver = await open();
  const rule = "the engine's clock decides about a lease, whatever the clock of this machine says";
  // Less than the hours by which the clocks differ.
  const ttlMs = HOUR_MS / 2;
  for (const [claimed, asked] of [AHEAD, AHEAD.toReversed()]) {
    const key = freshKey("lease");
    await withShiftedClock(claimed ?? 0, () => take(driver, key, claimOf("first", ttlMs)));
    const ask = () => driver.claim(key, claimOf("second", ttlMs));
    const checkBusy = async (aheadMs: number) => {
      const answer = await withShiftedClock(aheadMs, ask);
      const isRight = !answer.held && answer.leftMs > 0 && answer.leftMs <= ttlMs;
      check(rule, isRight, `busy for at most ${ttlMs} ms`, answer);
    };
    await checkBusy(asked ?? 0);
    const extend = () => driver.extend(key, claimOf("first", ttlMs));
    checkEqual(rule, await withShiftedClock(asked ?? 0, extend), true);
    await checkBusy(claimed ?? 0);
    await checkBusy(0);
  }
  for (const aheadMs of AHEAD) {
    const key = freshKey("login");
    await withShiftedClock(aheadMs, () => driver.put(key, "text", undefined, { expiresInMs: ttlMs }));
    for (const ahead of [0, ...AHEAD]) {
      const stored = await withShiftedClock(ahead, () => driver.get(key));
      checkEqual("the engine's clock decides when a record expires", stored?.value, "text");
    }
  }
}
