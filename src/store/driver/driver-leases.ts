import { AgentAuthError, abortedError, isAgentAuthError } from "../../errors.js";
import { OneAtATime } from "../../http/single-flight.js";
import { isJsonObject, parseJsonObject } from "../../http/strict-json.js";
import { tokenGeneration } from "../../oauth/model/grant.js";
import { isStoreFailure } from "../../oauth/model/grant-store.js";
import type { Lease, LeaseHolder, LeaseOptions, PreviousAttempt, RecordedFailure } from "../../oauth/model/lease.js";
import { holderText, isRecordedFailure, leaseLost, recordFailure } from "../../oauth/model/lease.js";
import type { LeaseBusy, LeaseHeld, LeaseTrace, RecordKey, StoreDriver } from "./driver.js";
import type { ClockReading, StoreClock } from "./engine.js";
import { inTime, isUnanswered, readClock, since, unansweredError } from "./engine.js";
import type { TenantRecords } from "./tenant-records.js";

/** What a holder leaves under its lease for the next one. Times are the engine's. */
export interface LeaseState {
  /**
   * Whether work that must not happen twice may have begun. The note of a claim says so: its response may be lost, and with
   * it what the previous claim left.
   */
  readonly sent: boolean;
  /** The generation of tokens that the work replaces. */
  readonly generation?: number | undefined;
  /** The newest generation whose refresh token is used up. */
  readonly rotatedGeneration?: number | undefined;
  /** What the holder calls itself, for those who wait. */
  readonly holder?: string | undefined;
  /** The error that the work ended with. */
  readonly failure?: RecordedFailure | undefined;
  /** The attempt that the next holder is to see in place of this one, which was rolled back. */
  readonly instead?: PreviousAttempt | undefined;
}

/** The generation of tokens that work under a lease replaces. */
export function refreshedGeneration({ refreshes }: Pick<LeaseOptions<unknown>, "refreshes">): number | undefined {
  return refreshes && tokenGeneration(refreshes);
}

/** Parses a note; undefined for what this version did not write. */
export function decodeState(text: string): LeaseState | undefined {
  const state = parseJsonObject(text);
  if (typeof state?.["sent"] !== "boolean") return undefined;
  const { sent, holder, failure, instead, generation, rotatedGeneration } = state;
  return {
    sent,
    generation: numberIn(generation),
    rotatedGeneration: numberIn(rotatedGeneration),
    holder: typeof holder === "string" ? holder : undefined,
    failure: isRecordedFailure(failure) ? failure : undefined,
    instead: attemptIn(instead),
  };
}

function numberIn(value: unknown): number | undefined {
  return typeof value === "number" ? value : undefined;
}

function attemptIn(value: unknown): PreviousAttempt | undefined {
  if (!isJsonObject(value)) return undefined;
  const { at, endedAt, ended, committed, failure } = value;
  if (!Number.isFinite(at) || !(endedAt === undefined || Number.isFinite(endedAt))) return undefined;
  if ((ended !== "released" && ended !== "expired") || typeof committed !== "boolean") return undefined;
  const times = { at: at as number, endedAt: endedAt as number | undefined };
  return { ...times, ended, committed, failure: isRecordedFailure(failure) ? failure : undefined };
}

/** The attempt that a trace shows, in times of the engine. What cannot be read may have been sent. */
export function readAttempt(trace: LeaseTrace, state: LeaseState | undefined): PreviousAttempt {
  const { at, releasedAt: endedAt } = trace;
  if (endedAt === undefined)
    return { at, endedAt, ended: "expired", committed: state?.sent ?? true, failure: undefined };
  if (state?.instead) return state.instead;
  return { at, endedAt, ended: "released", committed: state?.sent ?? true, failure: state?.failure };
}

/** The failure of a note. @param previous the attempt before it */
export function failureIn(error: unknown, previous: PreviousAttempt | undefined): Pick<LeaseState, "failure"> {
  const failure = recordFailure(error, previous);
  return failure === undefined ? {} : { failure };
}

