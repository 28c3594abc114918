import { type AgentAuthError, isAgentAuthError } from "../../errors.js";
import { isStoreFailure } from "../../oauth/model/grant-store.js";
import { type Lease, type LeaseOptions, leaseLost, type PreviousAttempt } from "../../oauth/model/lease.js";
import { inTime, unansweredError } from "./bounded-driver.js";
import type { RecordKey, StoreDriver } from "./driver.js";
import { failureIn, generationOf, type LeaseNote } from "./lease-note.js";
import { type ClockReading, readClock, type StoreClock, since } from "./store-clock.js";

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
export interface LeasePlace extends LeaseRules {
  readonly driver: StoreDriver;
  readonly key: RecordKey;
  readonly owner: string;
  readonly clock: StoreClock;
  seal(note: LeaseNote): Promise<string>;
}

/** A claim that was answered. */
export interface Taken {
  /** Before the claim was sent. */
  readonly from: ClockReading;
  /** The attempt before: in times of this machine, and as the engine has it. */
  readonly before: PreviousAttempt | undefined;
  readonly stored: PreviousAttempt | undefined;
  /** The newest generation of tokens whose refresh token is used up. */
  readonly spent: number | undefined;
  readonly waited: boolean;
  /** Milliseconds in which the holder before may still come back with a result. */
  readonly doubtMs: number;
}

const BEATS = 4;
const PATIENT_FACTOR = 3;

/** A lease in the hands of this process. It is alive for its ttl after the start of the last extension that was answered. */
export class HeldLease implements Lease {
  readonly before: PreviousAttempt | undefined;
  readonly spent: number | undefined;
  readonly waited: boolean;
  readonly #place: LeasePlace;
  readonly #options: LeaseOptions<unknown>;
  readonly #stored: PreviousAttempt | undefined;
  readonly #start: ClockReading;
  readonly #beatMs: number;
  readonly #stop: () => void;
  readonly #durationMs: number;
  readonly #generation: number | undefined;
  #ttlMs: number;
  #extendedFrom: ClockReading;
  #lastBeat: ClockReading;
  #stalledMs = 0;
  #isLost = false;
  #isCommitted = false;
  #isRolledBack = false;
  #isSpending = false;
  #isEnded = false;
  #working: Promise<unknown> = Promise.resolve();
  /** Those under way and waiting: few, also while an engine does not answer for long. */
  #extensions = 0;

  constructor(
    place: LeasePlace,
    { from, before, stored, spent, waited, doubtMs }: Taken,
    options: LeaseOptions<unknown>,
  ) {
    this.#place = place;
    this.#options = options;
    this.before = before;
    this.waited = waited;
    this.spent = spent;
    this.#generation = generationOf(options);
    // The work begins when there is no doubt any more.
    this.#durationMs = options.durationMs + doubtMs;
    this.#stored = stored;
    this.#start = from;
    this.#extendedFrom = from;
    this.#ttlMs = place.ttlMs;
    this.#beatMs = place.ttlMs / BEATS;
    this.#lastBeat = readClock(place.clock);
    this.#stop = place.clock.every(this.#beatMs, () => void this.#beat().catch(() => undefined));
  }

