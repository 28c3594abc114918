import { AgentAuthError, abortedError } from "../../errors.js";
import { OneAtATime } from "../../http/single-flight.js";
import {
  holderText,
  type Lease,
  type LeaseHolder,
  type LeaseOptions,
  type PreviousAttempt,
} from "../../oauth/model/lease.js";
import { isUnanswered } from "./bounded-driver.js";
import type { LeaseBusy, LeaseHeld, LeaseTrace, RecordKey } from "./driver.js";
import { HeldLease, type LeasePlace, type LeaseRules, type Taken } from "./held-lease.js";
import { attemptOf, decodeNote, encodeNote, generationOf, inLocalTime, type LeaseNote } from "./lease-note.js";
import { type ClockReading, readClock, type StoreClock, since } from "./store-clock.js";
import type { TenantRecords } from "./tenant-records.js";

const POLL_MS = { first: 20, most: 200 };
/** The part of a lease's life for which a holder that may be alive gets time to save. */
const DOUBT_PART = 0.5;
/**
 * The lives of a lease for which a live holder gets time after an engine did not answer: all processes connect again at
 * once then, and its save is one of many.
 */
const RECONNECT_LIVES = 2;

/** Leases between all processes that share an engine. */
export class DriverLeases {
  readonly #here = new OneAtATime();
  readonly #clock: StoreClock;
  readonly #rules: LeaseRules;
  /** When the engine last left a claim of this process without an answer. */
  #unansweredAt: ClockReading | undefined;

  constructor(clock: StoreClock, rules: LeaseRules) {
    this.#clock = clock;
    this.#rules = rules;
  }

