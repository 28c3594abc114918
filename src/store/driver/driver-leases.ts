import { AgentAuthError, abortedError } from "../../errors.js";
import type { Lease, LeaseOptions } from "../../oauth/grant/lease.js";
import { MemoryLeases } from "../memory-leases.js";
import type { LeaseBusy, LeaseHeld, LeaseTrace, RecordKey } from "./driver.js";
import { HeldLease, type LeasePlace, type LeaseRules, type Taken } from "./held-lease.js";
import { attemptOf, decodeNote, encodeNote, inLocalTime } from "./lease-note.js";
import { type Moment, momentOf, type StoreClock, since } from "./store-clock.js";
import type { TenantRecords } from "./tenant-records.js";

const POLL_MS = { first: 20, most: 200 };

/** Leases between all processes that share an engine. */
export class DriverLeases {
  readonly #here = new MemoryLeases();
  readonly #clock: StoreClock;
  readonly #rules: LeaseRules;

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
        return withLease(held, work);
      },
      options.signal,
    );
  }

  async #placeOf(records: TenantRecords, name: string): Promise<LeasePlace> {
    const key = await records.key("lease", name);
    const seal = (note: string) => records.seal(key, note);
    const owner = crypto.randomUUID();
    return { ...this.#rules, driver: records.driver, key, owner, clock: this.#clock, seal };
  }

  async #take<T>(
    place: LeasePlace,
    records: TenantRecords,
    { signal, onWait, until, patienceMs = Number.POSITIVE_INFINITY }: LeaseOptions<T>,
  ): Promise<Taken | { instead: T }> {
    const { driver, key, owner, ttlMs } = place;
    const claim = { owner, ttlMs, note: await place.seal(encodeNote({ sent: true })) };
    const begun = momentOf(this.#clock);
    for (let pause = POLL_MS.first, waited = false; ; pause = Math.min(pause * 1.5, POLL_MS.most)) {
      if (signal?.aborted) throw abortedError(signal);
      const from = momentOf(this.#clock);
      const answer = await driver.claim(key, claim);
      const offset = offsetOf(answer, from, this.#clock.epoch());
      if (answer.held) {
        const stored = answer.before && (await attemptIn(answer.before, key, records));
        return { from, stored, before: stored && inLocalTime(stored, offset), waited };
      }
      if (!waited) onWait?.({ pid: undefined, at: answer.by.at - offset });
      waited = true;
      const instead = await until?.();
      if (instead !== undefined) return { instead };
      if (since(begun, this.#clock) > patienceMs) throw busy(answer.by.at - offset);
      // Not all at the same moment, and not long after it is free.
      await this.#sleep(Math.min(pause, answer.leftMs + POLL_MS.first) * (0.5 + Math.random()), signal);
    }
  }

  async #sleep(ms: number, signal: AbortSignal = new AbortController().signal): Promise<void> {
    await this.#clock.sleep(ms, signal).catch(() => undefined);
  }
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

async function attemptIn(trace: LeaseTrace, key: RecordKey, records: TenantRecords) {
  const text = await records.open(key, trace.note).catch(() => undefined);
  return attemptOf(trace, text === undefined ? undefined : decodeNote(text));
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

function busy(at: number): AgentAuthError {
  const message = `another process, which holds it since ${new Date(at).toISOString()}, holds the lock and does not release it`;
  return new AgentAuthError("lease_busy", message, { class: "unavailable" });
}