/** An attempt in times of this machine. `offset` is by how much the engine's clock is ahead of it. */
export function inLocalTime(attempt: PreviousAttempt, offset: number): PreviousAttempt {
  const { at, endedAt } = attempt;
  return { ...attempt, at: at - offset, endedAt: endedAt === undefined ? undefined : endedAt - offset };
}

/** As `GrantStoreOptions.takeover`. */
export type Takeover = "fast" | "patient";

/** How leases live and pass on. */
export interface LeaseRules {
  /** Milliseconds after which a lease is free, unless it is extended. */
  readonly ttlMs: number;
  /** Whether a holder that may have sent a request gets three times the duration of its work to come back. */
  readonly takeover: Takeover | ((issuer: string) => Takeover);
  /** What this process calls itself. */
  readonly holder?: string | undefined;
}

/** What the holder of a lease works with. */
export interface LeaseContext extends LeaseRules {
  readonly driver: StoreDriver;
  readonly key: RecordKey;
  readonly owner: string;
  readonly clock: StoreClock;
  seal(note: LeaseState): Promise<string>;
  /** The state in the note of a claim; undefined for what cannot be read. */
  read(trace: LeaseTrace): Promise<LeaseState | undefined>;
}

/** A claim that was answered. */
export interface Acquisition {
  /** Before the claim was sent. */
  readonly from: ClockReading;
  /** The attempt before: in times of this machine, and as the engine has it. */
  readonly previous: PreviousAttempt | undefined;
  readonly stored: PreviousAttempt | undefined;
  /** The newest generation of tokens whose refresh token is used up. */
  readonly rotatedGeneration: number | undefined;
  readonly waited: boolean;
  /** Milliseconds in which the previous holder may still come back with a result. */
  readonly graceMs: number;
}

const HEARTBEATS = 4;
const PATIENT_FACTOR = 3;

/** A lease in the hands of this process. It is alive for its ttl after the start of the last extension that was answered. */
class DriverLease implements Lease {
  readonly previous: PreviousAttempt | undefined;
  readonly rotatedGeneration: number | undefined;
  readonly waited: boolean;
  readonly #context: LeaseContext;
  readonly #options: LeaseOptions<unknown>;
  readonly #stored: PreviousAttempt | undefined;
  readonly #start: ClockReading;
  readonly #heartbeatMs: number;
  readonly #stop: () => void;
  readonly #durationMs: number;
  readonly #generation: number | undefined;
  #ttlMs: number;
  #extendedFrom: ClockReading;
  #lastHeartbeat: ClockReading;
  #stalledMs = 0;
  #isLost = false;
  #isCommitted = false;
  #isRolledBack = false;
  #isRotated = false;
  #isEnded = false;
  #working: Promise<unknown> = Promise.resolve();
  /** Those under way and waiting: few, also while an engine does not respond for long. */
  #extensions = 0;

  constructor(
    context: LeaseContext,
    { from, previous, stored, rotatedGeneration, waited, graceMs }: Acquisition,
    options: LeaseOptions<unknown>,
  ) {
    this.#context = context;
    this.#options = options;
    this.previous = previous;
    this.waited = waited;
    this.rotatedGeneration = rotatedGeneration;
    this.#generation = refreshedGeneration(options);
    // The work begins when the grace period is over.
    this.#durationMs = options.durationMs + graceMs;
    this.#stored = stored;
    this.#start = from;
    this.#extendedFrom = from;
    this.#ttlMs = context.ttlMs;
    this.#heartbeatMs = context.ttlMs / HEARTBEATS;
    this.#lastHeartbeat = readClock(context.clock);
    this.#stop = context.clock.every(this.#heartbeatMs, () => void this.#heartbeat().catch(() => undefined));
  }