  /** As `GrantStore.lease`. The callers in one process queue up before they ask the engine. */
  async run<T>(
    records: TenantRecords,
    name: string,
    work: (lease: Lease) => Promise<T>,
    options: LeaseOptions<T>,
  ): Promise<T> {
    const requestedAt = this.#clock.epoch();
    const place = await this.#placeOf(records, nameOf(name, options));
    return this.#here.run(
      // Two tenants may each have a user of the same name.
      `${place.key.partition} ${place.key.id}`,
      async (queued) => {
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

  /**
   * Claims a lease again and again until it is ours: each answer of the engine is one of these.
   *
   *     it is ours, or was by an earlier try  what the attempt before has left decides how the work begins
   *     another owner holds it                the result of that one, if there is one, replaces the work
   *     the same, and patience is over        lease_busy
   *     the same                              claim again after a pause
   *     none                                  store_unavailable
   */
  async #take<T>(place: LeasePlace, records: TenantRecords, options: LeaseOptions<T>): Promise<Taken | { instead: T }> {
    const { signal, onWait, until, patienceMs = Number.POSITIVE_INFINITY } = options;
    const generation = generationOf(options);
    const note = await place.seal({ sent: true, generation });
    const begun = readClock(this.#clock);
    // By the clock of this process alone: that of the engine may jump.
    let endsAt: number | undefined;
    let pauseMs = POLL_MS.first;
    let { answer, from, offset } = await this.#claim(place, note, signal);
    while (!answer.held && answer.by.owner !== place.owner) {
      const { by, leftMs } = answer;
      const holder = () => holderOf(by, offset, { key: place.key, records });
      if (endsAt === undefined && onWait) onWait(await holder());
      endsAt = this.#clock.now() + leftMs;
      const instead = await until?.();
      if (instead !== undefined) return { instead };
      if (since(begun, this.#clock) >= patienceMs) throw busy(await holder());
      // Not all at the same moment, and not long after it is free.
      await this.#sleep(Math.min(pauseMs, leftMs + POLL_MS.first) * (0.5 + Math.random()), signal);
      pauseMs = Math.min(pauseMs * 1.5, POLL_MS.most);
      ({ answer, from, offset } = await this.#claim(place, note, signal));
    }
    const { stored, spent } = await attemptBefore(answer, { key: place.key, records, generation });
    const before = stored && inLocalTime(stored, offset);
    const doubtMs = this.#doubtMs(before, place.ttlMs, endsAt);
    return { from, stored, before, spent, waited: endsAt !== undefined, doubtMs };
  }

  /**
   * Claims a lease. A claim without an answer may have happened: it is taken back, so that no one waits for its end.
   *
   * @returns the answer, the moment before it, and by how much the engine's clock is ahead of ours
   */
  async #claim({ driver, key, owner, ttlMs, seal }: LeasePlace, note: string, signal: AbortSignal | undefined) {
    if (signal?.aborted) throw abortedError(signal);
    const from = readClock(this.#clock);
    try {
      const answer = await driver.claim(key, { owner, ttlMs, note });
      return { answer, from, offset: offsetOf(answer, from, this.#clock.epoch()) };
    } catch (error) {
      if (isUnanswered(error)) {
        this.#unansweredAt = readClock(this.#clock);
        const left = await seal({ sent: false, instead: unknownAttempt(this.#clock.epoch()) });
        driver.release(key, { owner, note: left }).catch(() => undefined);
      }
      throw error;
    }
  }

  /**
   * Milliseconds for which the holder before may still come back with a result.
   *
   * @param endsAt when its lease would have ended, as this process last heard
   */
  #doubtMs(before: PreviousAttempt | undefined, ttlMs: number, endsAt = Number.NEGATIVE_INFINITY): number {
    if (before?.ended !== "expired" || !before.committed) return 0;
    return Math.max(ttlMs * DOUBT_PART, this.#reconnectMs(ttlMs), endsAt - this.#clock.now());
  }

  /** Milliseconds that are left for a live holder to connect to the engine again. */
  #reconnectMs(ttlMs: number): number {
    if (this.#unansweredAt === undefined) return 0;
    return RECONNECT_LIVES * ttlMs - since(this.#unansweredAt, this.#clock);
  }

  /**
   * What the holder before has stored after all. An engine or a machine that stood still, and a clock that was set, let
   * leases of live holders expire: such a holder gets time to come back.
   */
  async #lateResult<T>(doubtMs: number, { until, signal }: LeaseOptions<T>): Promise<T | undefined> {
    const begun = readClock(this.#clock);
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

/** One lease for all generations of a login: its trace shows which of them are used up. */
function nameOf(name: string, { refreshes }: Pick<LeaseOptions<unknown>, "refreshes">): string {
  if (refreshes === undefined) return name;
  const { profile, server, account, signedInAt } = refreshes;
  return JSON.stringify([profile, server, account, signedInAt]);
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

/**
 * The attempt before at the same generation, and what is spent. A claim that a client has sent twice finds its own, and
 * does not show the one before.
 */
async function attemptBefore(
  answer: LeaseHeld | LeaseBusy,
  { key, records, generation }: { key: RecordKey; records: TenantRecords; generation: number | undefined },
): Promise<Pick<Taken, "stored" | "spent">> {
  if (!answer.held) return { stored: unknownAttempt(answer.by.at), spent: undefined };
  if (answer.before === undefined) return { stored: undefined, spent: undefined };
  const note = await noteOf(answer.before, key, records);
  const isOther = note !== undefined && note.generation !== generation;
  return { stored: isOther ? undefined : attemptOf(answer.before, note), spent: note?.spent };
}

async function holderOf(
  trace: LeaseTrace,
  offset: number,
  { key, records }: { key: RecordKey; records: TenantRecords },
): Promise<LeaseHolder> {
  const label = (await noteOf(trace, key, records))?.holder;
  return { pid: undefined, label, at: trace.at - offset };
}

async function noteOf({ note }: LeaseTrace, key: RecordKey, records: TenantRecords) {
  const text = await records.open(key, note).catch(() => undefined);
  return text === undefined ? undefined : decodeNote(text);
}

/**
 * Milliseconds by which the engine's clock is ahead of ours: the least that fits its answer, which it gave between the
 * two moments.
 */
function offsetOf(answer: LeaseHeld | LeaseBusy, from: ClockReading, after: number): number {
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
