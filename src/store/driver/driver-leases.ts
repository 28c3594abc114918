import { AgentAuthError, abortedError } from "../../errors.js";
import {
  holderText,
  type Lease,
  type LeaseHolder,
  type LeaseOptions,
  type PreviousAttempt,
} from "../../oauth/grant/lease.js";
import { MemoryLeases } from "../memory-leases.js";
import type { LeaseBusy, LeaseClaim, LeaseHeld, LeaseTrace, RecordKey } from "./driver.js";
import { HeldLease, type LeasePlace, type LeaseRules, type Taken } from "./held-lease.js";
import { GIVEN_UP_MS } from "./late-save.js";
import { attemptOf, decodeNote, encodeNote, inLocalTime, type LeaseNote } from "./lease-note.js";
import { type Moment, momentOf, type StoreClock, since } from "./store-clock.js";
import { isUnanswered } from "./store-failure.js";
import type { TenantRecords } from "./tenant-records.js";

const POLL_MS = { first: 20, most: 200 };
/** The part of a lease's life for which its loss must have been watched. */
const WATCHED_PART = 0.5;
/**
 * The lives of a lease for which a live holder gets time after an engine did not answer: all processes connect again at
 * once then, and its save is one of many.
 */
const RECONNECT_LIVES = 2;

/** Leases between all processes that share an engine. */
export class DriverLeases {
  readonly #here = new MemoryLeases();
  readonly #clock: StoreClock;
  readonly #rules: LeaseRules;
  /** When the engine last left a claim of this process without an answer. */
  #unansweredAt: Moment | undefined;

  constructor(clock: StoreClock, rules: LeaseRules) {
    this.#clock = clock;
    this.#rules = rules;
  }

