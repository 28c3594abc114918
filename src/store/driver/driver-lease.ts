import { type AgentAuthError, isAgentAuthError } from "../../errors.js";
import { isStoreFailure } from "../../oauth/model/grant-store.js";
import { type Lease, type LeaseOptions, leaseLost, type PreviousAttempt } from "../../oauth/model/lease.js";
import { inTime, unansweredError } from "./bounded-driver.js";
import type { RecordKey, StoreDriver } from "./driver.js";
import { failureIn, generationOf, type LeaseState } from "./lease-state.js";
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
export interface LeaseContext extends LeaseRules {
  readonly driver: StoreDriver;
  readonly key: RecordKey;
  readonly owner: string;
  readonly clock: StoreClock;
  seal(note: LeaseState): Promise<string>;
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
export class DriverLease implements Lease {
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
    this.#generation = generationOf(options);
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
    if (stall >= this.#heartbeatMs) {
      return leaseLost(`this process was suspended for ${stall} ms, in which another one may have taken over`);
    }
    if (this.#isLost || this.#isLate(this.#ttlMs / 2)) {
      const { location } = this.#context.driver;
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

  markRotated(): void {
    this.#isRotated = true;
  }

  /** The lease for the work, as an object of its own: a wrapper of the store may copy it with changes. */
  toLease(): Lease {
    return {
      left: () => this.left(),
      maySend: () => this.maySend(),
      lost: () => this.lost(),
      commit: () => this.commit(),
      rollback: () => this.rollback(),
      markRotated: () => this.markRotated(),
      previous: this.previous,
      rotatedGeneration: this.rotatedGeneration,
      waited: this.waited,
    };
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
