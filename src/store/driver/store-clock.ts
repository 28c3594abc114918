import { type Clock, systemClock } from "../../http/deadline.js";
import type { Grant } from "../../oauth/model/grant.js";
import type { StoreDriver } from "./driver.js";

/** A moment by the clocks of this process. */
export interface ClockReading {
  readonly now: number;
  readonly epoch: number;
}

/** The clocks and timers of a store. Tests pass their own. */
export interface StoreClock extends Clock {
  /** Calls `beat` every `ms` milliseconds until the result is called. */
  every(ms: number, beat: () => void): () => void;
}

/** Those of this machine. */
export const storeClock: StoreClock = {
  ...systemClock,
  every(ms, beat) {
    const timer: unknown = setInterval(beat, ms);
    // In Node a heartbeat must not keep a process alive; a browser has a number here.
    (timer as { unref?: () => void }).unref?.();
    return () => clearInterval(timer as ReturnType<typeof setInterval>);
  },
};

/** This moment. */
export function readClock(clock: Clock): ClockReading {
  return { now: clock.now(), epoch: clock.epoch() };
}

/**
 * Milliseconds since a moment. By the epoch too: the monotonic clock of a machine that sleeps stops, while the engine
 * counts on.
 */
export function since(from: ClockReading, clock: Clock): number {
  return Math.max(clock.now() - from.now, clock.epoch() - from.epoch);
}

/** Clocks that differ by less agree: the measurement is no better than the time that a response takes. */
const SLACK_MS = 10_000;
const MEASURED_FOR_MS = 10 * 60_000;

interface Measurement {
  readonly now: number;
  readonly epoch: number;
  readonly aheadMs: Promise<number>;
}

/** By how much the clock of this machine differs from the engine's, which is the one that all machines share. */
export class EngineClock {
  readonly #driver: StoreDriver;
  readonly #clock: StoreClock;
  #last: Measurement | undefined;

  constructor(driver: StoreDriver, clock: StoreClock) {
    this.#driver = driver;
    this.#clock = clock;
  }

  /** Milliseconds by which this machine is ahead; 0 if the clocks agree, or the engine does not show its own. */
  aheadMs(): Promise<number> {
    const [now, epoch] = [this.#clock.now(), this.#clock.epoch()];
    const last = this.#last;
    if (last !== undefined) {
      const passed = now - last.now;
      // A clock that was set, or a machine that slept.
      const isSame = Math.abs(epoch - last.epoch - passed) < SLACK_MS;
      if (isSame && passed < MEASURED_FOR_MS) return last.aheadMs;
    }
    const aheadMs = this.#measure();
    this.#last = { now, epoch, aheadMs };
    return aheadMs;
  }

  async #measure(): Promise<number> {
    const health = await this.#driver.health?.().catch(() => undefined);
    const aheadMs = health?.clockAheadMs ?? 0;
    return Math.abs(aheadMs) < SLACK_MS ? 0 : aheadMs;
  }
}

/** A grant whose tokens have their times on a clock that is ahead of the other by this much. */
export function onClock(grant: Grant, aheadMs: number): Grant {
  if (aheadMs === 0) return grant;
  const usedAt = grant.usedAt === undefined ? undefined : grant.usedAt + aheadMs;
  return { ...grant, usedAt, tokens: { ...grant.tokens, ...timesOnClock(grant.tokens, aheadMs) } };
}

export function timesOnClock({ obtainedAt, expiresAt }: TokenTimes, aheadMs: number): TokenTimes {
  return { obtainedAt: obtainedAt + aheadMs, expiresAt: expiresAt === undefined ? undefined : expiresAt + aheadMs };
}

type TokenTimes = Pick<Grant["tokens"], "obtainedAt" | "expiresAt">;
