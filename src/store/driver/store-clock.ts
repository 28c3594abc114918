import { type Clock, systemClock } from "../../http/deadline.js";

/** A moment by the clocks of this process. */
export interface Moment {
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
export function momentOf(clock: Clock): Moment {
  return { now: clock.now(), epoch: clock.epoch() };
}

/**
 * Milliseconds since a moment. By the epoch too: the monotonic clock of a machine that sleeps stops, while the engine
 * counts on.
 */
export function since(from: Moment, clock: Clock): number {
  return Math.max(clock.now() - from.now, clock.epoch() - from.epoch);
}