  left(): number {
    if (this.#isLost || this.#isLate(this.#ttlMs)) return 0;
    if (this.#options.extend) return this.#durationMs;
    return Math.max(0, this.#durationMs - since(this.#start, this.#context.clock));
  }

  maySend(): boolean {
    return this.left() > 0 && !this.#isLate(this.#ttlMs / 2);
  }

  lost(): AgentAuthError {
    const stall = Math.round(Math.max(this.#stalledMs, this.#suspendedMs()));
    if (stall >= this.#heartbeatMs)
      return leaseLost(`this process was suspended for ${stall} ms, in which another one may have taken over`);
    if (this.#isLost || this.#isLate(this.#ttlMs / 2)) {
      const { location } = this.#context.driver;
      return leaseLost(`the lease was not extended in time in ${location}; another process may have taken over`);
    }
    return leaseLost("the time for this work has passed; another process may have taken over");
  }

  async commit(): Promise<void> {
    if (this.left() === 0) throw this.lost();
    this.#isCommitted = true;
    if (this.#takeover === "patient") this.#ttlMs = Math.max(this.#ttlMs, PATIENT_FACTOR * this.#options.durationMs);
    // The mark must be stored: a process that takes over later sees it, and one that took over before refuses it.
    if (!(await this.#extend()) || this.left() === 0) throw this.lost();
  }

  rollback(): void {
    this.#isRolledBack = true;
  }

  markRotated(): void {
    this.#isRotated = true;
  }

  /** Ends the lease after work that succeeded. */
  succeed(): Promise<void> {
    const rotatedGeneration = this.#isRotated ? this.#generation : this.rotatedGeneration;
    return this.#end(rotatedGeneration === undefined ? undefined : { sent: false, rotatedGeneration });
  }

  /** Ends the lease after work that failed. */
  async fail(error: unknown): Promise<void> {
    const { save, onUnsaved } = this.#options;
    if (save && isAgentAuthError(error, "grant_not_saved") && error.retryable) {
      // This process has the only copy of the new tokens: another one would send the used refresh token.
      this.#isCommitted = true;
      const ended = this.#saveLater(save, error);
      onUnsaved?.(ended);
      return;
    }
    const isPassedOn = !this.#isCommitted && this.#isInDanger;
    if (this.#isRolledBack || isPassedOn) {
      if (this.#stored === undefined && this.rotatedGeneration === undefined) return this.#end(undefined);
      return this.#end({ sent: false, instead: this.#stored });
    }
    return this.#end({ sent: this.#isCommitted, ...failureIn(error, this.previous) });
  }

  async #saveLater(save: () => Promise<unknown>, failure: AgentAuthError): Promise<void> {
    const isSaved = await savedInTime(this.#context.clock, this.#heartbeatMs, save);
    await (isSaved ? this.succeed() : this.#end({ sent: true, ...failureIn(failure, this.previous) }));
  }

  /** An engine that does not respond must not replace the outcome of the work; the lease expires by itself. */
  async #end(note: LeaseState | undefined): Promise<void> {
    this.#isEnded = true;
    this.#stop();
    const { driver, key, owner, seal } = this.#context;
    try {
      await driver.release(key, { owner, note: note && (await seal(this.#noted(note))) });
    } catch {}
  }

  /** What is known about all generations, and which of them this attempt is about. */
  #noted(note: LeaseState): LeaseState {
    return { generation: this.#generation, rotatedGeneration: this.rotatedGeneration, ...note };
  }

  /** A refresh token that the previous holder may have used is still in danger. */
  get #isInDanger(): boolean {
    return this.previous?.committed === true && this.previous.ended !== "released";
  }

  get #takeover(): Takeover {
    const { takeover } = this.#context;
    const { refreshes } = this.#options;
    if (refreshes?.reusesRefreshToken) return "fast";
    if (typeof takeover !== "function") return takeover;
    return refreshes ? takeover(refreshes.issuer) : "patient";
  }

  #isLate(ms: number): boolean {
    return since(this.#extendedFrom, this.#context.clock) >= ms;
  }

  #suspendedMs(): number {
    return since(this.#lastHeartbeat, this.#context.clock) - this.#heartbeatMs;
  }

  async #heartbeat(): Promise<void> {
    this.#stalledMs = Math.max(this.#stalledMs, this.#suspendedMs());
    this.#lastHeartbeat = readClock(this.#context.clock);
    // Work that takes longer than agreed, and has sent nothing, is stuck.
    const isOverdue = !this.#options.extend && since(this.#start, this.#context.clock) >= this.#durationMs;
    if (this.#isLost || (isOverdue && !this.#isCommitted)) this.#stop();
    else if (this.#extensions < 2) await this.#extend();
  }

  /** One at a time, so that no heartbeat arrives behind the mark and takes it back. */
  #extend(): Promise<boolean> {
    this.#extensions++;
    const next = this.#working.then(() => this.#extendNow()).finally(() => this.#extensions--);
    this.#working = next.catch(() => undefined);
    return next;
  }

  async #extendNow(): Promise<boolean> {
    if (this.#isEnded || this.#isLost) return false;
    const { driver, key, owner, seal, clock } = this.#context;
    const sent = this.#isCommitted || this.#isInDanger;
    const ttlMs = this.#ttlMs;
    const note = await seal(this.#noted({ sent }));
    const from = readClock(clock);
    const limit = this.#context.ttlMs / 2;
    const late = () => unansweredError(`${driver.system} at ${driver.location}`, limit);
    const isExtended = await inTime({ timeoutMs: limit, late }, (signal) =>
      driver.extend(key, { owner, ttlMs, note }, { signal }),
    );
    if (isExtended) this.#extendedFrom = from;
    else this.#isLost = true;
    return isExtended;
  }
}

/** For how long a process tries to save what an engine did not take. */
const GIVEN_UP_MS = 10 * 60_000;

/** Tries to save again and again, one try at a time, until nothing is left to be saved or it gives up. */
function savedInTime(clock: StoreClock, everyMs: number, save: () => Promise<unknown>): Promise<boolean> {
  const begun = readClock(clock);
  return new Promise((resolve) => {
    let isTrying = false;
    const attempt = async () => {
      if (isTrying) return;
      isTrying = true;
      const isSaved = await save().then(
        () => true,
        // Any other failure is an outcome, such as a logout.
        (error) => !isStoreFailure(error),
      );
      isTrying = false;
      if (!isSaved && since(begun, clock) < GIVEN_UP_MS) return;
      stop();
      resolve(isSaved);
    };
    const stop = clock.every(everyMs, () => void attempt());
  });
}

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

  /**
   * As `GrantStore.lease`. The callers in one process queue up before they send a request to the engine.
   *
   * @param rotatedHere the newest generation of tokens whose refresh token is used up, as this process knows
   */
  async run<T>(
    records: TenantRecords,
    name: string,
    work: (lease: Lease) => Promise<T>,
    options: LeaseOptions<T>,
    rotatedHere: () => Promise<number | undefined> = async () => undefined,
  ): Promise<T> {
    const requestedAt = this.#clock.epoch();
    const context = await this.#contextFor(records, lockName(name, options));
    return this.#here.run(
      // Two tenants may each have a user of the same name.
      `${context.key.partition} ${context.key.id}`,
      async (queued) => {
        const acquired = await this.#acquire(context, options);
        if ("instead" in acquired) return acquired.instead;
        // Waiting for an attempt that was rolled back is not waiting for the one before it.
        const isOlder = (acquired.previous?.endedAt ?? requestedAt) < requestedAt;
        const waited = (acquired.waited || queued) && !isOlder;
        const rotatedGeneration = newest(await rotatedHere(), acquired.rotatedGeneration);
        const lease = new DriverLease(context, { ...acquired, waited, rotatedGeneration }, options);
        try {
          const result = (await this.#lateResult(acquired.graceMs, options)) ?? (await work(lease));
          await lease.succeed();
          return result;
        } catch (error) {
          await lease.fail(error);
          throw error;
        }
      },
      options.signal,
    );
  }

  async #contextFor(records: TenantRecords, name: string): Promise<LeaseContext> {
    const key = await records.key("lease", name);
    const seal = (note: LeaseState) => records.seal(key, JSON.stringify({ ...note, holder: this.#rules.holder }));
    const read = async ({ note }: LeaseTrace) => {
      const text = await records.open(key, note).catch(() => undefined);
      return text === undefined ? undefined : decodeState(text);
    };
    const owner = crypto.randomUUID();
    return { ...this.#rules, driver: records.driver, key, owner, clock: this.#clock, seal, read };
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
  async #acquire<T>(context: LeaseContext, options: LeaseOptions<T>): Promise<Acquisition | { instead: T }> {
    const { signal, onWait, until, patienceMs = Number.POSITIVE_INFINITY } = options;
    const generation = refreshedGeneration(options);
    const state = await context.seal({ sent: true, generation });
    const begun = readClock(this.#clock);
    // By the clock of this process alone: that of the engine may jump.
    let endsAt: number | undefined;
    let pauseMs = POLL_MS.first;
    let { response, from, offset } = await this.#claim(context, state, signal);
    while (!response.held && response.by.owner !== context.owner) {
      const { by, leftMs } = response;
      const holder = async () => ({ label: (await context.read(by))?.holder, pid: undefined, at: by.at - offset });
      if (endsAt === undefined && onWait) onWait(await holder());
      endsAt = this.#clock.now() + leftMs;
      const instead = await until?.();
      if (instead !== undefined) return { instead };
      if (since(begun, this.#clock) >= patienceMs) throw busy(await holder());
      // Not all at the same moment, and not long after it is free.
      await this.#sleep(Math.min(pauseMs, leftMs + POLL_MS.first) * (0.5 + Math.random()), signal);
      pauseMs = Math.min(pauseMs * 1.5, POLL_MS.most);
      ({ response, from, offset } = await this.#claim(context, state, signal));
    }
    const { stored, rotatedGeneration } = await previousAttempt(response, context, generation);
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
      const response = await driver.claim(key, { owner, ttlMs, note });
      return { response, from, offset: clockOffset(response, from, this.#clock.epoch()) };
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
function lockName(name: string, { refreshes }: Pick<LeaseOptions<unknown>, "refreshes">): string {
  if (refreshes === undefined) return name;
  const { profile, server, account, signedInAt } = refreshes;
  return JSON.stringify([profile, server, account, signedInAt]);
}

function newest(one: number | undefined, other: number | undefined): number | undefined {
  return one === undefined || other === undefined ? (one ?? other) : Math.max(one, other);
}

/** What is known about the attempt before a claim whose response was lost. */
function unknownAttempt(at: number): PreviousAttempt {
  return { at, endedAt: undefined, ended: "expired", committed: true, failure: undefined };
}

/**
 * The previous attempt at the same generation, and the rotated generation. A claim that a client has sent twice finds its own, and
 * does not show the one before.
 */
async function previousAttempt(
  response: LeaseHeld | LeaseBusy,
  { read }: LeaseContext,
  generation: number | undefined,
): Promise<Pick<Acquisition, "stored" | "rotatedGeneration">> {
  if (!response.held) return { stored: unknownAttempt(response.by.at), rotatedGeneration: undefined };
  if (response.previous === undefined) return { stored: undefined, rotatedGeneration: undefined };
  const note = await read(response.previous);
  const isOther = note !== undefined && note.generation !== generation;
  return {
    stored: isOther ? undefined : readAttempt(response.previous, note),
    rotatedGeneration: note?.rotatedGeneration,
  };
}

/**
 * Milliseconds by which the engine's clock is ahead of ours: the least that fits its response, which it gave between the
 * two moments.
 */
function clockOffset(response: LeaseHeld | LeaseBusy, from: ClockReading, after: number): number {
  const trace = response.held ? response.previous : response.by;
  if (trace === undefined) return 0;
  return Math.max(trace.now - after, Math.min(0, trace.now - from.epoch));
}

function busy(holder: LeaseHolder): AgentAuthError {
  // It may be a process of another machine, or another store of this process.
  const who = holder.label === undefined ? "another worker" : holderText(holder);
  const message = `${who} has held the lock since ${new Date(holder.at).toISOString()} and does not release it`;
  return new AgentAuthError("lease_busy", message, { class: "unavailable" });
}
