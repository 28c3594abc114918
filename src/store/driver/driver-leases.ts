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
import { type Acquisition, DriverLease, type LeaseContext, type LeaseRules } from "./driver-lease.js";
import { attemptOf, decodeState, encodeState, generationOf, inLocalTime, type LeaseState } from "./lease-state.js";
import { type ClockReading, readClock, type StoreClock, since } from "./store-clock.js";
import type { TenantRecords } from "./tenant-records.js";

const POLL_MS = { first: 20, most: 200 };
/** The part of a lease's life for which a holder that may be alive gets time to save. */
const GRACE_PART = 0.5;
/**
 * The lives of a lease for which a live holder gets time after an engine did not respond: all processes connect again at
 * once then, and its save is one of many.
 */
const RECONNECT_LIVES = 2;

/** Leases between all processes that share an engine. */
export class DriverLeases {
  readonly #here = new OneAtATime();
  readonly #clock: StoreClock;
  readonly #rules: LeaseRules;
  /** When the engine last left a claim of this process without a response. */
  #unansweredAt: ClockReading | undefined;

  constructor(clock: StoreClock, rules: LeaseRules) {
    this.#clock = clock;
    this.#rules = rules;
  }

  /** As `GrantStore.lease`. The callers in one process queue up before they send a request to the engine. */
  async run<T>(
    records: TenantRecords,
    name: string,
    work: (lease: Lease) => Promise<T>,
    options: LeaseOptions<T>,
  ): Promise<T> {
    const requestedAt = this.#clock.epoch();
    const context = await this.#contextFor(records, nameOf(name, options));
    return this.#here.run(
      // Two tenants may each have a user of the same name.
      `${context.key.partition} ${context.key.id}`,
      async (queued) => {
        const acquired = await this.#acquire(context, records, options);
        if ("instead" in acquired) return acquired.instead;
        // Waiting for an attempt that was rolled back is not waiting for the one before it.
        const isOlder = (acquired.previous?.endedAt ?? requestedAt) < requestedAt;
        const driverLease = new DriverLease(
          context,
          { ...acquired, waited: (acquired.waited || queued) && !isOlder },
          options,
        );
        return withLease(
          driverLease,
          async (lease) => (await this.#lateResult(acquired.graceMs, options)) ?? work(lease),
        );
      },
      options.signal,
    );
  }