  left(): number {
    if (this.#isLost || this.#isLate(this.#ttlMs)) return 0;
    if (this.#options.extend) return this.#durationMs;
    return Math.max(0, this.#durationMs - since(this.#start, this.#place.clock));
  }

  maySend(): boolean {
    return this.left() > 0 && !this.#isLate(this.#ttlMs / 2);
  }

  lost(): AgentAuthError {
    const stall = Math.round(Math.max(this.#stalledMs, this.#standstill()));
    if (stall >= this.#beatMs) {
      return leaseLost(`this process stood still for ${stall} ms, in which another one may have taken over`);
    }
    if (this.#isLost || this.#isLate(this.#ttlMs / 2)) {
      const { location } = this.#place.driver;
      return leaseLost(`the lease was not extended in time in ${location}; another process may have taken over`);
    }
    return leaseLost("the time for this work has passed; another process may have taken over");
  }

  async commit(): Promise<void> {
    if (this.left() === 0) throw this.lost();
    this.#isCommitted = true;
    if (this.#takeover === "patient") {
      this.#ttlMs = Math.max(this.#ttlMs, PATIENT_FACTOR * this.#options.durationMs);
    }
    // The mark must be stored: a process that takes over later sees it, and one that took over before refuses it.
    if (!(await this.#extend()) || this.left() === 0) throw this.lost();
  }

  rollback(): void {
    this.#isRolledBack = true;
  }

  spend(): void {
    this.#isSpending = true;
  }

  /** The lease for the work, as an object of its own: a wrapper of the store may copy it with changes. */
  forWork(): Lease {
    return {
      left: () => this.left(),
      maySend: () => this.maySend(),
      lost: () => this.lost(),
      commit: () => this.commit(),
      rollback: () => this.rollback(),
      spend: () => this.spend(),
      before: this.before,
      spent: this.spent,
      waited: this.waited,
    };
  }

  /** Ends the lease after work that succeeded. */
  succeed(): Promise<void> {
    const spent = this.#isSpending ? this.#generation : this.spent;
    return this.#end(spent === undefined ? undefined : { sent: false, spent });
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
      if (this.#stored === undefined && this.spent === undefined) return this.#end(undefined);
      return this.#end({ sent: false, instead: this.#stored });
    }
    return this.#end({ sent: this.#isCommitted, ...failureIn(error, this.before) });
  }

  async #saveLater(save: () => Promise<unknown>, failure: AgentAuthError): Promise<void> {
    const isSaved = await savedInTime(this.#place.clock, this.#beatMs, save);
    await (isSaved ? this.succeed() : this.#end({ sent: true, ...failureIn(failure, this.before) }));
  }

  /** An engine that does not answer must not replace the outcome of the work; the lease expires by itself. */
  async #end(note: LeaseNote | undefined): Promise<void> {
    this.#isEnded = true;
    this.#stop();
    const { driver, key, owner, seal } = this.#place;
    try {
      await driver.release(key, { owner, note: note && (await seal(this.#noted(note))) });
    } catch {}
  }

  /** What is known about all generations, and which of them this attempt is about. */
  #noted(note: LeaseNote): LeaseNote {
    return { generation: this.#generation, spent: this.spent, ...note };
  }

  /** A refresh token that the holder before may have used is still in danger. */
  get #isInDanger(): boolean {
    return this.before?.committed === true && this.before.ended !== "released";
  }

  get #takeover(): Takeover {
    const { takeover } = this.#place;
    const { refreshes } = this.#options;
    if (refreshes?.reusesRefreshToken) return "fast";
    if (typeof takeover !== "function") return takeover;
    return refreshes ? takeover(refreshes.issuer) : "patient";
  }

  #isLate(ms: number): boolean {
    return since(this.#extendedFrom, this.#place.clock) >= ms;
  }

  #standstill(): number {
    return since(this.#lastBeat, this.#place.clock) - this.#beatMs;
  }

  async #beat(): Promise<void> {
    this.#stalledMs = Math.max(this.#stalledMs, this.#standstill());
    this.#lastBeat = readClock(this.#place.clock);
    // Work that takes longer than agreed, and has sent nothing, is stuck.
    const isOverdue = !this.#options.extend && since(this.#start, this.#place.clock) >= this.#durationMs;
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
    const { driver, key, owner, seal, clock } = this.#place;
    const sent = this.#isCommitted || this.#isInDanger;
    const ttlMs = this.#ttlMs;
    const note = await seal(this.#noted({ sent }));
    const from = readClock(clock);
    const limit = this.#place.ttlMs / 2;
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

/**
 * Tries to save again and again, one try at a time, until nothing is left to be saved or it gives up.
 *
 * @returns whether nothing is left
 */
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