  /** As `GrantStore.lease`. The callers in one process queue up before they ask the engine. */
  run<T>(
    records: TenantRecords,
    name: string,
    work: (lease: Lease) => Promise<T>,
    options: LeaseOptions<T>,
  ): Promise<T> {
    const requestedAt = this.#clock.epoch();
    return this.#here.run(
      name,
      async (queued) => {
        const place = await this.#placeOf(records, name);
        const taken = await this.#take(place, records, options);
        if ("instead" in taken) return taken.instead;
        // Waiting for an attempt that was rolled back is not waiting for the one before it.
        const isOlder = (taken.before?.endedAt ?? requestedAt) < requestedAt;
        const held = new HeldLease(place, { ...taken, waited: (taken.waited || queued) && !isOlder }, options);
        return withLease(held, async (lease) => (await this.#lateResult(taken.doubtMs, options)) ?? work(lease));
      },
      options.signal,
    );
  }

  async #placeOf(records: TenantRecords, name: string): Promise<LeasePlace> {
    const key = await records.key("lease", name);
    const seal = (note: LeaseNote) => records.seal(key, encodeNote({ ...note, holder: this.#rules.holder }));
    const owner = crypto.randomUUID();
    return { ...this.#rules, driver: records.driver, key, owner, clock: this.#clock, seal };
  }

  async #take<T>(
    place: LeasePlace,
    records: TenantRecords,
    { signal, onWait, until, durationMs, patienceMs = Number.POSITIVE_INFINITY }: LeaseOptions<T>,
  ): Promise<Taken | { instead: T }> {
    const { key, owner, ttlMs } = place;
    const watch = new Watch(this.#clock, ttlMs * WATCHED_PART);
    const claim = { owner, ttlMs, note: await place.seal({ sent: true }) };
    const begun = momentOf(this.#clock);
    for (let pause = POLL_MS.first, waited = false; ; pause = Math.min(pause * 1.5, POLL_MS.most)) {
      if (signal?.aborted) throw abortedError(signal);
      const from = momentOf(this.#clock);
      const answer = await claimed(place, claim).catch((error) => {
        if (isUnanswered(error)) this.#unansweredAt = momentOf(this.#clock);
        throw error;
      });
      const unwatchedMs = Math.max(watch.left(), this.#reconnectMs(ttlMs));
      const offset = offsetOf(answer, from, this.#clock.epoch());
      if (answer.held || answer.by.owner === owner) {
        const stored = await attemptBefore(answer, key, records);
        const before = stored && inLocalTime(stored, offset);
        const isInDoubt = mayBeAtWork(before, this.#clock.epoch(), durationMs + GIVEN_UP_MS);
        return { from, stored, before, waited, doubtMs: isInDoubt ? unwatchedMs : 0 };
      }
      const holder = async () => {
        const label = (await noteOf(answer.by, key, records))?.holder;
        return { pid: undefined, label, at: answer.by.at - offset };
      };
      if (!waited && onWait) onWait(await holder());
      waited = true;
      const instead = await until?.();
      if (instead !== undefined) return { instead };
      if (since(begun, this.#clock) > patienceMs) throw busy(await holder());
      // Not all at the same moment, and not long after it is free.
      await this.#sleep(Math.min(pause, answer.leftMs + POLL_MS.first) * (0.5 + Math.random()), signal);
    }
  }

  /** Milliseconds that are left for a live holder to connect to the engine again. */
  #reconnectMs(ttlMs: number): number {
    if (this.#unansweredAt === undefined) return 0;
    return RECONNECT_LIVES * ttlMs - since(this.#unansweredAt, this.#clock);
  }

  /**
   * What the holder before has stored after all. An engine or a machine that stood still lets leases of live holders
   * expire: such a holder gets time to come back, unless its silence was watched while the engine answered.
   */
  async #lateResult<T>(doubtMs: number, { until, signal }: LeaseOptions<T>): Promise<T | undefined> {
    const begun = momentOf(this.#clock);
    while (until !== undefined && since(begun, this.#clock) < doubtMs) {
      if (signal?.aborted) throw abortedError(signal);
      const result = await until();
      if (result !== undefined) return result;
      await this.#sleep(POLL_MS.most, signal);
    }
    return undefined;
  }

  async #sleep(ms: number, signal: AbortSignal = new AbortController().signal): Promise<void> {
    await this.#clock.sleep(ms, signal).catch(() => undefined);
  }
}

/** For how long the answers of an engine have been watched without a gap in which a heartbeat could not arrive. */
class Watch {
  readonly #clock: StoreClock;
  readonly #ms: number;
  #from: Moment | undefined;
  #answered: Moment | undefined;

  constructor(clock: StoreClock, ms: number) {
    this.#clock = clock;
    this.#ms = ms;
  }

  /** Milliseconds that are left to watch, after one more answer. */
  left(): number {
    const now = momentOf(this.#clock);
    if (this.#answered === undefined || since(this.#answered, this.#clock) >= this.#ms) this.#from = now;
    this.#answered = now;
    return Math.max(0, this.#ms - since(this.#from ?? now, this.#clock));
  }
}

/** Claims a lease. A claim without an answer may have happened: it is taken back, so that nobody waits for its end. */
async function claimed(
  { driver, key, owner, clock, seal }: LeasePlace,
  claim: LeaseClaim,
): Promise<LeaseHeld | LeaseBusy> {
  try {
    return await driver.claim(key, claim);
  } catch (error) {
    if (isUnanswered(error)) {
      const note = await seal({ sent: false, instead: unknownAttempt(clock.epoch()) });
      driver.release(key, { owner, note }).catch(() => undefined);
    }
    throw error;
  }
}

/** What is known about the attempt before a claim whose answer was lost. */
function unknownAttempt(at: number): PreviousAttempt {
  return { at, endedAt: undefined, ended: "expired", committed: true, failure: undefined };
}

async function withLease<T>(held: HeldLease, work: (lease: Lease) => Promise<T>): Promise<T> {
  try {
    const result = await work(held.forWork());
    await held.succeed();
    return result;
  } catch (error) {
    await held.fail(error);
    throw error;
  }
}

/** The attempt before; a claim that a client has sent twice finds its own, and does not show that one. */
async function attemptBefore(answer: LeaseHeld | LeaseBusy, key: RecordKey, records: TenantRecords) {
  if (!answer.held) return unknownAttempt(answer.by.at);
  return answer.before && attemptIn(answer.before, key, records);
}

function mayBeAtWork(before: PreviousAttempt | undefined, now: number, durationMs: number): boolean {
  return before?.ended === "expired" && before.committed && now - before.at < durationMs;
}

async function attemptIn(trace: LeaseTrace, key: RecordKey, records: TenantRecords) {
  return attemptOf(trace, await noteOf(trace, key, records));
}

async function noteOf({ note }: LeaseTrace, key: RecordKey, records: TenantRecords) {
  const text = await records.open(key, note).catch(() => undefined);
  return text === undefined ? undefined : decodeNote(text);
}

/**
 * Milliseconds by which the engine's clock is ahead of ours: the least that fits its answer, which it gave between the
 * two moments.
 */
function offsetOf(answer: LeaseHeld | LeaseBusy, from: Moment, after: number): number {
  const trace = answer.held ? answer.before : answer.by;
  if (trace === undefined) return 0;
  return Math.max(trace.now - after, Math.min(0, trace.now - from.epoch));
}

function busy(holder: LeaseHolder): AgentAuthError {
  // It may be a process of another machine, or another store of this process.
  const who = holder.label === undefined ? "another worker" : holderText(holder);
  const message = `${who} has held the lock since ${new Date(holder.at).toISOString()} and does not release it`;
  return new AgentAuthError("lease_busy", message, { class: "unavailable" });
}