  async #contextFor(records: TenantRecords, name: string): Promise<LeaseContext> {
    const key = await records.key("lease", name);
    const seal = (note: LeaseState) => records.seal(key, encodeState({ ...note, holder: this.#rules.holder }));
    const owner = crypto.randomUUID();
    return { ...this.#rules, driver: records.driver, key, owner, clock: this.#clock, seal };
  }

  /**
   * Claims a lease again and again until it is ours: each response of the engine is one of these.
   *
   *     it is ours, or was by an earlier try  what the previous attempt left decides how the work begins
   *     another owner holds it                the result of that one, if there is one, replaces the work
   *     the same, and patience is over        lease_busy
   *     the same                              claim again after a pause
   *     none                                  store_unavailable
   */
  async #acquire<T>(
    context: LeaseContext,
    records: TenantRecords,
    options: LeaseOptions<T>,
  ): Promise<Acquisition | { instead: T }> {
    const { signal, onWait, until, patienceMs = Number.POSITIVE_INFINITY } = options;
    const generation = generationOf(options);
    const state = await context.seal({ sent: true, generation });
    const begun = readClock(this.#clock);
    // By the clock of this process alone: that of the engine may jump.
    let endsAt: number | undefined;
    let pauseMs = POLL_MS.first;
    let { answer, from, offset } = await this.#claim(context, state, signal);
    while (!answer.held && answer.by.owner !== context.owner) {
      const { by, leftMs } = answer;
      const holder = () => holderOf(by, offset, { key: context.key, records });
      if (endsAt === undefined && onWait) onWait(await holder());
      endsAt = this.#clock.now() + leftMs;
      const instead = await until?.();
      if (instead !== undefined) return { instead };
      if (since(begun, this.#clock) >= patienceMs) throw busy(await holder());
      // Not all at the same moment, and not long after it is free.
      await this.#sleep(Math.min(pauseMs, leftMs + POLL_MS.first) * (0.5 + Math.random()), signal);
      pauseMs = Math.min(pauseMs * 1.5, POLL_MS.most);
      ({ answer, from, offset } = await this.#claim(context, state, signal));
    }
    const { stored, rotatedGeneration } = await previousAttempt(answer, { key: context.key, records, generation });
    const previous = stored && inLocalTime(stored, offset);
    const graceMs = this.#graceMs(previous, context.ttlMs, endsAt);
    return { from, stored, previous, rotatedGeneration, waited: endsAt !== undefined, graceMs };
  }

  /**
   * Claims a lease. A claim without a response may have happened: it is taken back, so that no one waits for its end.
   *
   * @returns the response, the moment before it, and by how much the engine's clock is ahead of ours
   */
  async #claim({ driver, key, owner, ttlMs, seal }: LeaseContext, note: string, signal: AbortSignal | undefined) {
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
   * Milliseconds for which the previous holder may still come back with a result.
   *
   * @param endsAt when its lease would have ended, as this process last heard
   */
  #graceMs(previous: PreviousAttempt | undefined, ttlMs: number, endsAt = Number.NEGATIVE_INFINITY): number {
    if (previous?.ended !== "expired" || !previous.committed) return 0;
    return Math.max(ttlMs * GRACE_PART, this.#reconnectMs(ttlMs), endsAt - this.#clock.now());
  }

  /** Milliseconds that are left for a live holder to connect to the engine again. */
  #reconnectMs(ttlMs: number): number {
    if (this.#unansweredAt === undefined) return 0;
    return RECONNECT_LIVES * ttlMs - since(this.#unansweredAt, this.#clock);
  }

  /**
   * What the previous holder has stored after all. an engine or a machine that was suspended, and a clock that was set, let
   * leases of live holders expire: such a holder gets time to come back.
   */
  async #lateResult<T>(graceMs: number, { until, signal }: LeaseOptions<T>): Promise<T | undefined> {
    const begun = readClock(this.#clock);
    while (until !== undefined && since(begun, this.#clock) < graceMs) {
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

/** What is known about the attempt before a claim whose response was lost. */
function unknownAttempt(at: number): PreviousAttempt {
  return { at, endedAt: undefined, ended: "expired", committed: true, failure: undefined };
}

async function withLease<T>(lease: DriverLease, work: (lease: Lease) => Promise<T>): Promise<T> {
  try {
    const result = await work(lease.toLease());
    await lease.succeed();
    return result;
  } catch (error) {
    await lease.fail(error);
    throw error;
  }
}

/**
 * The previous attempt at the same generation, and the rotated generation. A claim that a client has sent twice finds its own, and
 * does not show the one before.
 */
async function previousAttempt(
  answer: LeaseHeld | LeaseBusy,
  { key, records, generation }: { key: RecordKey; records: TenantRecords; generation: number | undefined },
): Promise<Pick<Acquisition, "stored" | "rotatedGeneration">> {
  if (!answer.held) return { stored: unknownAttempt(answer.by.at), rotatedGeneration: undefined };
  if (answer.previous === undefined) return { stored: undefined, rotatedGeneration: undefined };
  const note = await readState(answer.previous, key, records);
  const isOther = note !== undefined && note.generation !== generation;
  return { stored: isOther ? undefined : attemptOf(answer.previous, note), rotatedGeneration: note?.rotatedGeneration };
}

async function holderOf(
  trace: LeaseTrace,
  offset: number,
  { key, records }: { key: RecordKey; records: TenantRecords },
): Promise<LeaseHolder> {
  const label = (await readState(trace, key, records))?.holder;
  return { pid: undefined, label, at: trace.at - offset };
}

async function readState({ note }: LeaseTrace, key: RecordKey, records: TenantRecords) {
  const text = await records.open(key, note).catch(() => undefined);
  return text === undefined ? undefined : decodeState(text);
}

/**
 * Milliseconds by which the engine's clock is ahead of ours: the least that fits its response, which it gave between the
 * two moments.
 */
function offsetOf(answer: LeaseHeld | LeaseBusy, from: ClockReading, after: number): number {
  const trace = answer.held ? answer.previous : answer.by;
  if (trace === undefined) return 0;
  return Math.max(trace.now - after, Math.min(0, trace.now - from.epoch));
}

function busy(holder: LeaseHolder): AgentAuthError {
  // It may be a process of another machine, or another store of this process.
  const who = holder.label === undefined ? "another worker" : holderText(holder);
  const message = `${who} has held the lock since ${new Date(holder.at).toISOString()} and does not release it`;
  return new AgentAuthError("lease_busy", message, { class: "unavailable" });
}
